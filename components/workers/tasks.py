"""
TaskWorker: claims tasks, runs them in threads, and hands in what became of them.

One step does both, so that a busy worker makes one round trip per batch. It claims what its threads will start
soon (prefetch.py), and gives back what they do not. A step that got no answer is sent again as it was, and the
server knows it by its number; results wait here while Redis is away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence

from components.backends.tasks import RedisBackend
from components.exceptions import TaskTimedOut
from components.services.queues import Claimed, Consumer, Finished, Step
from components.services.queues.consumers import MOST, Request
from components.services.queues.formats import own_lease
from components.services.queues.parking import Parking
from components.workers.base import DRAINED, STUCK, UNHEALTHY, Worker
from components.workers.choice import QueueChoice
from components.workers.concurrency import Limit
from components.workers.execution import Execution
from components.workers.periodic import Ticker
from components.workers.pool import Pool
from components.workers.prefetch import STALE, Prefetch
from components.workers.returns import Returns
from components.workers.runs import Run, ServerClock
from components.workers.suspects import PUT_OFF, WATCHED, Suspects

logger = logging.getLogger(__name__)

TOO_NEW_DELAY = 5.0  # seconds until a task that a newer release wrote is offered again

_ACK_AFTER = 0.01  # seconds that an end may wait for others, to be handed in with them
_TRIM_EVERY = 60.0  # seconds


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
        self._ticker = Ticker(backend, self._clock)
        self._execution = Execution(backend, self._clock, Parking(consumer))
        self._prefetch = Prefetch(concurrency)
        self._pool = Pool(concurrency, self._run)
        self._finished: list[Finished] = []
        self._finished_at = 0.0  # when the first of them came
        self._suspects = Suspects(backend.queue.options.max_crashes)
        self._durations: list[float] = []
        self._returns = Returns(consumer)
        self._admitted: list[Claimed] = []
        self._unanswered: Request | None = None
        self._claimed = 0
        self._look_at = self._learn_at = self._trim_at = 0.0  # when to claim, learn of queues, trim again
        self._is_empty = self._is_draining = self._is_stuck = False

    def running(self) -> Sequence[Claimed]:
        return [*self._pool.held, *self._admitted, *self._returns.all()]

    def cancel(self, task_ids: Sequence[str]) -> None:
        for claimed, run in self._pool.held.items():
            if claimed.id in task_ids:
                run.cancel()

    def describe_running(self) -> Iterable[str]:
        now = time.monotonic()
        for run in self._pool.begun():
            yield f"Task {run.claimed.id} {run.name} has run for {now - (run.started_at or now):.1f} s."

    def serves(self) -> Sequence[str]:
        return super().serves() if self.all_queues else self.queues

    def tick(self) -> float:
        return min(self._ticker.tick(), self._step())

    def _step(self) -> float:
        self._prefetch.learn(self._durations)
        self._durations.clear()
        self._look_over()
        self._claimed -= self._returns.send()
        self._begin()
        if self._unanswered is None:
            if (pause := self._pause()) > 0:
                return pause
            want = min(self._want(), MOST)
            finished, self._finished = self._finished[:MOST], self._finished[MOST:]
            self.has_token = False  # where nothing is wanted, the step hands it on to another worker
            self._unanswered = self.consumer.request(
                self.choice.shares(want), want, finished, take_over=not self.outage.is_recent
            )
        request = self._unanswered
        step = self.consumer.advance(request)
        self._unanswered = None
        self._clock.set(step.now)
        self._take(step, request.want)
        self._claimed -= self._returns.send()
        self._begin()
        self._keep_house()
        return self._pause()

    def _look_over(self) -> None:
        """Give up functions that are stuck, and take back what no thread has started in time."""
        now = time.monotonic()
        for run in self._pool.begun():
            if run.deadline and now > run.deadline:
                self._pool.let_go(run.claimed)
                error = TaskTimedOut(
                    f"It ran longer than its timeout of {run.timeout:g} s; its process is replaced."
                )
                self._add(run.tallied(self._execution.failed(run, error), run.timeout))
                self._is_stuck = True
        oldest = self._pool.oldest_waiting()
        if oldest and (not self.may_claim or self._is_stuck or now - oldest.claimed_at > STALE):
            self._prefetch.was_wrong()
            self._returns.add(self._pool.take_back())
        if self.is_stopping and self._pool.held and not self._is_draining:
            self._is_draining = True
            logger.info(
                "Stopping: %d running tasks have %g s to end.", len(self._pool.held), self.shutdown_timeout
            )

    def _want(self) -> int:
        """How many tasks could start soon."""
        if not self.may_claim or self._is_stuck:
            return 0
        ahead = 0 if self._suspects.are_for_others else self._prefetch.limit
        free = self.concurrency + ahead - len(self._pool.held) - len(self._admitted)
        if self.max_tasks is not None:
            free = min(free, self.max_tasks - self._claimed)
        return max(0, free)

    def _is_hungry(self) -> bool:
        """Whether threads have nothing to do, or will soon have nothing."""
        return self._pool.waiting < max(self._pool.idle, self._prefetch.limit / 2)

    def _pause(self) -> float:
        """The seconds until there is something to ask or tell; 0 is now."""
        now, times = time.monotonic(), [self._patience()]
        if self.has_token:
            return 0.0
        if self._finished:
            at_once = self._is_stuck or not self._pool.held or len(self._finished) >= MOST // 2
            times.append(0.0 if at_once else self._finished_at + _ACK_AFTER - now)
        if self._want() and (self._look_at > now or self._is_hungry()):
            times.append(self._look_at - now)
        if oldest := self._pool.oldest_waiting():
            times.append(oldest.claimed_at + STALE - now)
        for run in self._pool.begun():
            if run.deadline or run.timeout is None:  # its thread has not yet read how long it may run
                times.append(run.deadline - now if run.deadline else STALE)
        return max(0.0, min(times))

    def _patience(self) -> float:
        """Seconds that nothing needs to happen in, where all depends on running tasks."""
        if self._stopping_since is None:
            return self._beat_every
        return self._stopping_since + self.shutdown_timeout - time.monotonic()

    def _take(self, step: Step, want: int) -> None:
        for task_id in step.lost:
            logger.warning(
                "Task %s had been taken over before it was handed in; this run does not count.", task_id
            )
        self._claimed += len(step.claimed)
        found_none = not (step.claimed or step.is_behind)
        self._is_empty = bool(want) and found_none and not (self._pool.held or self._suspects.are_waiting)
        if not self.may_claim:  # it was told to stop, or to be quiet, while it asked
            self._returns.add(step.claimed)
            return
        self._suspects.look(self._pool.held)
        for claimed in self.choice.arranged(step.claimed):
            if own := own_lease(claimed.record):
                self._beat_every = min(self._beat_every, own / 3000)
                self._next_beat = min(self._next_beat, time.monotonic() + self._beat_every)
            delay = self._suspects.refused_for(claimed)
            if delay is None:
                self._admitted.append(claimed)
            else:
                self._returns.add([claimed], delay=delay)
        self._look_at = time.monotonic() + WATCHED if self._returns.at_once else 0.0
        if len(step.claimed) < want and not self._look_at:
            soon = (step.look_again_at - step.now).total_seconds() if step.look_again_at else self._beat_every
            if self._suspects.are_waiting:
                soon = min(soon, PUT_OFF) + WATCHED  # others may have it first
            self._look_at = time.monotonic() + min(soon, self.outage.grace or soon, self._beat_every)

    def _begin(self) -> None:
        """Let threads have what was admitted; what was not is given back by now, and cannot die with it."""
        for claimed in self._admitted:
            run = Run(claimed, self.consumer, self._clock)
            self._suspects.add(run)
            self._pool.add(run)
        self._admitted.clear()

    def _run(self, run: Run) -> None:
        """In a thread of the pool."""
        run.started_at = time.monotonic()
        try:
            outcome = self._execution.run(run)
        except BaseException as error:  # noqa: BLE001  (whatever it is, the task has ended and its worker goes on)
            outcome = self._execution.failed(run, error)
        self._inbox.put((run, outcome, time.monotonic() - run.started_at))

    def _keep_house(self) -> None:
        now = time.monotonic()
        if self.all_queues and (self._want() or now >= self._learn_at):
            self._learn_at = now + self._beat_every
            self._learn_queues()
        if now >= self._trim_at:
            self._trim_at = now + _TRIM_EVERY
            self.consumer.trim(*self.backend.queue.all_names())

    def _learn_queues(self) -> None:
        names = self.backend.queue.names()
        if names != list(self.choice.queues):
            self.queues = self.choice.queues = names
            self._look_at, self._is_empty = 0.0, False

    def receive(self, item: tuple[Run, Finished | Limit | None, float]) -> None:
        run, outcome, seconds = item
        if not self._pool.let_go(run.claimed):
            return  # it was given up
        self._durations.append(seconds)
        if isinstance(outcome, Finished):
            self._add(run.tallied(outcome, seconds))
        elif outcome:
            self._returns.park(run.claimed, outcome)
        else:
            logger.info("Task %s was written by a newer release; giving it back.", run.claimed.id)
            self._returns.add([run.claimed], delay=TOO_NEW_DELAY)

    def _add(self, outcome: Finished) -> None:
        if not self._finished:
            self._finished_at = time.monotonic()
        self._finished.append(outcome)

    def wants_wake(self) -> bool:
        return self._want() > 0 and not self._suspects.are_for_others  # what it gave back is for others first

    def is_done(self) -> bool:
        if self._finished or self._returns or self._admitted or self._awaits_answer():
            return self._is_overdue()
        if self._is_stuck:
            return True
        if self._pool.held:
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
        self._returns.add(self._pool.take_back())
        self._pool.end()
        unfinished = self.running()
        unsaid = len(self._finished) + (len(self._unanswered.finished) if self._unanswered else 0)
        if not unfinished and not unsaid:
            super().close()
            return STUCK if self._is_stuck else DRAINED
        logger.warning(
            "Stopped with %d unfinished tasks, which are given back, and %d whose end Redis was not told; "
            "all of them will run again.",
            len(unfinished),
            unsaid,
        )
        self.consumer.release(unfinished)
        super().close()
        return STUCK if self._is_stuck else UNHEALTHY
