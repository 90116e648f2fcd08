"""
Which queues a worker asks for tasks, and how much of what it wants falls to each.

Strict: the first queue until it is empty, then the next. Weighted: in proportion to the weights. Round robin: each in
turn. Only Redis knows which queues have tasks, so the worker sends proportions and the number of its turn, and
advance.lua deals what is wanted among the queues that have some: an empty queue's part falls to all others alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from components.services.queues import Claimed


class Shares(dict[str, float]):
    """
    The queues in the order of asking, and how many of the wanted tasks fall to each on average. Where they add up to
    more than is wanted, the queues are asked in strict order, each for as much as is left.
    """

    #: How many tasks were wanted before: from where the next are dealt.
    turn: int = 0


@dataclass
class QueueChoice:
    """The queues in order; with *weights* (queue -> weight) or *round_robin* each has its share of what is wanted."""

    queues: Sequence[str]
    weights: Mapping[str, int] = field(default_factory=dict)
    round_robin: bool = False
    #: Workers that begin at the same moment should not begin with the same queue.
    turn: int = 0

    def shares(self, want: int) -> Shares:
        """Return what to ask for if *want* tasks are wanted; the next call goes on from there."""
        weights = self.weights or (dict.fromkeys(self.queues, 1) if self.round_robin else {})
        if weights:
            total = sum(weights.values())
            shares = Shares({queue: want * weight / total for queue, weight in weights.items()})
        else:
            shares = Shares(dict.fromkeys(self.queues, float(want)))
        shares.turn = self.turn
        self.turn += want
        return shares

    def arranged(self, claimed: Sequence[Claimed]) -> list[Claimed]:
        """
        Return *claimed* in the order in which to run them: with weights or turns, those of all queues intermingled.
        So what is given back for want of time is not always the last queue's.
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
