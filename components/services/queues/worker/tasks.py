"""
TaskWorker: claims tasks, runs them in threads, and acknowledges them.

One step acknowledges and claims, so a busy worker makes one round trip per batch. It claims the tasks that its
threads will start soon (choice.py), and gives back those that they do not start. A step without an answer is sent
again unchanged, and the server recognises it by its number. While Redis is away, results wait here. Ends that Redis
refuses to store are sent apart (refused_ends.py), so that they do not block others.

A function that has timed out cannot be ended, only its process can. The worker then claims nothing more, lets the
other tasks finish, and ends. Reporting the failure is the last thing it does, so that no other attempt begins while
the function still runs.
"""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from django.db import close_old_connections

from components.exceptions import RedisUnavailable, StepRefused, TaskTimedOut
from components.services.queues import Claimed, Consumer, Finished, Step
from components.services.queues.backend import RedisBackend
from components.services.queues.consumer import MOST, Request
from components.services.queues.formats import own_lease
from components.services.queues.worker.choice import BATCH, STALE, Prefetch, QueueChoice
from components.services.queues.worker.concurrency import Limit
from components.services.queues.worker.crash_suspects import PUT_OFF, WATCHED, Suspects
from components.services.queues.worker.execution import Execution
from components.services.queues.worker.give_back import GivenBack
from components.services.queues.worker.periodic import Ticker
from components.services.queues.worker.pool import Pool
from components.services.queues.worker.refused_ends import RefusedEnds, is_refused
from components.services.queues.worker.runs import Run, ServerClock
from components.services.queues.worker.worker import Worker
from components.workers.loop import DRAINED, STUCK, UNHEALTHY
from components.workers.outage import sentence

logger = logging.getLogger(__name__)

TOO_NEW_DELAY = 5.0  # seconds until a task that a newer release wrote is offered again

