"""
TaskWorker: claims tasks, runs them in threads, and hands in what became of them.

One step does both, so that a busy worker makes one round trip per batch. It claims no more than it can
start, hence an idle neighbour never waits for what this one hoards. A step that got no answer is sent
again as it was, and the server knows it by its number; results wait here while Redis is away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from components.backends.tasks import RedisBackend
from components.services.queues import Claimed, Consumer, Finished, Step
from components.services.queues.consumers import MOST, Request
from components.workers.base import UNHEALTHY, Worker
from components.workers.choice import QueueChoice
from components.workers.execution import Execution, ServerClock

logger = logging.getLogger(__name__)

TOO_NEW_DELAY = 5.0  # seconds until a task that a newer release wrote is offered again


class TaskWorker(Worker):
    """Runs the tasks of one RedisBackend, *concurrency* at a time."""

    def __init__(
        self,
        backend: RedisBackend,
        choice: QueueChoice,
        *,
        all_queues: bool = False,
        concurrency: int = 4,
        burst: bool = False,
        max_tasks: int | None = None,
        shutdown_timeout: float = 25.0,
    ) -> None:
        consumer = Consumer(backend.alias, concurrency=concurrency)
        super().__init__(consumer, lease=backend.queue.options.lease)
        self.backend = backend
        self.choice = choice
        self.all_queues = all_queues
        self.concurrency = concurrency
        self.burst = burst
        self.max_tasks = max_tasks
        self.shutdown_timeout = shutdown_timeout
        self.queues = choice.queues
        self._clock = ServerClock()
        self._execution = Execution(backend, self._clock)
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="task")
        self._running: set[Claimed] = set()  # one task may be there twice: lost, and claimed anew
        self._finished: list[Finished] = []
        self._unstarted: list[Claimed] = []
        self._too_new: list[Claimed] = []
        self._unanswered: Request | None = None
        self._claimed = 0
        self._learn_at = 0.0
        self._is_empty = False
        self._is_draining = False

    def running(self) -> Sequence[Claimed]:
        return list(self._running)

    def serves(self) -> Sequence[str]:
        return super().serves() if self.all_queues else self.queues

    def tick(self) -> float:
        if self.is_stopping and self._running and not self._is_draining:
            self._is_draining = True
            logger.info(
                "Stopping: %d running tasks have %g s to end.", len(self._running), self.shutdown_timeout
            )
        self._give_back()
        want = self._want()
        if self._unanswered is None and (want or self._finished or self.has_token):
            finished, self._finished = self._finished[:MOST], self._finished[MOST:]
            self.has_token = False  # where nothing is wanted, the step hands it on to another worker
            self._unanswered = self.consumer.request(self.choice.shares(want), want, finished)
        if self._unanswered is None:
            return self._patience()
        step = self.consumer.advance(self._unanswered)
        self._unanswered = None
        self._clock.set(step.now)
        return self._take(step)

    def _give_back(self) -> None:
        self.consumer.release(self._unstarted)
        self._unstarted.clear()
        self.consumer.release(self._too_new, delay=TOO_NEW_DELAY)
        self._too_new.clear()

    def _want(self) -> int:
        """How many tasks could start now."""
        free = self.concurrency - len(self._running)
        if self.max_tasks is not None:
            free = min(free, self.max_tasks - self._claimed)
        return free if self.may_claim else 0

    def _patience(self) -> float:
        """Seconds that nothing needs to happen in, where all depends on running tasks."""
        if self._stopping_since is None:
            return self._beat_every
        return self._stopping_since + self.shutdown_timeout - time.monotonic()

    def _take(self, step: Step) -> float:
        for task_id in step.lost:
            logger.warning(
                "Task %s had been taken over before it was handed in; this run does not count.", task_id
            )
        if not self.may_claim:  # it was told to stop, or to be quiet, while it asked
            self._unstarted += step.claimed
            return 0.0
        for claimed in step.claimed:
            self._claimed += 1
            self._running.add(claimed)
            self._pool.submit(self._run, claimed)
        self._is_empty = not step.claimed and not self._running
        if self.all_queues and self._learn_queues():
            self._is_empty = False
            return 0.0
        if self._finished or self.has_token:  # they came while an earlier request waited for its answer
            return 0.0
        if not self._want() or step.look_again_at is None:
            return self._patience()
        return (step.look_again_at - step.now).total_seconds()

    def _learn_queues(self) -> bool:
        """Whether there are new queues. A worker with all slots taken asks only now and then."""
        if not self._want() and time.monotonic() < self._learn_at:
            return False
        self._learn_at = time.monotonic() + self._beat_every
        names = self.backend.queue.names()
        news = names != list(self.choice.queues)
        self.queues = self.choice.queues = names
        return news

    def _run(self, claimed: Claimed) -> None:
        try:
            outcome = self._execution.run(claimed)
        except BaseException as error:  # noqa: BLE001  (whatever it is, the task has ended and its worker goes on)
            outcome = self._execution.failed(claimed, error)
        self._inbox.put((claimed, outcome))

    def receive(self, item: tuple[Claimed, Finished | None]) -> None:
        claimed, outcome = item
        self._running.remove(claimed)
        if outcome is not None:
            self._finished.append(outcome)
        else:
            logger.info("Task %s was written by a newer release; giving it back.", claimed.id)
            self._too_new.append(claimed)

    def wants_wake(self) -> bool:
        return self._want() > 0

    def is_done(self) -> bool:
        if self._running or self._finished or self._unstarted or self._too_new or self._awaits_answer():
            return self._is_overdue()
        spent = self.max_tasks is not None and self._claimed >= self.max_tasks
        return self.is_stopping or self.is_retiring or spent or (self.burst and self._is_empty)

    def _awaits_answer(self) -> bool:
        if self._unanswered is None:
            return False
        # Told to stop, it does not wait for Redis to hear that a mere wish was granted: those tasks are taken
        # over when their lease ends, one start the poorer.
        return bool(self._unanswered.finished) or not (self.is_stopping and self.outage)

    def _is_overdue(self) -> bool:
        return self.is_stopping and self._patience() <= 0

    def close(self) -> int:
        unfinished = [*self.running(), *self._unstarted]
        self._pool.shutdown(wait=False)
        unsaid = len(self._finished) + (len(self._unanswered.finished) if self._unanswered else 0)
        if not unfinished and not unsaid:
            return super().close()
        logger.warning(
            "Stopped with %d unfinished tasks, which are given back, and %d whose end Redis was not told; "
            "all of them will run again.",
            len(unfinished),
            unsaid,
        )
        self.consumer.release(unfinished)
        super().close()
        return UNHEALTHY
