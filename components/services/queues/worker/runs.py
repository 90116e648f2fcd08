"""
Run: one claimed task on its way through a worker, and the clock of the server.

The worker's loop and the thread of the task share it: the loop sees how long the task has been running, and cancels
it; the task reports its progress.
"""

import logging
import time
from datetime import datetime, timedelta

from components.conf import conf
from components.exceptions import RedisUnavailable
from components.services.counters import observe, sum_up, tally, took
from components.services.queues import Claimed, Consumer, Finished, Progress
from components.services.queues.formats import waited
from components.services.queues.worker.concurrency import Held
from components.services.queues.worker.coroutines import Submitted

logger = logging.getLogger(__name__)

#: The counter for each way to end.
_ENDS = {
    "successful": "tasks:successful",
    "dead": "tasks:failed",
    "expired": "tasks:expired",
    "retry": "tasks:retried",
}
_REPORT_EVERY = 0.5  # seconds between two reports of a task's progress


class ServerClock:
    """Redis' time, continued by this machine's monotonic clock."""

    def __init__(self) -> None:
        self._seen: tuple[datetime, float] | None = None

    def set(self, now: datetime) -> None:
        self._seen = now, time.monotonic()

    def now(self) -> datetime:
        assert self._seen, "no step has returned the time yet"
        at, ticks = self._seen
        return at + timedelta(seconds=time.monotonic() - ticks)


class Run:
    """A run, shared by the worker's loop and the task's thread. Seconds are those of the monotonic clock."""

    def __init__(self, claimed: Claimed, consumer: Consumer, clock: ServerClock) -> None:
        self.claimed = claimed
        #: When it was claimed and started; how long it may run, once that is read, and until when.
        self.claimed_at = time.monotonic()
        self.started_at: float | None = None
        self.timeout: float | None = None
        self.deadline: float | None = None
        self.name = ""
        self.is_cancelled = False
        self.has_expired = False
        #: The latest error for which it was asked when the task is tried again, and the answer.
        self.decided: tuple[BaseException, float | None] | None = None
        self.coroutine: Submitted | None = None
        #: The permit of its concurrency limit, while it has one.
        self.permit: Held | None = None
        self.consumer = consumer
        self._clock = clock
        self._reported_at = 0.0

    @property
    def id(self) -> str:
        return self.claimed.id

    def cancel(self) -> None:
        """Cancel the task: end a coroutine, or let a function know."""
        self.is_cancelled = True
        if self.coroutine:
            self.coroutine.cancel()

    def tallied(self, finished: Finished, seconds: float | None) -> Finished:
        """Count how *finished* has ended, for its queue and its task, and how long it ran and waited; return it."""
        tally(_ENDS[finished.outcome], of=finished.task.queue, seconds=seconds)
        settings = conf()
        if not self.name or not (settings.count_services or settings.metrics):
            return finished
        wait = None
        if self.started_at is not None:
            wait = waited(finished.task.run) + self.started_at - self.claimed_at
        if finished.outcome != "successful":
            tally(f"runs:{finished.outcome}", of=self.name)
        elif settings.metrics:
            sum_up("runs:successful", of=self.name)  # the others are summed up where they are counted
        for name, metric, value in (("runs", "tasks:run", seconds), ("runs-waited", "tasks:wait", wait)):
            if value is not None:
                took(name, value, of=self.name)
                if settings.metrics:
                    observe(metric, value, of=self.name)
        return finished

    def report(self, done: float, total: float | None, note: str) -> None:
        now = time.monotonic()
        if now - self._reported_at < _REPORT_EVERY and done != total:
            return
        self._reported_at = now
        try:
            said = Progress(done, total, note, self._clock.now())
            if not self.consumer.progress(self.claimed, said):
                self.cancel()
        except RedisUnavailable as error:  # progress is only for display
            logger.warning("The progress of task %s was not stored: %s", self.claimed.id, error)
