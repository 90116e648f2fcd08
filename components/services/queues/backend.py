"""
RedisBackend: the backend for TASKS that runs Django's own tasks on the Redis of this project.

    TASKS = {"default": {"BACKEND": "components.tasks.RedisBackend", "QUEUES": [], "OPTIONS": {}}}

Tasks are declared with Django's @task and stored by dotted path. A worker runs only a task of a module that belongs
to an installed app, is imported while the apps are loaded, or is named by COMPONENTS["TASK_MODULES"]; it imports no
other because of a stored name. OPTIONS are the fields of conf.QueueOptions. Delivery is at least once: a task that
has started may start again after its worker died, so write tasks that may run twice.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from functools import lru_cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeAlias

from asgiref.sync import sync_to_async
from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.utils import timezone

from components.conf import QueueOptions, conf, functions, problems
from components.exceptions import InvalidName, UnknownTask
from components.kit.compat import (
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
from components.kit.decoding import aware
from components.kit.ids import id_of
from components.services.queues import NewTask, State, TaskFailure, TaskInfo, TaskQueue
from components.services.queues.chains import enqueue_through
from components.services.queues.commits import WaitingCalls, waiting_calls
from components.services.queues.new_task import CheckedTask, check_queue, named
from components.services.queues.policy import PolicyTask, check_call, check_run_after, unique_key

logger = logging.getLogger(__name__)

AnyTask: TypeAlias = "Task[..., Any]"
AnyResult: TypeAlias = "TaskResult[..., Any]"
#: Calls of a task, each its args and kwargs.
Calls: TypeAlias = Iterable[tuple[Sequence[Any], Mapping[str, Any]]]

#: By name, priority, queue and alias: the declared task, and a copy of it as it was enqueued. So the worker need not
#: make a copy for each task that it runs.
_variants: dict[tuple[str, int, str, str], tuple[AnyTask, AnyTask]] = {}
_MOST_VARIANTS = _MOST_KNOWN = 1_000
#: The modules that declare tasks and were imported while the apps were loaded, as in every process of this site.
loaded_with_apps = set[str]()


_STATUSES: dict[State, TaskResultStatus] = {
    "ready": TaskResultStatus.READY,
    "delayed": TaskResultStatus.READY,
    "running": TaskResultStatus.RUNNING,
    "dead": TaskResultStatus.FAILED,
    "successful": TaskResultStatus.SUCCESSFUL,
}


class RedisBackend(BaseTaskBackend):
    """A backend for TASKS. Its methods raise RedisUnavailable when Redis does not answer."""

    task_class = PolicyTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.queue = TaskQueue(alias)
        self._queues_given = params.get("QUEUES", [])
        #: By the id() of a task: the task, which keeps that id while it is held here, and what _plain() has found.
        self._known: dict[int, tuple[AnyTask, CheckedTask | None]] = {}

    def validate_task(self, task: AnyTask) -> None:
        if not apps.ready:
            loaded_with_apps.add(task.func.__module__)
        if apps.apps_ready and not _is_of_an_app("components"):
            raise ImproperlyConfigured(f'{_without_app(self.alias)} Add "components" to INSTALLED_APPS.')
        seen: Any = task
        if isinstance(seen.run_after, timedelta):  # Django's documentation allows it, and its check does not
            names = ("func", "takes_context", "priority", "queue_name")
            seen = SimpleNamespace(run_after=None, **{name: getattr(task, name) for name in names})
        super().validate_task(seen)
        check_run_after(task.run_after)
        try:
            check_queue(task.queue_name)
        except InvalidName as error:
            raise InvalidTask(str(error)) from None

    def enqueue(  # type: ignore[override]  # the arguments of any task, not of one signature
        self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AnyResult:
        """
        Store a call of *task* and return its TaskResult, READY.

        Raises InvalidTask, TypeError for arguments that the function cannot take, NotSerializable (a TypeError too),
        BodyTooLarge or RedisUnavailable.
        """
        plain = None if functions("enqueue_middleware") or self._database(task) else self._plain(task)
        if plain is None:
            return self.enqueue_many(task, [(args, kwargs)])[0]
        check_call(task, args, kwargs)
        info = self.queue.enqueue(plain.called_with(args, kwargs, self.queue.options))
        result = self._result(task, info)
        task_enqueued.send_robust(type(self), task_result=result)
        return result

    def enqueue_many(self, task: AnyTask, calls: Calls) -> list[AnyResult]:
        """
        Store many calls of *task*, each its args and kwargs, in one round trip per 500, and return their results.

        All are checked before the first is stored. For a call whose unique key an unfinished task has, the result is
        that task's, and no signal is sent. Errors of the signal's receivers are logged and not raised, since the
        calls are stored. Raises as enqueue().

        In a transaction, with on_commit, the ids of the results are final, and the rest is filled in when the calls
        are stored, after the commit. If an unfinished task has the unique key of a call by then, the call is not
        stored, and its result keeps None as enqueued_at. If Redis is away then, the data stay committed, and Django
        logs the RedisUnavailable, which lists the ids of the calls that are lost.
        """
        new = self._checked(task, calls)
        if database := self._database(task):
            return self._enqueue_on_commit(task, new, database)
        return self.store(task, new)

    async def aenqueue(  # type: ignore[override]  # as above
        self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AnyResult:
        """enqueue(), awaited. It waits for a commit only if on_commit names the database: see docs/queues.md."""
        is_named = isinstance(self._on_commit(task), str)
        plain = None if functions("enqueue_middleware") or is_named else self._plain(task)
        if plain is None:
            return (await self.aenqueue_many(task, [(args, kwargs)]))[0]
        check_call(task, args, kwargs)
        info = await self.queue.aenqueue(plain.called_with(args, kwargs, self.queue.options))
        result = self._result(task, info)
        await task_enqueued.asend_robust(type(self), task_result=result)
        return result

    async def aenqueue_many(self, task: AnyTask, calls: Calls) -> list[AnyResult]:
        """enqueue_many(), awaited, as aenqueue() is."""
        calls = list(calls)
        if isinstance(self._on_commit(task), str):  # transactions belong to threads
            return await sync_to_async(self.enqueue_many)(task, calls)
        new = self._checked(task, calls)
        if functions("enqueue_middleware"):  # they may block
            return await sync_to_async(self.store)(task, new)
        results, news = self._results(task, new, await self.queue.apush_many(new))
        for result in news:
            await task_enqueued.asend_robust(type(self), task_result=result)
        return results

    def check_task(self, task: AnyTask) -> None:
        """Raise InvalidTask if *task* is not valid here, or if no worker could run it."""
        self.validate_task(task)
        if not _is_known(task.func.__module__):
            raise InvalidTask(
                f"Workers cannot run {task.module_path!r}: {_UNKNOWN.format(task.func.__module__)}"
            )

    def _plain(self, task: AnyTask) -> CheckedTask | None:
        """
        Return *task*, checked and without arguments, if enqueue.lua can store its calls at once; else None.

        Tasks never change, so each is checked only when it is first enqueued. Raises InvalidTask.
        """
        known = self._known.get(id(task))
        if known is None or known[0] is not task:
            self.check_task(task)
            is_own = task.backend == self.alias and type(task.priority) is int and task.run_after is None
            plain = None
            if is_own and not getattr(task, "unique", False):
                checked = CheckedTask(self.new_task(task, (), {}), self.queue.options)
                plain = checked if checked.is_plain else None
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[id(task)] = task, plain
        return known[1]

    def _checked(self, task: AnyTask, calls: Calls) -> list[NewTask]:
        self.check_task(task)
        calls = list(calls)
        for args, kwargs in calls:
            check_call(task, args, kwargs)
        return [named(self.new_task(task, args, kwargs)) for args, kwargs in calls]

    def _on_commit(self, task: AnyTask) -> bool | str:
        on_commit = getattr(task, "on_commit", None)
        return self.queue.options.on_commit if on_commit is None else on_commit

    def _database(self, task: AnyTask) -> str | None:
        """Return the database whose transaction is open here and which calls of *task* wait for; else None."""
        on_commit = self._on_commit(task)
        if not on_commit:
            return None
        database = DEFAULT_DB_ALIAS if on_commit is True else on_commit
        blocks: list[Any] = connections[database].atomic_blocks
        # As for durable blocks, that of a TestCase does not count.
        return None if all(block._from_testcase for block in blocks) else database

    def store(self, task: AnyTask, new: Iterable[NewTask]) -> list[AnyResult]:
        """Push *new*, which are calls of *task*, and return the results of those that were stored."""
        new = [named(each) for each in new]
        results, news = self._results(task, new, self.queue.push_many(new))
        self._tell(news)
        return results

    def new_task(self, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewTask:
        """Return a call of *task* in the terms of the queue."""
        run_after = task.run_after
        delay = max(0.0, run_after.total_seconds()) if isinstance(run_after, timedelta) else None
        expires = getattr(task, "expires", None)
        if isinstance(expires, timedelta):
            expires = expires.total_seconds()
        return NewTask(
            name=task.module_path,
            args=args,
            kwargs=kwargs,
            queue=task.queue_name,
            priority=int(task.priority),
            at=aware(run_after) if isinstance(run_after, datetime) else None,
            delay=delay,
            lease=getattr(task, "lease", None),
            unique=unique_key(task, args, kwargs),
            expires=aware(expires) if isinstance(expires, datetime) else expires,
            sensitive=getattr(task, "sensitive", False),
        )

    def _enqueue_on_commit(self, task: AnyTask, new: Sequence[NewTask], database: str) -> list[AnyResult]:
        """
        Store *new* after the commit. Return results that have their final ids, and are filled in then.

        The middleware is around the promise, so that its errors are those of enqueue().
        """
        promised: list[AnyResult] = []

        def promise(new: Iterable[NewTask]) -> list[TaskInfo | None]:
            new = list(new)
            foreseen = self.queue.foresee(new)
            promised[:] = [self._stored(task, info) for info in foreseen]
            for result in promised:
                object.__setattr__(result, "enqueued_at", None)
            store = partial(self._keep, task, new, [*promised])
            hook = WaitingCalls(task.module_path, [*promised], store)
            transaction.on_commit(hook, using=database, robust=True)
            return [*foreseen]

        enqueue_through(new, promise)
        return promised

    def _keep(self, task: AnyTask, new: Sequence[NewTask], promised: Sequence[AnyResult]) -> None:
        results, news = self._results(task, new, self.queue.store_many(new))
        for result, stored in zip(promised, results, strict=True):
            if stored.id != result.id:
                said = "%s %s is not stored: the unfinished %s has its key."
                logger.info(said, task.module_path, result.id, stored.id)
                continue
            for field in fields(result):
                object.__setattr__(result, field.name, getattr(stored, field.name))
        self._tell(news)

    def _stored(self, task: AnyTask, info: TaskInfo) -> AnyResult:
        return self._result(_as_stored(task, info, self.alias), info)

    def _tell(self, news: Iterable[AnyResult]) -> None:
        for result in news:
            task_enqueued.send_robust(type(self), task_result=result)

    def _results(
        self, task: AnyTask, new: Sequence[NewTask], stored: Iterable[TaskInfo | None]
    ) -> tuple[list[AnyResult], list[AnyResult]]:
        """Return the results, and those of them that are not of another task with the same unique key."""
        pairs = [
            (self._stored(task, info), info.id == each.id)
            for each, info in zip(new, stored, strict=True)
            if info
        ]
        return [result for result, _is_new in pairs], [result for result, is_new in pairs if is_new]

    def get_result(self, result_id: str) -> AnyResult:
        """
        Return the TaskResult with that id.

        Raises TaskResultDoesNotExist if there is none, or none any more; UnknownTask if its task is no longer
        declared; UnknownFormat if a newer release wrote it; ValueError if what is stored is not a task.
        """
        return self._existing(result_id, self.queue.get(str(result_id)))

    async def aget_result(self, result_id: str) -> AnyResult:
        """get_result(), awaited."""
        return self._existing(result_id, await self.queue.aget(str(result_id)))

    def wait_for(self, result_id: str, *, wait: float) -> AnyResult:
        """
        Return the TaskResult when the task has ended, or as it is after *wait* seconds, without polling.

        Raises as get_result().
        """
        return self._existing(result_id, self.queue.wait_for(str(result_id), wait=wait))

    async def await_for(self, result_id: str, *, wait: float) -> AnyResult:
        """wait_for(), awaited."""
        return self._existing(result_id, await self.queue.await_for(str(result_id), wait=wait))

    def _existing(self, result_id: str, info: TaskInfo | None) -> AnyResult:
        if info is None:
            for database, waiting in waiting_calls():
                if any(result.id == id_of(result_id) for result in waiting.results):
                    raise TaskResultDoesNotExist(
                        f"{result_id} is not stored yet: it waits for the commit of a transaction on {database!r}."
                    )
            raise TaskResultDoesNotExist(result_id)
        return self.to_result(info)

    def to_result(self, info: TaskInfo) -> AnyResult:
        """Return *info* as a TaskResult. Raises UnknownTask."""
        return self._result(_as_stored(resolve(info.name), info, self.alias), info)

    def _result(self, task: AnyTask, info: TaskInfo) -> AnyResult:
        shown = _unchanged if settings.USE_TZ else as_set
        # The constructor takes three times as long: it checks that the arguments are JSON, which they are.
        result: AnyResult = object.__new__(TaskResult)
        put = object.__setattr__
        put(result, "task", task)
        put(result, "id", info.id)
        put(result, "status", _STATUSES[info.state])
        put(result, "enqueued_at", shown(info.enqueued_at))
        put(result, "started_at", shown(info.started_at))
        put(result, "last_attempted_at", shown(info.last_attempted_at))
        put(result, "finished_at", shown(info.finished_at))
        put(result, "args", info.args)
        put(result, "kwargs", info.kwargs)
        put(result, "backend", self.alias)
        put(result, "errors", [*map(as_error, info.errors)])
        put(result, "worker_ids", list(info.worker_ids))
        put(result, "_return_value", info.return_value)
        return result

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Return the system check messages on QUEUES and OPTIONS of this alias."""
        found = [f'["OPTIONS"]: {problem}' for problem in problems(QueueOptions, self.options)]
        if isinstance(named := self.options.get("on_commit"), str) and named not in connections.settings:
            found.append(f"[\"OPTIONS\"]: 'on_commit' is {named!r}; settings.DATABASES has no such alias.")
        if isinstance(self._queues_given, str):
            found.append(f'["QUEUES"] is {self._queues_given!r}; it must be a list of names, or [] for any.')
        messages = [Error(f"TASKS[{self.alias!r}]{problem}", id="components.E003") for problem in found]
        if not apps.is_installed("components"):
            hint = 'Add "components" to INSTALLED_APPS.'
            messages.append(Error(_without_app(self.alias), hint=hint, id="components.E012"))
        return [*messages]


