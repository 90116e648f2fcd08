"""
Suspects: tasks under which a worker has died, so that they or their neighbours killed it.

Whoever claims them starts only a few, and gives the others back until these have ended, or run for a moment. The
oftener they were there the fewer are started together. Those that the next crash would bury, or that were there for
too many, have no other suspect beside them as long as they run; so only a task that is no suspect yet can take them
along into the dead set. What has to wait for such a one is put off, and does not stand in the way of others.
"""

from __future__ import annotations

import time
from collections.abc import Container

from components.services.queues import Claimed
from components.services.queues.worker.runs import Run

MOST = 20  # suspects that run together, if each has seen one crash only
_DEARER = 5  # how much more room one takes with each crash
WATCHED = 0.05  # seconds that they run before the next are started
PUT_OFF = 0.2  # seconds until another worker, or this one, may have room for one that runs without others


class Suspects:
    """Those that run in a worker. *max_crashes* is that of the backend."""

    def __init__(self, max_crashes: int) -> None:
        self._max_crashes = max_crashes
        self._room = MOST
        self._runs: list[Run] = []
        self._beside: list[Claimed] = []  # those that run or were admitted
        self._waiting_until = self._others_first_until = 0.0

    @property
    def are_waiting(self) -> bool:
        """Whether some were refused and may not have come back yet."""
        return time.monotonic() < self._waiting_until

    @property
    def are_for_others(self) -> bool:
        """Whether some were given back at once, for other workers to take first."""
        return time.monotonic() < self._others_first_until

    def look(self, held: Container[Claimed]) -> None:
        """Make room again if the latest have ended, or run for long enough, in a worker that holds *held*."""
        since = time.monotonic() - WATCHED
        self._runs = [run for run in self._runs if run.claimed in held]
        self._beside = [run.claimed for run in self._runs]
        if all(run.started_at is not None and run.started_at <= since for run in self._runs):
            self._room = MOST

    def refused_for(self, claimed: Claimed) -> float | None:
        """For how many seconds it is to be given back; None: it may be started, as what is no suspect always may."""
        needed = self._room_for(claimed)
        if needed > self._room:
            self._waiting_until = self._others_first_until = time.monotonic() + 2 * WATCHED
            return 0.0
        if needed and self._would_disturb(needed):
            self._waiting_until = time.monotonic() + PUT_OFF + 2 * WATCHED
            return PUT_OFF
        self._room -= needed
        self._beside += [claimed] if needed else []
        return None

    def _room_for(self, claimed: Claimed) -> int:
        crashes = claimed.crashes
        if not crashes:
            return 0
        return MOST if crashes + 1 >= self._max_crashes else min(MOST, _DEARER ** (crashes - 1))

    def _would_disturb(self, needed: int) -> bool:
        """Whether it or one that runs wants no other suspect beside it."""
        return any(needed == MOST or self._room_for(other) == MOST for other in self._beside)

    def add(self, run: Run) -> None:
        """*run* was admitted and begins."""
        if run.claimed.crashes:
            self._runs.append(run)
