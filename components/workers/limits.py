"""
Limits: when a worker has done enough, and a fresh process should replace it.

Long-lived processes grow through caches, memory fragmentation and leaks in the modules that tasks import. A worker
that has reached a limit takes no more tasks, finishes the running ones and exits, so that a service manager or its
parent can start a new process. Each limit is lowered at random by up to a tenth, so that workers that started
together do not end together.
"""

import os
import random
import resource
import sys
import time
from pathlib import Path

_MB = 1024 * 1024
LOWERED = 0.1  # the largest part by which a limit is lowered
_STATM = Path("/proc/self/statm")  # in pages: all, resident, ...; Linux only


class Limits:
    """Limits of *max_tasks* to claim, *max_memory* in MB (of 1024 * 1024 bytes) and *max_time* in seconds."""

    def __init__(
        self, max_tasks: int | None = None, max_memory: float | None = None, max_time: float | None = None
    ) -> None:
        self.max_tasks = max_tasks and max_tasks - random.randint(0, int(max_tasks * LOWERED))
        self.max_memory = max_memory and _lowered(max_memory)
        self.max_time = max_time and _lowered(max_time)
        self._began_at = time.monotonic()

    def left(self, claimed: int) -> int | None:
        """Return how many more tasks may be claimed after *claimed*; None means any number."""
        return None if self.max_tasks is None else max(0, self.max_tasks - claimed)

    def reached(self) -> str | None:
        """Return a text about the limit of memory or time that is reached. It is cheap enough for each heartbeat."""
        if self.max_memory is not None and (used := memory()) >= self.max_memory:
            return f"{used:.0f} MB of memory in use, {self.max_memory:.0f} allowed"
        if self.max_time is not None and (ran := time.monotonic() - self._began_at) >= self.max_time:
            return f"it has run for {ran:.0f} s, {self.max_time:.0f} allowed"
        return None


def memory() -> float:
    """Return the memory of this process in MB: the current use on Linux, the highest so far elsewhere."""
    try:
        pages = int(_STATM.read_bytes().split()[1])
    except FileNotFoundError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / _MB if sys.platform == "darwin" else peak / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB


def _lowered(limit: float) -> float:
    return limit * (1 - random.uniform(0, LOWERED))