def _without_app(alias: str) -> str:
    return (
        f"TASKS[{alias!r}] uses this app, but INSTALLED_APPS lacks it, so there are no commands such as runworker, "
        "no admin pages and no further checks."
    )


def redis_backend(alias: str) -> RedisBackend:
    """Return the backend behind *alias*, which must be one of redis_aliases()."""
    backend = task_backends[alias]
    assert isinstance(backend, RedisBackend)
    return backend


def redis_aliases() -> list[str]:
    """Return the aliases of TASKS that RedisBackend serves."""
    return [alias for alias in task_backends if isinstance(task_backends[alias], RedisBackend)]


def resolve(name: str) -> AnyTask:
    """
    Return the task that is declared at the dotted path *name*.

    A name may come from anyone who can write to Redis, so only the modules named at the top are imported. Raises
    UnknownTask, which says what is wrong with the name, and whatever importing the module raises.
    """
    module_name, _, attribute = name.rpartition(".")
    if not _is_known(module_name):
        raise UnknownTask(f"No task {name!r} can be imported: {_UNKNOWN.format(module_name)}")
    try:
        found = vars(import_module(module_name))[attribute]
    except ImportError as error:
        raise UnknownTask(f"No task {name!r} can be imported: {error}") from error
    except KeyError:
        raise UnknownTask(f"No task {name!r} can be imported: {module_name} has no {attribute!r}.") from None
    if not isinstance(found, Task):
        raise UnknownTask(f"{name!r} is {type(found).__name__}, not a task: declare it with @task.")
    if not _is_known(found.func.__module__):
        raise UnknownTask(f"{name!r} is not run: {_UNKNOWN.format(found.func.__module__)}")
    return found


