"""
How many tasks a worker claims ahead of its threads: as many as they will start within a few tens of milliseconds.

Tasks that do nothing then come in batches of hundreds, with one round trip for all; tasks of ten seconds come one
for each free thread. What was claimed ahead and finds all threads busy for longer is given back, so that
a slow task never keeps a quick one from an idle neighbour.
"""

from __future__ import annotations

AHEAD = 0.05  # seconds of work that is claimed ahead
STALE = 0.15  # seconds after which what was claimed ahead is given back
MOST = 500  # tasks: a batch that takes Redis a few milliseconds
_WEIGHT = 0.5  # of the latest tasks in the mean


class Prefetch:
    """The mean duration of the latest tasks, and what follows from it."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._mean: float | None = None

    @property
    def limit(self) -> int:
        """How many tasks may wait in the worker; none before the first has ended."""
        if self._mean is None:
            return 0
        return min(MOST, int(self._concurrency * AHEAD / max(self._mean, 1e-6)))

    def learn(self, durations: list[float]) -> None:
        """Tasks have ended that took so many seconds."""
        if durations:
            mean = sum(durations) / len(durations)
            self._mean = mean if self._mean is None else self._mean + _WEIGHT * (mean - self._mean)

    def was_wrong(self) -> None:
        """What was claimed ahead had to be given back: claim nothing ahead until a task has ended."""
        self._mean = None
