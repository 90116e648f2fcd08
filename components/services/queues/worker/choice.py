"""
What a worker asks for: of which queues, and how many tasks ahead of its threads.

Strict: the first queue until it is empty, then the next. Weighted: in proportion to the weights. Round robin: each in
turn. Only Redis knows which queues have tasks, so the worker sends proportions and how many tasks it has wanted so
far, and advance.lua distributes the wanted number among the queues that have tasks: an empty queue leaves its share
to the others, in proportion.

A worker claims as many tasks ahead of its threads as they will start within a few tens of milliseconds. Tasks that
do nothing are claimed in batches of hundreds, with one round trip for all; tasks of ten seconds are claimed one for
each free thread. Tasks that were claimed ahead and wait for too long are given back, so a slow task never keeps a
quick one from an idle worker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from components.services.queues import Claimed

AHEAD = 0.05  # seconds of work that a worker claims ahead
STALE = 0.15  # seconds after which tasks that were claimed ahead are given back
BATCH = 500  # tasks that are claimed together; that takes Redis a few milliseconds
MOST = 2 * BATCH  # tasks ahead: one batch is run while the next is claimed
_HALF = 10  # tasks after which the mean has moved half of the way to theirs


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


class Prefetch:
    """The mean duration of the latest tasks, and the number of tasks to claim ahead."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._mean: float | None = None

    @property
    def limit(self) -> int:
        """Return how many tasks may wait in the worker; 0 until the first task has ended."""
        if self._mean is None:
            return 0
        return min(MOST, int(self._concurrency * AHEAD / max(self._mean, 1e-6)))

    def learn(self, durations: list[float]) -> None:
        """Note how many seconds each of the latest tasks took."""
        if not durations:
            return
        number = len(durations)
        mean = sum(durations) / number
        weight = number / (number + _HALF)
        self._mean = mean if self._mean is None else self._mean + weight * (mean - self._mean)

    def was_wrong(self) -> None:
        """Claim nothing ahead until a task has ended, because tasks had to be given back."""
        self._mean = None
