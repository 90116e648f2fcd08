"""
Suspects: tasks under which a worker has died, so that they or their neighbours killed it.

Whoever claims them starts only a few, and gives the others back until these have ended, or run for a moment. The
oftener they were there the fewer are started together; those that the next crash would bury, one by one. So tasks
that died together in one batch do not die together each time, and one that kills its workers takes no short one
along into the dead set.
"""

from __future__ import annotations

import time
from collections.abc import Container

from components.services.queues import Claimed
from components.workers.runs import Run

MOST = 20  # suspects that run together, if each has seen one crash only
_DEARER = 5  # how much more room one takes with each crash
WATCHED = 0.05  # seconds that they run before the next are started


class Suspects:
    """The latest that were started. *max_crashes* is that of the backend."""

    def __init__(self, max_crashes: int) -> None:
        self._max_crashes = max_crashes
        self._room = MOST
        self._runs: list[Run] = []
        self._refused_at = 0.0

    @property
    def are_waiting(self) -> bool:
        """Whether some were refused and may not have come back yet."""
        return time.monotonic() < self._refused_at + 2 * WATCHED

    def look(self, held: Container[Claimed]) -> None:
        """Make room again if the latest have ended, or run for long enough, in a worker that holds *held*."""
        since = time.monotonic() - WATCHED
        young = [run for run in self._runs if run.started_at is None or run.started_at > since]
        self._runs = [run for run in young if run.claimed in held]
        if not self._runs:
            self._room = MOST

    def admit(self, claimed: Claimed) -> bool:
        """Whether it may be started; what is no suspect always may."""
        needed = self._room_for(claimed.crashes)
        if needed > self._room:
            self._refused_at = time.monotonic()
            return False
        self._room -= needed
        return True

    def _room_for(self, crashes: int) -> int:
        if not crashes:
            return 0
        return MOST if crashes + 1 >= self._max_crashes else min(MOST, _DEARER ** (crashes - 1))

    def add(self, run: Run) -> None:
        """*run* was admitted and begins."""
        if run.claimed.crashes:
            self._runs.append(run)
