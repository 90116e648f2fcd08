"""
Suspects: tasks that were running when a worker died, and may have killed it.

A worker that claims suspects starts only a few of them, and gives the others back until those have ended or have run
for a moment. The more crashes suspects have seen, the fewer are started together. If one more crash would make a
suspect dead, it runs without any other suspect, so that only a task that is not a suspect yet can crash its worker.
Suspects that have to wait for it are delayed, and do not block other tasks.
"""

import time
from collections.abc import Container

from components.services.queues import Claimed
from components.services.queues.worker.runs import Run

MOST = 20  # most suspects that run together if each has seen only one crash
_DEARER = 5  # factor by which each crash increases the room that a suspect takes
WATCHED = 0.05  # seconds that suspects run before the next ones are started
PUT_OFF = 0.2  # seconds by which a suspect that must run alone is delayed if there is no room


class Suspects:
    """The suspects that run in a worker. *max_crashes* is the backend's option."""

    def __init__(self, max_crashes: int) -> None:
        self._max_crashes = max_crashes
        self._room = MOST
        self._runs: list[Run] = []
        self._beside: list[Claimed] = []  # running and admitted suspects
        self._waiting_until = self._others_first_until = 0.0

    @property
    def are_waiting(self) -> bool:
        """Return whether some refused suspects may not have come back yet."""
        return time.monotonic() < self._waiting_until

    @property
    def are_for_others(self) -> bool:
        """Return whether some suspects were just given back, so that other workers can take them first."""
        return time.monotonic() < self._others_first_until

    def look(self, held: Container[Claimed]) -> None:
        """Make room if the latest suspects have ended or have run for long enough. *held* are the worker's claims."""
        since = time.monotonic() - WATCHED
        self._runs = [run for run in self._runs if run.claimed in held]
        self._beside = [run.claimed for run in self._runs]
        if all(run.started_at is not None and run.started_at <= since for run in self._runs):
            self._room = MOST

    def refused_for(self, claimed: Claimed) -> float | None:
        """Return for how many seconds to give back the task; None if it may start, as any task that is no suspect."""
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
        """Return whether the suspect, or a running one, must run without other suspects."""
        return any(needed == MOST or self._room_for(other) == MOST for other in self._beside)

    def add(self, run: Run) -> None:
        """Add an admitted suspect that starts now."""
        if run.claimed.crashes:
            self._runs.append(run)
