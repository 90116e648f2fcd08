"""
GivenBack: claimed tasks that a worker gives back unfinished, until Redis has them.

They go back to their old place at once, after a delay, or, if their concurrency limit is reached, when it has room
(they are parked). A request without an answer is repeated: the tokens tell Redis which tasks are no longer the
worker's.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain

from components.services.queues import Claimed, Consumer
from components.services.queues.worker.concurrency import Limit


class GivenBack:
    """What one worker gives back."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._delayed: defaultdict[float, list[Claimed]] = defaultdict(list)
        self._parked: defaultdict[Limit, list[Claimed]] = defaultdict(list)

    def __bool__(self) -> bool:
        return bool(self._delayed or self._parked)

    @property
    def at_once(self) -> bool:
        """True if some tasks go back without a delay."""
        return 0.0 in self._delayed

    def all(self) -> list[Claimed]:
        return [*chain(*self._delayed.values(), *self._parked.values())]

    def add(self, tasks: Iterable[Claimed], *, delay: float = 0.0) -> None:
        """Give tasks back with the next send(), to be due after *delay* seconds; 0 is their old places."""
        if tasks := list(tasks):
            self._delayed[delay] += tasks

    def park(self, task: Claimed, limit: Limit) -> None:
        """Give a task back with the next send(), until *limit* has room."""
        self._parked[limit].append(task)

    def send(self) -> int:
        """
        Give all of them back, and return how many were still this worker's. Raises RedisUnavailable: then call it
        again.
        """
        number = 0
        for delay, tasks in list(self._delayed.items()):
            number += self._consumer.release(tasks, delay=delay)
            del self._delayed[delay]
        for limit, tasks in list(self._parked.items()):
            number += self._consumer.park(limit.name, tasks)
            limit.look_again(self._consumer, by=f"{tasks[0].token}:{tasks[0].id}:parked")
            del self._parked[limit]
        return number
