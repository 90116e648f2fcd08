"""
Prefetch: a worker claims as many tasks ahead of its threads as they will start within a few tens of milliseconds.

Tasks that do nothing are claimed in batches of hundreds, with one round trip for all; tasks of ten seconds are
claimed one for each free thread. Tasks that were claimed ahead and wait for too long are given back, so a slow task
never keeps a quick one from an idle worker.
"""

from __future__ import annotations

AHEAD = 0.05  # seconds of work that a worker claims ahead
STALE = 0.15  # seconds after which tasks that were claimed ahead are given back
BATCH = 500  # tasks that are claimed together; that takes Redis a few milliseconds
MOST = 2 * BATCH  # tasks ahead: one batch is run while the next is claimed
_HALF = 10  # tasks after which the mean has moved half of the way to theirs


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
