"""
Run one claimed task: from its record to its result.

The steps and signals are those of Django's own backends. Whatever a task raises, and whatever keeps it from starting
(an unknown task, an invalid record), is stored as its failure; a record of a newer release is given back for a newer
worker. Coroutines share one event loop per process.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
import traceback
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import Any, Literal

from django.db import connections
from django.dispatch import Signal

from components.conf import functions
from components.exceptions import (
    BodyTooLarge,
    NotSerializable,
    RedisUnavailable,
    ResultTooLarge,
    TaskCancelled,
    TaskExpired,
    UnknownFormat,
    WorkerDied,
)
from components.kit.compat import TaskContext, TaskResultStatus, task_finished, task_started
from components.kit.translation import counted
from components.services.counters import pattern_of, tally
from components.services.queues import Claimed, Finished, TaskFailure, TaskInfo, TaskRun, normalize
from components.services.queues.arguments import encode_metadata
from components.services.queues.backend import AnyResult, AnyTask, RedisBackend, as_error, as_set
from components.services.queues.chains import run_through
from components.services.queues.formats import write_errors, write_result
from components.services.queues.policy import check_call, current_run, rate_of, retry_after, serves
from components.services.queues.worker.concurrency import Limit
from components.services.queues.worker.coroutines import UNWILLING, Submitted
from components.services.queues.worker.runs import Run, ServerClock

logger = logging.getLogger(__name__)
_LONGEST_SHOWN = 1_000  # characters of an error in a line of the log
_EARLY = 0.02  # seconds by which a task comes before its turn under a rate limit
_NEAR = 0.05  # seconds for which a thread waits
_LATE = 0.01  # seconds that the function may start later than it was counted, without exceeding the rate
_RETRY = 1.0  # seconds until the next try if Redis does not answer
_is_coroutine = lru_cache(maxsize=1_000)(iscoroutinefunction)

#: Has a line for each task that has run.
done = logging.getLogger("components.done")


class Execution:
    """Runs claimed tasks of one backend, in the threads that call run()."""

    def __init__(self, backend: RedisBackend, clock: ServerClock) -> None:
        self.backend = backend
        self.clock = clock
        self._options = backend.queue.options
        functions("run_middleware")  # raises ImproperlyConfigured before anything is claimed

    def run(self, run: Run) -> Finished | Limit | float | None:
        """
        Run the task, and return its end for Redis. Return a Limit if that is reached and the task has to be parked,
        the seconds until its rate has room, and None if this release cannot read the task.

        It has a context of its own, so the language, time zone and variables that it sets are gone afterwards.
        """
        return copy_context().run(self._run, run)

    def _run(self, run: Run) -> Finished | Limit | float | None:
        current_run.set(run)
        serves.set()
        claimed = run.claimed
        try:
            info = claimed.read()
        except UnknownFormat:
            return None
        except (ValueError, KeyError, TypeError) as error:
            return self._unreadable(claimed, error)
        run.name = info.name
        try:
            result = self.backend.to_result(info)
        except Exception as error:
            logger.error("Task %s could not be run: %s", claimed.id, error, exc_info=error)
            return self._failed(run, info, None, error)
        try:
            self._check_start(run, info, result)
        except (TaskExpired, TypeError, WorkerDied) as error:  # as it will be each time
            run.decided = error, None
            return self._failed(run, info, result, error)
        limit = Limit.of(result.task, result.args, result.kwargs, self._options)
        if limit is None:
            return self._start(run, info, result)
        owner, by = f"{info.name} {info.id}", f"{claimed.token}:{claimed.id}"
        with limit.permit(run.consumer, owner=owner, by=by) as run.permit:
            try:
                return self._start(run, info, result) if run.permit else limit
            finally:
                run.permit = None

    def _check_start(self, run: Run, info: TaskInfo, result: AnyResult) -> None:
        """Raise the error of a task that is not to be started."""
        if info.expires_at and self.clock.now() >= info.expires_at:
            run.has_expired = True
            raise TaskExpired(f"It had to start by {info.expires_at:%Y-%m-%d %H:%M:%S} UTC.")
        check_call(result.task, result.args, result.kwargs)
        most = getattr(result.task, "max_crashes", None)
        if most and info.crashes + info.cut_off >= most:
            raise WorkerDied(
                f"{counted(info.crashes + info.cut_off, 'worker')} ended while running it, and it declares "
                f"max_crashes={most}: it is not started again."
            )

    def failed(self, run: Run, error: BaseException) -> Finished:
        """Return the end of a task that *error* kept from finishing. Raises nothing."""
        with suppress(BaseException):  # a text of the error may raise anything
            logger.error("Task %s %s: %s", run.name, run.claimed.id, _shown(error), exc_info=error)
        try:
            info = run.claimed.read()
        except (UnknownFormat, ValueError):
            return self._unreadable(run.claimed, error)
        try:
            return self._failed(run, info, self.backend.to_result(info), error)
        except BaseException:  # noqa: BLE001  (as above; what counts is the first error)
            return self._failed(run, info, None, error)

    def _start(self, run: Run, info: TaskInfo, result: AnyResult) -> Finished | float | None:
        if seconds := _turn_of(result, info.id):
            return seconds
        self._tell(task_started, result)
        try:
            value, written = self._through(run, info, result)
        except UnknownFormat:  # of something that the task has read
            return None
        except BaseException as error:  # SystemExit too: the task has failed, but its worker goes on
            if _is_the_users(error):
                raise
            return self._failed(run, info, result, error)
        object.__setattr__(result, "_return_value", value)
        finished_at = self._end(result, TaskResultStatus.SUCCESSFUL)
        self._tell(task_finished, result)
        claimed = run.claimed
        document = write_result(claimed.record, claimed.run, claimed.errors, finished_at, written)
        kept = getattr(result.task, "result_ttl", None) or self._options.result_ttl
        if done.isEnabledFor(logging.INFO):
            done.info("%s %s succeeded%s", info.name, info.id, _took(run))
        return Finished(claimed, "successful", kept, document)

    def _through(self, run: Run, info: TaskInfo, result: AnyResult) -> tuple[Any, str]:
        """Run the task inside of the middleware, and return its value, and that as JSON."""
        if not functions("run_middleware"):
            return self._written(run, info, result)
        ended: tuple[Any, str] = (None, "null")  # if no middleware calls the task

        def last() -> Any:
            nonlocal ended
            ended = self._written(run, info, result)
            return ended[0]

        def retry_in(error: BaseException) -> float | None:
            return self._retry_in(run, info, result, error)

        self.prepare()
        run_through(TaskRun(task=info, worker_id=run.consumer.id, retry_in=retry_in), last)
        return ended

    def _written(self, run: Run, info: TaskInfo, result: AnyResult) -> tuple[Any, str]:
        value = self._value(run, result)
        if value is None:
            return None, "null"  # most tasks return None, and json is slow for it
        try:
            value = _returned(value)
            written = json.dumps(value)
            if len(written) > self._options.max_result:
                raise ResultTooLarge(
                    f"{info.name} returned {len(written):,} bytes as JSON, and max_result is "
                    f"{self._options.max_result:,}. The task has run and is not tried again; its return value is "
                    "not stored. Keep large data in a file or the database and return its key."
                )
        except Exception as error:
            run.decided = error, None  # a retry would do the work again, for the same value
            raise
        return value, written

    def _retry_in(
        self, run: Run, info: TaskInfo, result: AnyResult | None, error: BaseException
    ) -> float | None:
        """Return the seconds until the next attempt, or None. The answer for an error stays the same."""
        if run.is_cancelled:
            return None
        if run.decided is None or run.decided[0] is not error:
            run.decided = error, retry_after(info, result, error, self._options)
        return run.decided[1]

    def _failed(self, run: Run, info: TaskInfo, result: AnyResult | None, error: BaseException) -> Finished:
        """Return the next attempt, or the final failure."""
        pause, run.decided = self._retry_in(run, info, result, error), None
        failures = [] if run.has_expired else [_failure(error)]  # the run record says that it has expired
        if run.is_cancelled and isinstance(error, CancelledError):
            # The run record says so.
            error, failures = TaskCancelled("The task was cancelled while it was running."), []
        if result is not None:
            result.errors.append(as_error(_failure(error)))
        if pause is not None:
            done.info(
                "%s %s failed%s, attempt %d; again in %.0f s: %s",
                info.name, info.id, _took(run), info.starts, pause, _shown(error),
            )  # fmt: skip
            return Finished(run.claimed, "retry", pause, self._errors([*info.errors, *failures], info))
        finished_at = self.clock.now()
        if result is not None:
            finished_at = self._end(result, TaskResultStatus.FAILED)
            self._tell(task_finished, result)
        done.log(
            # A task that was cancelled, or expired, ended as requested.
            logging.INFO if run.is_cancelled or run.has_expired else logging.ERROR,
            "%s %s failed%s, attempt %d, the last: %s",
            info.name, info.id, _took(run), info.starts, _shown(error),
        )  # fmt: skip
        outcome: Literal["dead", "expired"] = "expired" if run.has_expired else "dead"
        return Finished(run.claimed, outcome, finished_at, self._errors([*info.errors, *failures], info))

    def _unreadable(self, claimed: Claimed, error: BaseException) -> Finished:
        logger.error("Task %s could not be read: %s", claimed.id, error)
        return Finished(claimed, "dead", self.clock.now(), self._errors([_failure(error)]))

    def _errors(self, failures: Sequence[TaskFailure], info: TaskInfo | None = None) -> str:
        left = ""
        if info is not None and info.metadata:
            try:
                left = encode_metadata(info.name, info.metadata)
            except (NotSerializable, BodyTooLarge) as error:
                logger.error("What a middleware left for the next attempt is not stored: %s", error)
        return write_errors(failures, self._options.max_result, left)

    def _tell(self, signal: Signal, result: AnyResult) -> None:
        """Call the receivers of a signal. Nothing that they raise changes the end of the task."""
        try:
            signal.send_robust(sender=type(self.backend), task_result=result)
        except BaseException as error:  # send_robust() stops at SystemExit
            if _is_the_users(error):
                raise
            logger.exception("A receiver of the task %s raised %s.", result.id, type(error).__name__)

    def _end(self, result: AnyResult, status: TaskResultStatus) -> datetime:
        finished_at = self.clock.now()
        object.__setattr__(result, "finished_at", as_set(finished_at))
        object.__setattr__(result, "status", status)
        return finished_at

    def _value(self, run: Run, result: AnyResult) -> Any:
        task = result.task
        context = [TaskContext(task_result=result)] if task.takes_context else []
        timeout = getattr(task, "timeout", None) or self._options.timeout
        run.timeout = math.inf if timeout is None else timeout
        if run.timeout < math.inf:
            run.deadline = time.monotonic() + run.timeout
        if run.is_cancelled:  # while it waited for a thread
            raise CancelledError
        try:
            return self.apply(run, task, *context, *result.args, **result.kwargs)
        finally:
            run.deadline = None

    def apply(self, run: Run, task: AnyTask, /, *args: Any, **kwargs: Any) -> Any:
        """
        Call the function of *task* as a request calls a view: close stale database connections first. Those that the
        last task leaves are closed when the thread goes to rest (TaskWorker's pool).
        """
        if _is_coroutine(task.func):
            return self._await(run, task.func(*args, **kwargs))
        self.prepare()
        return task.func(*args, **kwargs)

    def prepare(self) -> None:
        """Close stale database connections, as a request does before its view."""
        for connection in connections.all(initialized_only=True):
            connection.queries_log.clear()
            connection.close_if_unusable_or_obsolete()

    def _await(self, run: Run, coroutine: Coroutine[Any, Any, Any]) -> Any:
        seconds = run.deadline and run.deadline - time.monotonic()
        if run.deadline:
            run.deadline += UNWILLING  # a coroutine that does not end when it is cancelled is stuck
        # Set before it runs, since it may be cancelled then.
        run.coroutine = submitted = Submitted(coroutine, seconds)
        if run.is_cancelled:
            submitted.cancel()
        return submitted.result()


def _turn_of(result: AnyResult, task_id: str) -> float:
    """
    Count a start as a call of the task's RateLimit, and return 0.0; or return the seconds until the task's turn.
    Raises any error of its rate_key.

    Until then the task is given back, which uses up no attempt. It comes a little early, and its thread waits for the
    exact moment, so that nothing of the rate is lost on the way through the queue.
    """
    limit = rate_of(result.task)
    if limit is None:
        return 0.0
    name = getattr(result.task, "rate_key", None)
    key = "" if name is None else name(*result.args, **result.kwargs)
    try:
        while seconds := limit.ask(key, caller=task_id, margin=_LATE):
            if seconds > _NEAR:
                tally("rates:postponed", of=pattern_of(limit.name))
                return seconds - _EARLY
            time.sleep(seconds)
    except RedisUnavailable as error:
        logger.warning("Could not check whether %r has room: %s", limit, error)
        return _RETRY
    return 0.0


def _took(run: Run) -> str:
    return f" in {time.monotonic() - run.started_at:.3f} s" if run.started_at is not None else ""


def _returned(value: Any) -> Any:
    """Return *value* as JSON stores it. Raises TypeError if it is not JSON, as in Django's own backends."""
    try:
        return normalize(value, "the return value")
    except NotSerializable as error:
        raise TypeError(f"{error} The task has run and is not tried again.") from None


def _shown(error: BaseException) -> str:
    """Return *error* for a line of the log; only its beginning if it is long."""
    try:
        text = repr(error)
    except BaseException:  # noqa: BLE001  (the repr() of a task's error may do anything)
        text = f"{type(error).__name__}, whose repr() failed"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"


def _failure(error: BaseException) -> TaskFailure:
    kind = type(error)
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException:  # noqa: BLE001  (its text, causes and notes may do anything)
        text = "".join(traceback.format_tb(error.__traceback__)) + f"{_shown(error)} (it cannot be printed)"
    return TaskFailure(f"{kind.__module__}.{kind.__qualname__}", text)


def _is_the_users(error: BaseException) -> bool:
    """Return whether it is the Ctrl-C of a user, and not a task's."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()