_UNKNOWN = (
    "no app in INSTALLED_APPS contains the module {0!r}, and it is not imported while the apps are loaded. If tasks "
    'are declared there, name it in COMPONENTS["TASK_MODULES"], for the site and its workers.'
)


def _is_known(module_name: str) -> bool:
    return module_name in loaded_with_apps or module_name in conf().task_modules or _is_of_an_app(module_name)


@lru_cache(maxsize=1_024)
def _is_of_an_app(module_name: str) -> bool:
    return apps.get_containing_app_config(module_name) is not None


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "INSTALLED_APPS":
        _is_of_an_app.cache_clear()


setting_changed.connect(_forget, dispatch_uid="components.services.queues.backend")


def _as_stored(task: AnyTask, info: TaskInfo, alias: str) -> AnyTask:
    """Return *task* as it was enqueued. It is not validated again: the settings may have changed since."""
    key = (info.name, info.priority, info.queue, alias)
    if info.run_after is None and (known := _variants.get(key)) and known[0] is task:
        return known[1]
    variant: AnyTask = object.__new__(type(task))
    for field in fields(task):
        object.__setattr__(variant, field.name, getattr(task, field.name))
    values = (info.priority, info.queue, as_set(info.run_after), alias)
    for name, value in zip(("priority", "queue_name", "run_after", "backend"), values, strict=True):
        object.__setattr__(variant, name, value)
    if info.run_after is None:
        if len(_variants) >= _MOST_VARIANTS:
            _variants.clear()
        _variants[key] = task, variant
    return variant


def as_error(failure: TaskFailure) -> TaskError:
    """Return a stored failure as Django has it."""
    return TaskError(exception_class_path=failure.exception_class_path, traceback=failure.traceback)


def _unchanged(instant: datetime | None) -> datetime | None:
    return instant


def as_set(instant: datetime | None) -> datetime | None:
    """Return *instant* as timezone.now() would give it under this project's USE_TZ."""
    if instant is not None and not settings.USE_TZ:
        return timezone.make_naive(instant)
    return instant
