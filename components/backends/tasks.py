"""
RedisBackend: the backend for TASKS that runs Django's own tasks on the Redis of this project.

    TASKS = {"default": {"BACKEND": "components.backends.tasks.RedisBackend", "QUEUES": [], "OPTIONS": {}}}

Tasks are declared with Django's @task and stored by dotted path; only what that path leads to, if it is
such a task, is ever run. OPTIONS are the fields of conf.QueueOptions. Delivery is at least once: a
task that has started may start again after its worker died, so let it be harmless to run twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.utils import timezone
from django.utils.module_loading import import_string

from components.compat import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskError,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from components.conf import QueueOptions, problems
from components.exceptions import InvalidQueueName, UnknownTask
from components.services.queues import NewTask, State, TaskInfo, TaskQueue
from components.services.queues.tasks import check_queue

_STATUSES: dict[State, TaskResultStatus] = {
    "ready": TaskResultStatus.READY,
    "delayed": TaskResultStatus.READY,
    "running": TaskResultStatus.RUNNING,
    "dead": TaskResultStatus.FAILED,
    "successful": TaskResultStatus.SUCCESSFUL,
}


class RedisBackend(BaseTaskBackend):
    """See the module. Its methods raise RedisUnavailable when Redis does not answer."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.queue = TaskQueue(alias)

    def validate_task(self, task: Task[..., Any]) -> None:
        super().validate_task(task)
        try:
            check_queue(task.queue_name)
        except InvalidQueueName as error:
            raise InvalidTask(str(error)) from None

    def enqueue(  # type: ignore[override]  # the arguments of any task, not of one signature
        self, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[..., Any]:
        """
        Store a call of *task* and return its TaskResult, READY.

        Raises InvalidTask, NotSerializable (a TypeError), BodyTooLarge or RedisUnavailable.
        """
        return self.enqueue_many(task, [(args, kwargs)])[0]

    def enqueue_many(
        self, task: Task[..., Any], calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]
    ) -> list[TaskResult[..., Any]]:
        """
        Store many calls of *task*, each its args and kwargs, in one round trip per 500. Raises as enqueue();
        all are checked before the first is stored.
        """
        self.validate_task(task)
        new = [
            NewTask(
                name=task.module_path,
                args=args,
                kwargs=kwargs,
                queue=task.queue_name,
                priority=int(task.priority),
                at=_aware(task.run_after),
            )
            for args, kwargs in calls
        ]
        results = [self._result(task, info) for info in self.queue.push_many(new)]
        for result in results:
            task_enqueued.send(type(self), task_result=result)
        return results

    def get_result(self, result_id: str) -> TaskResult[..., Any]:
        """
        The TaskResult of that id. Raises TaskResultDoesNotExist if there is none, or none any more;
        UnknownTask if what it names is no longer declared.
        """
        info = self.queue.get(result_id)
        if info is None:
            raise TaskResultDoesNotExist(result_id)
        return self.to_result(info)

    def to_result(self, info: TaskInfo) -> TaskResult[..., Any]:
        """*info* in Django's terms. Raises UnknownTask."""
        task = resolve(info.name).using(
            priority=info.priority,
            queue_name=info.queue,
            run_after=as_set(info.run_after),
            backend=self.alias,
        )
        return self._result(task, info)

    def _result(self, task: Task[..., Any], info: TaskInfo) -> TaskResult[..., Any]:
        result: TaskResult[..., Any] = TaskResult(
            task=task,
            id=info.id,
            status=_STATUSES[info.state],
            enqueued_at=as_set(info.enqueued_at),
            started_at=as_set(info.started_at),
            last_attempted_at=as_set(info.last_attempted_at),
            finished_at=as_set(info.finished_at),
            args=info.args,
            kwargs=info.kwargs,
            backend=self.alias,
            errors=[
                TaskError(exception_class_path=error.exception_class_path, traceback=error.traceback)
                for error in info.errors
            ],
            worker_ids=list(info.worker_ids),
        )
        object.__setattr__(result, "_return_value", info.return_value)  # as Django's own backends do
        return result

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """System check messages for this alias' OPTIONS."""
        return [
            Error(f'TASKS[{self.alias!r}]["OPTIONS"]: {problem}', id="components.E003")
            for problem in problems(QueueOptions, self.options)
        ]


def redis_aliases() -> list[str]:
    """The aliases of TASKS that RedisBackend serves."""
    return [alias for alias in task_backends if isinstance(task_backends[alias], RedisBackend)]


def resolve(name: str) -> Task[..., Any]:
    """The task declared at the dotted path *name*. Raises UnknownTask, which says what is there instead."""
    try:
        found = import_string(name)
    except ImportError as error:
        raise UnknownTask(f"No task {name!r} can be imported: {error}") from error
    if not isinstance(found, Task):
        raise UnknownTask(f"{name!r} is {type(found).__name__}, not a task: declare it with @task.")
    return found


def _aware(run_after: datetime | None) -> datetime | None:
    if run_after is not None and timezone.is_naive(run_after):
        return timezone.make_aware(run_after)
    return run_after


def as_set(instant: datetime | None) -> datetime | None:
    """*instant* as timezone.now() would give it under this project's USE_TZ."""
    if instant is not None and not settings.USE_TZ:
        return timezone.make_naive(instant)
    return instant
