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
_QUICK = 0.001  # seconds; where tasks take less, computing threads only wait for one another
_COMPUTING = 0.8  # where more than this share of tasks compute, one thread runs all
_HALF = 10  # tasks after which the mean has moved half of the way to theirs


class Prefetch:
    """The mean duration of the latest tasks, and the number of tasks to claim ahead."""

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._mean: float | None = None
        self._computing = 0.0  # the share of the latest tasks that mostly computed

    @property
    def limit(self) -> int:
        """Return how many tasks may wait in the worker; 0 until the first task has ended."""
        if self._mean is None:
            return 0
        threads = 1 if self.is_computing else self._concurrency
        return min(MOST, int(threads * AHEAD / max(self._mean, 1e-6)))

    @property
    def is_computing(self) -> bool:
        """True if tasks are so quick, and compute so much, that one thread runs them as fast as many."""
        return self._mean is not None and self._mean < _QUICK and self._computing > _COMPUTING

    def learn(self, durations: list[tuple[float, float]]) -> None:
        """Note how many seconds each of the latest tasks took, and how many of these it computed."""
        if not durations:
            return
        number = len(durations)
        mean = sum(seconds for seconds, _computed in durations) / number
        computing = sum(2 * computed > seconds for seconds, computed in durations) / number
        weight = number / (number + _HALF)
        self._mean = mean if self._mean is None else self._mean + weight * (mean - self._mean)
        self._computing += weight * (computing - self._computing)

    def was_wrong(self) -> None:
        """Claim nothing ahead until a task has ended, because tasks had to be given back."""
        self._mean = None

    def was_held_up(self) -> None:
        """Put all threads to work, until the tasks have shown again that one is enough."""
        self._computing = 0.0
