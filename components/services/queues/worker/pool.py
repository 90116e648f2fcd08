"""
Pool: the threads that run a worker's tasks, and the claims of that worker.

The threads take waiting runs in the order of the claims. Unlike an executor of the standard library, a pool can tell
begun runs from waiting ones, and waiting runs can be taken back. The threads are daemons, so a thread that is stuck
in a task does not keep the process from ending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from queue import Empty, SimpleQueue

from components.services.queues import Claimed
from components.services.queues.worker.coroutines import begin_thread
from components.services.queues.worker.runs import Run


class Pool:
    """*concurrency* threads, started as they are needed, that call *serve* with one run after another."""

    def __init__(self, concurrency: int, serve: Callable[[Run], None]) -> None:
        self._concurrency = concurrency
        self._serve = serve
        self._threads: list[threading.Thread] = []
        self._waiting: SimpleQueue[Run | None] = SimpleQueue()
        #: All claimed runs, the earliest first; a task that was lost and claimed again is in it twice.
        self.held: dict[Claimed, Run] = {}

    def add(self, run: Run) -> None:
        self.held[run.claimed] = run
        self._waiting.put(run)
        if len(self._threads) < min(self._concurrency, len(self.held)):
            thread = threading.Thread(target=self._work, name=f"task-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        begin_thread()
        while run := self._waiting.get():
            self._serve(run)

    @property
    def waiting(self) -> int:
        """The number of runs that no thread has taken."""
        return self._waiting.qsize()

    @property
    def idle(self) -> int:
        """The number of threads that have nothing to do, or are about to take waiting runs."""
        return self._concurrency - (len(self.held) - self.waiting)

    def begun(self) -> list[Run]:
        """Return the runs that threads have begun, the earliest first."""
        return list(takewhile(lambda run: run.started_at is not None, self.held.values()))

    def oldest_waiting(self) -> Run | None:
        return next((run for run in self.held.values() if run.started_at is None), None)

    def let_go(self, claimed: Claimed) -> bool:
        """Stop holding a run; return False if it was not held."""
        return self.held.pop(claimed, None) is not None

    def take_back(self) -> list[Claimed]:
        """Take back all waiting runs: return them, and no thread will begin them."""
        taken: list[Claimed] = []
        with suppress(Empty):
            while run := self._waiting.get_nowait():
                self.let_go(run.claimed)
                taken.append(run.claimed)
        return taken

    def end(self) -> None:
        """Let each thread end when it has nothing more to do."""
        for _thread in self._threads:
            self._waiting.put(None)
