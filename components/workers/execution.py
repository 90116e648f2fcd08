"""
Running one claimed task: from its record to what became of it.

The steps and signals are those of Django's own backends. Whatever a task raises, and whatever keeps it from
starting (no such task, a record that is none), becomes a dead task with the reason; a record of a
newer release is given back for a newer worker. Coroutines share one event loop per process.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, reset_queries

from components.backends.tasks import RedisBackend, as_set
from components.compat import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    task_finished,
    task_started,
)
from components.exceptions import UnknownFormat
from components.services.queues import Claimed, Finished, TaskFailure, TaskInfo, normalize
from components.services.queues.records import write_errors, write_result

logger = logging.getLogger(__name__)


class ServerClock:
    """Redis' time, carried on by this machine's monotonic clock."""

    def __init__(self) -> None:
        self._seen: tuple[datetime, float] | None = None

    def set(self, now: datetime) -> None:
        self._seen = now, time.monotonic()

    def now(self) -> datetime:
        assert self._seen, "no step has told the time yet"
        at, ticks = self._seen
        return at + timedelta(seconds=time.monotonic() - ticks)


class Execution:
    """Runs claimed tasks of one backend, in the threads that call run()."""

    def __init__(self, backend: RedisBackend, clock: ServerClock) -> None:
        self.backend = backend
        self.clock = clock

    def run(self, claimed: Claimed) -> Finished | None:
        """Run the task; what to hand in. None: this release cannot read it, give it back."""
        try:
            info = claimed.read()
        except UnknownFormat:
            return None
        except (ValueError, KeyError, TypeError) as error:
            return self.failed(claimed, error)
        try:
            result = self.backend.to_result(info)
        except Exception as error:  # noqa: BLE001  (importing a module runs code of the project, which may raise anything)
            return self.failed(claimed, error, info.errors)
        return self._call(claimed, info, result)

    def failed(self, claimed: Claimed, error: BaseException, earlier: Sequence[TaskFailure] = ()) -> Finished:
        """What to hand in when the task was not called, or its end not written down, because of *error*."""
        logger.error("Task %s could not be run: %s", claimed.id, error, exc_info=error)
        return Finished(claimed, "dead", write_errors([*earlier, _failure(error)]))

    def _call(self, claimed: Claimed, info: TaskInfo, result: TaskResult[..., Any]) -> Finished | None:
        sender = type(self.backend)
        task_started.send_robust(sender=sender, task_result=result)
        try:
            value = normalize(self._value(result), "the return value")
        except UnknownFormat:  # of something that the task has read
            return None
        except BaseException as error:  # SystemExit too: the task has failed, its worker goes on
            if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise  # it was the user's, not the task's
            failure = _failure(error)
            result.errors.append(
                TaskError(exception_class_path=failure.exception_class_path, traceback=failure.traceback)
            )
            self._set(result, TaskResultStatus.FAILED)
            task_finished.send_robust(sender=sender, task_result=result)
            return Finished(claimed, "dead", write_errors([*info.errors, failure]))
        object.__setattr__(result, "_return_value", value)
        finished_at = self._set(result, TaskResultStatus.SUCCESSFUL)
        task_finished.send_robust(sender=sender, task_result=result)
        done = replace(info, finished_at=finished_at, return_value=value)
        return Finished(claimed, "successful", write_result(done))

    def _set(self, result: TaskResult[..., Any], status: TaskResultStatus) -> datetime:
        finished_at = self.clock.now()
        object.__setattr__(result, "finished_at", as_set(finished_at))
        object.__setattr__(result, "status", status)
        return finished_at

    def _value(self, result: TaskResult[..., Any]) -> Any:
        task = result.task
        context: tuple[TaskContext[..., Any], ...] = (
            (TaskContext(task_result=result),) if task.takes_context else ()
        )
        return self.apply(task, *context, *result.args, **result.kwargs)

    def apply(self, task: Task[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call the function of *task*, as a request calls a view: no stale connection before, none left after."""
        if iscoroutinefunction(task.func):
            return _coroutines.run(_with_connections(task.func, *args, **kwargs))
        reset_queries()
        close_old_connections()
        try:
            return task.func(*args, **kwargs)
        finally:
            close_old_connections()


class _EventLoop:
    """An event loop in a thread of its own, from the first coroutine to the end of the process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._started()).result()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run_forever, args=[self._loop], name="coroutines", daemon=True
                ).start()
            return self._loop


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        with suppress(SystemExit, KeyboardInterrupt):  # raised by a task, which has failed; the others go on
            loop.run_forever()


_coroutines = _EventLoop()


async def _with_connections(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    try:
        return await func(*args, **kwargs)
    finally:
        await sync_to_async(close_old_connections)()  # of the thread in which coroutines use the ORM


def _failure(error: BaseException) -> TaskFailure:
    kind = type(error)
    return TaskFailure(f"{kind.__module__}.{kind.__qualname__}", "".join(traceback.format_exception(error)))
