"""What the turns of locks.py ask of a system that has locks or semaphores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

LEASE = 4  # seconds, for all: below the five after which redis-py's socket gives up on a blocking command
LIMIT = 5  # permits of every semaphore


@dataclass(frozen=True)
class Guarantees:
    """What the figures of a system contain, in a few words each."""

    fence: str
    lease: str
    lost_replies: str
    wakes: str
    fair: str


class System(ABC):
    """One way to hold something, as its own documents show it."""

    guarantees: Guarantees

    def __init__(self, name: str, version: str) -> None:
        self.name = name
        self.version = version

    @abstractmethod
    def hold(self, name: str) -> AbstractContextManager[Any]:
        """Entering waits until *name* is held: a lock alone, a semaphore with at most LIMIT - 1 others."""
