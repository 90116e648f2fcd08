"""
How long threads were ready to run while the machine ran others: a verdict by the clock does not blame them for that.

Linux counts it for each thread. A thread that sleeps, or waits for a reply or a wake-up, does not starve, so what is
left of a delay is the fault of the code. Where the system does not count, nothing is excused.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import defaultdict
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Self

from components.embedded import EmbeddedServer
from components.kit.leases import clock

_PAUSE = 0.02  # seconds between two looks


def starved(thread: int | str = "thread-self") -> float:
    """Return the seconds for which a thread, or the main thread of a process, has starved in its life."""
    with suppress(OSError):  # it has ended, or this is no Linux
        return int(Path(f"/proc/{thread}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


class Starvation:
    """
    Watches Redis, and the processes whose ids are the names of files in *folder*; and a thread between them.

        with Starvation(server, folder) as starvation:
            ...
        excused = starvation.between(begin, end, pid, ...)
    """

    def __init__(self, server: EmbeddedServer, folder: Path, *, proxy: int | None = None) -> None:
        self._server, self._folder = server, folder
        self._shared = {proxy} if proxy else set[int]()  # and each Redis
        self._looks: defaultdict[int, list[tuple[float, float]]] = defaultdict(lambda: [(0.0, 0.0)])
        self._is_over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="starvation")

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._is_over.wait(_PAUSE):
            if self._server.pid:
                self._shared.add(self._server.pid)
            processes = {int(path.stem) for path in self._folder.iterdir() if path.stem.isdigit()}
            for thread in self._shared | processes:
                self.note(thread, clock(), starved(thread))

    def note(self, thread: int, at: float, seconds: float) -> None:
        """Note for how many seconds a thread had starved at that time, which it may have written down itself."""
        if seconds:
            self._looks[thread].append((at, seconds))

    def between(self, begin: float, end: float, *processes: int) -> float:
        """
        Return for how many seconds these processes and what they need starved between two instants: together, and
        at most.
        """
        return sum(_growth(sorted(self._looks[each]), begin, end) for each in self._shared.union(processes))


def _growth(looks: list[tuple[float, float]], begin: float, end: float) -> float:
    """From the last look before *begin* to the first one after *end*."""
    last = looks[min(bisect_left(looks, (end, 0.0)), len(looks) - 1)]
    return last[1] - looks[bisect_right(looks, (begin, inf)) - 1][1]
