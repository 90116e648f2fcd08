"""
Chains of middleware: functions around enqueueing, and around each run of a task; docs/queues.md has examples.
COMPONENTS["ENQUEUE_MIDDLEWARE"] and COMPONENTS["RUN_MIDDLEWARE"] list their dotted paths. What a middleware returns
is ignored: call_next() returns what was stored, or what the task returned, even if the next one forgets to return it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from components.conf import functions
from components.exceptions import NotEnqueued
from components.services.queues.facts import TaskInfo
from components.services.queues.new_task import NewTask, named

#: Stores tasks, and returns them as they were stored: instead of a task whose unique key is taken, the one that has
#: it; instead of a tick that was taken, None.
CallNext: TypeAlias = Callable[[Iterable[NewTask]], list[TaskInfo | None]]


@dataclass(frozen=True, kw_only=True)
class TaskRun:
    """One run of a task, for the middleware around it."""

    task: TaskInfo
    worker_id: str
    #: Return the seconds until the next attempt if the run fails with this error, or None if the failure is final.
    retry_in: Callable[[BaseException], float | None] = field(repr=False)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1 on. It begins again when a dead task is sent again."""
        return self.task.starts

    @property
    def metadata(self) -> dict[str, str]:
        """
        The metadata that the task was enqueued with, or those that its latest failed attempt has left.

        If this run fails, what is in here by then is stored for the next attempt.
        """
        return self.task.metadata


def enqueue_through(tasks: Iterable[NewTask], store: CallNext) -> list[TaskInfo | None]:
    """
    Call *store* with *tasks* inside of the chain around enqueueing, and return what it returned.

    Raises NotEnqueued, and what a middleware raises. If it raises before it calls the next one, nothing is stored.
    """
    given = [named(task) for task in tasks]
    stored: list[TaskInfo | None] | None = None

    def last(tasks: Iterable[NewTask]) -> list[TaskInfo | None]:
        nonlocal stored
        new = list(tasks)
        if [(task.id, task.name) for task in new] != [(task.id, task.name) for task in given]:
            raise NotEnqueued(
                'Nothing was stored: a middleware of COMPONENTS["ENQUEUE_MIDDLEWARE"] passed on other tasks than it '
                "was given. It may replace their fields, except for id and name."
            )
        stored = store(new)
        return stored

    def inside(
        middleware: Callable[..., object], call_next: CallNext, tasks: Iterable[NewTask]
    ) -> list[TaskInfo | None]:
        middleware(list(tasks), call_next)
        if stored is None:
            raise NotEnqueued(
                'Nothing was stored: a middleware of COMPONENTS["ENQUEUE_MIDDLEWARE"] did not call call_next(tasks), '
                "or suppressed its error. To refuse tasks, raise an error."
            )
        return stored

    call: CallNext = last
    for middleware in reversed(functions("enqueue_middleware") if given else ()):
        call = partial(inside, middleware, call)
    return call(given)


def run_through(run: TaskRun, last: Callable[[], Any]) -> None:
    """Call *last* inside of the chain around runs."""
    value: Any = None

    def keep() -> Any:
        nonlocal value
        value = last()
        return value

    def inside(middleware: Callable[..., object], call_next: Callable[[], Any]) -> Any:
        middleware(run, call_next)
        return value

    call = keep
    for middleware in reversed(functions("run_middleware")):
        call = partial(inside, middleware, call)
    call()