_ACK_AFTER = 0.01  # seconds that an end may wait for others, to be sent with them
_TRIM_EVERY = 60.0  # seconds
_MOST_BYTES = 8 * 1024 * 1024  # of results and errors in one request; a single one may be larger
#: If a request with acks gets no answer so many times in a row, although the heartbeats before it do, the acks are
#: sent one by one.
_CUT_LOSS = 3
#: Seconds from the last request of a process, which ends at once, until its tasks may start elsewhere.
_PARTED = 1.0


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
        self._execution = Execution(backend, self._clock)
        self._prefetch = Prefetch(concurrency)
        self._pool = Pool(concurrency, self._run, rest=self._rest)
        self._finished: list[Finished] = []
        self._finished_at = 0.0  # when the first of them came
        self._suspects = Suspects(backend.queue.options.max_crashes)
        self._durations: list[float] = []
        self._given_back = GivenBack(consumer)
        self._admitted: list[Claimed] = []
        self._unanswered: Request | None = None
        self._unheard = 0  # how often in a row the request got no answer
        self._refused = RefusedEnds(consumer, self._clock)
        #: Functions that have timed out and still run, with their failures; and since when there are any.
        self._stuck: dict[Claimed, Finished] = {}
        self._stuck_since = 0.0
        self._may_part = False  # the stuck functions have to end now, and Redis has just answered
        self._left_behind: list[Run] = []  # tasks that still run when the worker has closed
        self._claimed = 0
        self._look_at = self._learn_at = self._trim_at = 0.0  # when to claim, learn of queues, trim again
        self._is_empty = self._is_draining = False

    def running(self) -> Sequence[Claimed]:
        return [*self._pool.held, *self._admitted, *self._given_back.all(), *self._refused.tasks()]

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
        self._prepare_to_part()
        self._claimed -= self._given_back.send()
        self._begin()
        if self._unanswered is None:
            if (pause := self._pause()) > 0:
                return pause
            want, number = min(self._want(), BATCH), how_many_fit(self._finished)
            finished, self._finished = self._finished[:number], self._finished[number:]
            self.has_token = False  # if nothing is wanted, the step passes the token on to another worker
            self._unanswered = self.consumer.request(
                self.choice.shares(want), want, finished, take_over=not self.outage.is_recent
            )
        request = self._unanswered
        step = self._advance(request)
        self._unanswered, self._unheard = None, 0
        self._clock.set(step.now)
        self._take(step, request.want)
        self._claimed -= self._given_back.send()
        self._begin()
        for task_id in self._refused.send():
            logger.warning("The end of task %s was stored before, or the task had been taken over.", task_id)
        self._keep_house()
        return self._pause()

    def _advance(self, request: Request) -> Step:
        """
        Send *request*. If Redis refuses its acks, or never answers it although it answers others, send the acks one
        by one. The rest is sent under the same number, so Redis recognises it if it got through before.
        """
        try:
            return self.consumer.advance(request)
        except (RedisUnavailable, StepRefused) as error:
            self._unheard += 1
            if not request.finished or not (is_refused(error) or self._unheard >= _CUT_LOSS):
                raise
            logger.warning(
                "Redis refused the ends of %d tasks together; sending them one by one: %s",
                len(request.finished),
                sentence(error),
            )
            self._refused.add(request.finished)
            self._unanswered = replace(request, finished=())
            self._unheard = 0
            return self.consumer.advance(self._unanswered)

    def _look_over(self) -> None:
        """Give up functions that are stuck, and take back tasks that no thread has started in time."""
        now = time.monotonic()
        for run in self._pool.begun():
            deadline = run.deadline  # its thread may remove it
            if deadline and now > deadline and run.claimed not in self._stuck:
                self._give_up(run)
        oldest = self._pool.oldest_waiting()
        if oldest and (not self.may_claim or self._stuck or now - oldest.claimed_at > STALE):
            self._prefetch.was_wrong()
            self._given_back.add(self._pool.take_back())
        if self.is_stopping and self._pool.held and not self._is_draining:
            self._is_draining = True
            logger.info(
                "Stopping: %d running tasks have %g s to end.", len(self._pool.held), self.shutdown_timeout
            )

    def _give_up(self, run: Run) -> None:
        """Give up a function that has timed out and cannot be ended: this process has to end soon."""
        error = TaskTimedOut(f"It ran longer than its timeout of {run.timeout:g} s; its process is replaced.")
        failed = run.tallied(self._execution.failed(run, error), run.timeout)
        if failed.outcome == "retry":
            failed = failed._replace(number=max(cast(float, failed.number), _PARTED))
        if not self._stuck:
            self._stuck_since = time.monotonic()
            logger.warning(
                "Taking no more tasks; the %d others that run have %g s to end, then this process is replaced.",
                len(self._pool.begun()) - 1,
                self.shutdown_timeout,
            )
        self._stuck[run.claimed] = failed

    def _prepare_to_part(self) -> None:
        """
        Find out whether a process with stuck functions may be replaced. Redis has to answer a heartbeat first,
        because the ends of the tasks have to be stored, and the next process cannot start without Redis.
        """
        self._may_part = False
        had_time = time.monotonic() >= self._stuck_since + self.shutdown_timeout
        are_alone = len(self._pool.held) <= len(self._stuck)
        if self._stuck and (had_time or are_alone):
            self._next_beat = 0.0
            self.beat()
            self._may_part = True

    def _want(self) -> int:
        """Return how many tasks could start soon."""
        if not self.may_claim or self._stuck:
            return 0
        ahead = 0 if self._suspects.are_for_others else self._prefetch.limit
        free = self.concurrency + ahead - len(self._pool.held) - len(self._admitted)
        if self.max_tasks is not None:
            free = min(free, self.max_tasks - self._claimed)
        return max(0, free)

    def _pause(self) -> float:
        """Return the seconds until the next step is needed; 0 is now."""
        now, times = time.monotonic(), [self._patience(), self._refused.pause()]
        if self.has_token:
            return 0.0
        if self._finished:
            at_once = not self._pool.held or len(self._finished) >= MOST // 2
            times.append(0.0 if at_once else self._finished_at + _ACK_AFTER - now)
        # Threads have nothing to do, or soon will.
        is_hungry = self._pool.waiting < max(self._pool.idle, self._prefetch.limit / 2)
        if self._want() and (self._look_at > now or is_hungry):
            times.append(self._look_at - now)
        if oldest := self._pool.oldest_waiting():
            times.append(oldest.claimed_at + STALE - now)
        if self._stuck and not self._may_part:  # otherwise it waits for ends that Redis has refused
            times.append(self._stuck_since + self.shutdown_timeout - now)
        for run in self._pool.begun():
            deadline = run.deadline
            if run.claimed in self._stuck:
                continue
            if deadline or run.timeout is None:  # its thread has not yet read how long it may run
                times.append(deadline - now if deadline else STALE)
        return max(0.0, min(times))

    def _patience(self) -> float:
        """Return the seconds until something has to happen, if everything depends on running tasks."""
        if self._stopping_since is None:
            return self._beat_every
        return self._stopping_since + self.shutdown_timeout - time.monotonic()

    def _warn_of_lost(self, task_ids: Iterable[str]) -> None:
        for task_id in task_ids:
            logger.warning(
                "Task %s had been taken over before it was handed in; this run does not count.", task_id
            )

    def _take(self, step: Step, want: int) -> None:
        self._warn_of_lost(step.lost)
        self._claimed += len(step.claimed)
        found_none = not (step.claimed or step.is_behind)
        self._is_empty = bool(want) and found_none and not (self._pool.held or self._suspects.are_waiting)
        if not self.may_claim:  # it was told to stop, or to be quiet, during the request
            self._given_back.add(step.claimed)
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
                self._given_back.add([claimed], delay=delay)
        self._look_at = time.monotonic() + WATCHED if self._given_back.at_once else 0.0
        if len(step.claimed) < want and not self._look_at:
            soon = (step.look_again_at - step.now).total_seconds() if step.look_again_at else self._beat_every
            if self._suspects.are_waiting:
                soon = min(soon, PUT_OFF) + WATCHED  # others may have it first
            self._look_at = time.monotonic() + min(soon, self.outage.grace or soon, self._beat_every)

    def _begin(self) -> None:
        """Pass admitted tasks to the threads. The others have been given back, so they cannot die with these."""
        for claimed in self._admitted:
            run = Run(claimed, self.consumer, self._clock)
            self._suspects.add(run)
            self._pool.add(run)
        self._admitted.clear()

    def _run(self, run: Run) -> None:
        run.started_at = time.monotonic()
        try:
            outcome = self._execution.run(run)
        except BaseException as error:  # noqa: BLE001  (whatever it is, the task has ended and its worker goes on)
            outcome = self._execution.failed(run, error)
        self._inbox.put((run, outcome, time.monotonic() - run.started_at))

    def _rest(self) -> None:
        """Close stale database connections; called in a thread of the pool that has nothing more to do."""
        try:
            close_old_connections()
        except BaseException:
            logger.exception("A database connection could not be closed.")

    def _keep_house(self) -> None:
        now = time.monotonic()
        if self.all_queues and (self._want() or now >= self._learn_at):
            self._learn_at = now + self._beat_every
            names = self.backend.queue.names()
            if names != list(self.choice.queues):
                self.queues = self.choice.queues = names
                self._look_at, self._is_empty = 0.0, False
        if now >= self._trim_at:
            self._trim_at = now + _TRIM_EVERY
            self.consumer.trim(*self.backend.queue.all_names())

    def receive(self, item: tuple[Run, Finished | Limit | float | None, float]) -> None:
        run, outcome, took = item
        if run.claimed in self._stuck or not self._pool.let_go(run.claimed):
            return  # it was given up: its failure is sent when the process ends
        self._durations.append(took)
        if isinstance(outcome, Finished):
            if not self._finished:
                self._finished_at = time.monotonic()
            self._finished.append(run.tallied(outcome, took))
        elif isinstance(outcome, float):
            self._given_back.add([run.claimed], delay=outcome)
        elif outcome:
            self._given_back.park(run.claimed, outcome)
        else:
            logger.info("Task %s was written by a newer release; giving it back.", run.claimed.id)
            self._given_back.add([run.claimed], delay=TOO_NEW_DELAY)

    def wants_wake(self) -> bool:
        # Tasks that it gave back are for other workers first.
        return self._want() > 0 and not self._suspects.are_for_others

    def is_done(self) -> bool:
        if self._finished or self._given_back or self._admitted or self._refused or self._awaits_answer():
            return self._is_overdue()
        if self._stuck:
            return (self._may_part and not self.outage) or self._is_overdue()
        if self._pool.held:
            return self._is_overdue()
        spent = self.max_tasks is not None and self._claimed >= self.max_tasks
        return self.is_stopping or self.is_retiring or spent or (self.burst and self._is_empty)

    def _awaits_answer(self) -> bool:
        if self._unanswered is None:
            return False
        # A worker that has to stop does not wait to learn whether a request for tasks was granted: such tasks are
        # taken over when their leases end, and have lost one start.
        return bool(self._unanswered.finished) or not (self.is_stopping and self.outage)

    def _is_overdue(self) -> bool:
        return self.is_stopping and self._patience() <= 0

    def close(self) -> int:
        self._given_back.add(self._pool.take_back())
        self._pool.end()
        self._left_behind = list(self._pool.held.values())
        cut_off = len(self._left_behind) - len(self._stuck)
        waiting = [*self._admitted, *self._given_back.all(), *self._refused.tasks()]
        unsaid = len(self._finished) + (len(self._unanswered.finished) if self._unanswered else 0)
        unsaid += len(self._refused)
        if waiting or cut_off or unsaid:
            logger.warning(
                "Stopped with %d unfinished tasks, which are given back, and %d whose end Redis was not told; "
                "all of them will run again.",
                len(waiting) - len(self._refused) + cut_off,
                unsaid,
            )
            self.consumer.release(waiting)
        if not self._left_behind:
            super().close()
        if self._stuck:
            return STUCK
        return UNHEALTHY if waiting or cut_off or unsaid else DRAINED

    def part(self) -> None:
        if not self._left_behind:
            return
        left, self._left_behind = self._left_behind, []
        for run in left:
            if permit := run.permit:
                permit.end_soon(_PARTED)
        begun = [run.claimed for run in left if run.claimed not in self._stuck]
        try:
            self.consumer.release(begun, begun=begun)
            failed = list(self._stuck.values())
            while failed:
                number = how_many_fit(failed)
                self._warn_of_lost(self.consumer.advance(self.consumer.request({}, 0, failed[:number])).lost)
                del failed[:number]
            self.consumer.leave()
        except (RedisUnavailable, StepRefused) as error:
            logger.warning("%s What still ran is taken over when its lease ends.", sentence(error))


def how_many_fit(finished: Sequence[Finished]) -> int:
    """Return how many of *finished*, from the first on, fit into one request: at least one, if there are any."""
    size = 0
    for number, done in enumerate(finished[:MOST]):
        size += len(done.document)
        if number and size > _MOST_BYTES:
            return number
    return min(len(finished), MOST)
