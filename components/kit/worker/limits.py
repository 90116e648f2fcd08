"""
Limits: when a worker has done enough, and a fresh process should go on instead.

Long-lived processes grow: by caches, by fragments, by leaks of what tasks import. A worker that has reached a
limit takes no more tasks, ends with the running ones, and leaves its place to whoever starts it anew. Each
limit is lowered by chance, by up to a tenth, so that workers that began together do not end together.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from pathlib import Path

_MB = 1024 * 1024
LOWERED = 0.1  # by how much of itself a limit is lowered, at most
_STATM = Path("/proc/self/statm")  # pages: all, resident, ...; Linux only


class Limits:
    """*max_tasks* to claim, *max_memory* in MB (of 1024 * 1024 bytes), *max_time* in seconds from now on."""

    def __init__(
        self,
        max_tasks: int | None = None,
        max_memory: float | None = None,
        max_time: float | None = None,
    ) -> None:
        self.max_tasks = max_tasks and max_tasks - random.randint(0, int(max_tasks * LOWERED))
        self.max_memory = max_memory and _lowered(max_memory)
        self.max_time = max_time and _lowered(max_time)
        self._began_at = time.monotonic()

    def left(self, claimed: int) -> int | None:
        """How many tasks may still be claimed after *claimed*; None: any number."""
        return None if self.max_tasks is None else max(0, self.max_tasks - claimed)

    def reached(self) -> str | None:
        """Which limit of memory or time has been reached, for the log; cheap enough for each heartbeat."""
        if self.max_memory is not None and (used := memory()) >= self.max_memory:
            return f"{used:.0f} MB of memory in use, {self.max_memory:.0f} allowed"
        if self.max_time is not None and (ran := time.monotonic() - self._began_at) >= self.max_time:
            return f"it has run for {ran:.0f} s, {self.max_time:.0f} allowed"
        return None


def memory() -> float:
    """MB of memory that this process holds: now on Linux, elsewhere the most that it ever held."""
    try:
        pages = int(_STATM.read_bytes().split()[1])
    except FileNotFoundError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / _MB if sys.platform == "darwin" else peak / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB


def _lowered(limit: float) -> float:
    return limit * (1 - random.uniform(0, LOWERED))
