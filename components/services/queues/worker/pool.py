"""
Pool: the threads that run a worker's tasks, and all that it holds for them.

The threads take what waits in the order of the claims. Unlike an executor of the standard library it tells what has
begun and what waits, and what waits can be taken back. The threads are daemons: one that is stuck in
a task keeps no process from ending.
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
    """*concurrency* threads, begun as they are needed, that call *serve* with one run after the other."""

    def __init__(self, concurrency: int, serve: Callable[[Run], None]) -> None:
        self._concurrency = concurrency
        self._serve = serve
        self._threads: list[threading.Thread] = []
        self._waiting: SimpleQueue[Run | None] = SimpleQueue()
        #: All that is claimed, the earliest first; a task that was lost and claimed anew is there twice.
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
        """How many runs no thread has taken."""
        return self._waiting.qsize()

    @property
    def idle(self) -> int:
        """How many threads have nothing to do, or will take what waits."""
        return self._concurrency - (len(self.held) - self.waiting)

    def begun(self) -> list[Run]:
        """The runs that threads have begun, the earliest first."""
        return list(takewhile(lambda run: run.started_at is not None, self.held.values()))

    def oldest_waiting(self) -> Run | None:
        return next((run for run in self.held.values() if run.started_at is None), None)

    def let_go(self, claimed: Claimed) -> bool:
        """Hold it no longer; False if that was so."""
        return self.held.pop(claimed, None) is not None

    def take_back(self) -> list[Claimed]:
        """What waits; no thread will begin it."""
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
