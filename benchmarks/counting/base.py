"""What the turns of counters.py ask of a system that counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantees:
    """What the figures of a system contain, in a few words each."""

    kept: str
    lost: str
    repeated: str
    cleaned: str


class System(ABC):
    """One way to count what happens, as its own documents show it."""

    guarantees: Guarantees
    #: How many updates a turn has, times those of the slowest.
    share = 1

    def __init__(self, version: str) -> None:
        self.version = version

    def begin(self) -> None:  # noqa: B027  (most systems have nothing to prepare)
        """Make ready for a turn, after all was forgotten."""

    @abstractmethod
    def counting(self, name: str) -> Callable[[], object]:
        """What counts one event of *name*."""

    def finish(self) -> None:  # noqa: B027  (what counts at once has nothing left)
        """Let all that was counted be where it can be read."""

    @abstractmethod
    def total(self, name: str) -> int | None:
        """How often *name* was counted; None where the system keeps no such thing."""
