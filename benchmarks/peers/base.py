"""What a turn asks of a system, ours or another's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from redis import Redis

FIRST, LAST = "first", "last"  # the marks of the first and the last task of a turn


@dataclass(frozen=True)
class Guarantees:
    """What the figures of a system contain, in a few words each."""

    acks: str
    retries: str
    results: str
    priorities: str


class Peer(ABC):
    """One system, as its own documents start it for one worker process; its log is quiet."""

    guarantees: Guarantees
    #: The worker as the report names it.
    how: str
    #: The part of the asked number of tasks that it gets; less for those that would take minutes.
    share = 1.0

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version

    def count(self, tasks: int) -> int:
        return max(100, round(tasks * self.share))

    @abstractmethod
    def enqueue(self, count: int) -> None:
        """Enqueue *count* tasks one by one: the mark FIRST, tasks that do nothing, the mark LAST."""

    @abstractmethod
    def worker(self) -> Sequence[str]:
        """The arguments of the interpreter that start one worker process."""

    @abstractmethod
    def is_done(self, redis: Redis) -> bool:
        """Whether nothing is queued and nothing is still to be acknowledged."""
