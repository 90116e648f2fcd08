"""
Pool: the threads that run a worker's tasks, and the claims of that worker.

The threads take waiting runs in the order of the claims. Unlike an executor of the standard library, a pool can tell
begun runs from waiting ones, and waiting runs can be taken back. The threads are daemons, so a thread that is stuck
in a task does not keep the process from ending.
"""

import threading
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from queue import SimpleQueue

from components.services.queues import Claimed
from components.services.queues.worker.coroutines import begin_thread
from components.services.queues.worker.runs import Run


class Pool:
    """
    *concurrency* threads, started as they are needed. Each calls *serve* with one run after another, and *rest* when
    there is none.
    """

    def __init__(
        self, concurrency: int, serve: Callable[[Run], None], rest: Callable[[], None] = lambda: None
    ) -> None:
        self._concurrency = concurrency
        self._serve = serve
        self._rest = rest
        self._threads: list[threading.Thread] = []
        self._waiting: deque[Run] = deque()
        self._working = 0  # threads that work, or have been called
        self._calls: SimpleQueue[bool] = SimpleQueue()  # True: work; False: end
        self._guard = threading.Lock()
        #: All claimed runs, the earliest first; a task that was lost and claimed again is in it twice.
        self.held: dict[Claimed, Run] = {}

    def add(self, run: Run) -> None:
        self.held[run.claimed] = run
        self._waiting.append(run)
        with self._guard:
            if self._working >= self._concurrency:
                return
            self._working += 1
            is_new = len(self._threads) < self._working
        if is_new:
            thread = threading.Thread(target=self._work, name=f"task-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._calls.put(True)

    def _work(self) -> None:
        begin_thread()
        while self._calls.get():
            while run := self._next():
                self._serve(run)
            self._rest()

    def _next(self) -> Run | None:
        """Return the next run for a thread, or None: then the thread is no longer one of those that work."""
        with self._guard:
            if self._waiting:
                return self._waiting.popleft()
            self._working -= 1
            return None

    @property
    def waiting(self) -> int:
        """The number of runs that no thread has taken."""
        return len(self._waiting)

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
        with self._guard:
            taken = [run.claimed for run in self._waiting]
            self._waiting.clear()
        for claimed in taken:
            self.let_go(claimed)
        return taken

    def end(self) -> None:
        """Let each thread end when it has nothing more to do."""
        for _thread in self._threads:
            self._calls.put(False)
