"""
Which queues a worker asks, in which order, and for how much.

Strict: the first queue until it is empty, then the next. Weighted: by chance, in proportion. Round robin: each
in turn. One step may claim several tasks, so an order comes with shares: how many tasks each queue is
asked for before the others get what is left of the worker's capacity.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class QueueChoice:
    """The queues in order; with *weights* (queue -> weight) or *round_robin* the order changes each time."""

    queues: Sequence[str]
    weights: Mapping[str, int] = field(default_factory=dict)
    round_robin: bool = False
    _turn: int = 0

    def shares(self, want: int) -> dict[str, int]:
        """The queues in the order of asking, and how many of *want* tasks each is asked for at first."""
        if self.weights:
            total = sum(self.weights.values())
            return {queue: math.ceil(want * self.weights[queue] / total) for queue in self._by_chance()}
        if self.round_robin and self.queues:
            self._turn = (self._turn + 1) % len(self.queues)
            turned = [*self.queues[self._turn :], *self.queues[: self._turn]]
            return dict.fromkeys(turned, math.ceil(want / len(turned)))
        return dict.fromkeys(self.queues, want)

    def _by_chance(self) -> list[str]:
        # The smallest of exponential draws falls to each queue with the chance of its weight.
        draws = {queue: random.expovariate(weight) for queue, weight in self.weights.items()}
        return sorted(draws, key=draws.__getitem__)
