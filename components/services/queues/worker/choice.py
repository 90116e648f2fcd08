"""
The choice of queues: which queues a worker asks for tasks, and how many it asks each for.

Strict: the first queue until it is empty, then the next. Weighted: in proportion to the weights. Round robin: each in
turn. Only Redis knows which queues have tasks, so the worker sends proportions and how many tasks it has wanted so
far, and advance.lua distributes the wanted number among the queues that have tasks: an empty queue leaves its share
to the others, in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from components.services.queues import Claimed


@dataclass
class QueueChoice:
    """The queues in order. With *weights* (queue -> weight) or *round_robin*, each gets a share."""

    queues: Sequence[str]
    weights: Mapping[str, int] = field(default_factory=dict)
    round_robin: bool = False

    def shares(self, want: int) -> dict[str, float]:
        """
        Return the queues in the order in which they are asked, and the mean number of *want* tasks for each. If the
        sum is greater, the queues are asked in strict order, each for the number that is still wanted.
        """
        weights = self.weights or (dict.fromkeys(self.queues, 1) if self.round_robin else {})
        if not weights:
            return dict.fromkeys(self.queues, float(want))
        total = sum(weights.values())
        return {queue: want * weight / total for queue, weight in weights.items()}

    def arranged(self, claimed: Sequence[Claimed]) -> list[Claimed]:
        """
        Return *claimed* in the order in which to run them: with weights or turns, the tasks of all queues are
        interleaved. This way, the tasks that are given back for lack of time are not always those of the last queue.
        """
        if not (self.weights or self.round_robin):
            return list(claimed)
        of_queue: dict[str, list[Claimed]] = {}
        for task in claimed:
            of_queue.setdefault(task.queue, []).append(task)
        placed = [
            ((number + 0.5) / len(tasks), task)
            for tasks in of_queue.values()
            for number, task in enumerate(tasks)
        ]
        return [task for _place, task in sorted(placed, key=lambda pair: pair[0])]
