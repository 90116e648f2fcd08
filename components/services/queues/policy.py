"""
The @task decorator, the policy of tasks, and the functions with which running tasks report progress.

    @task(queue_name="mail", max_attempts=12, timeout=60)
    def send(pk: int) -> None: ...

`task` is Django's decorator with a policy: how a task is retried, limited and kept. It works with every Django that
has tasks. RedisBackend applies the policy; other backends ignore it. If there are proposals for Django itself, the
names follow these (max_attempts, backoff).
"""

from __future__ import annotations

import json
import logging
import random
import threading
from asyncio import to_thread
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from inspect import Parameter, Signature, unwrap
from math import inf
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from django.db import connections

from components.conf import QueueOptions
from components.exceptions import ComponentsError
from components.kit.calls import signature_of
from components.kit.compat import InvalidTask, Task, TaskContext, TaskResult
from components.kit.decoding import aware
from components.kit.validation import LONGEST, check_seconds
from components.services.queues.arguments import normalize_call
from components.services.queues.facts import TaskInfo
from components.services.queues.new_task import LATEST
from components.services.rates import RateLimit

logger = logging.getLogger(__name__)

_P = ParamSpec("_P")
_R = TypeVar("_R")

if TYPE_CHECKING:

    class Result(TaskResult[..., Any], Generic[_R]):
        """A TaskResult that keeps the type of the return value, and its own where Django's types are not known."""

        id: str
        enqueued_at: datetime | None
        started_at: datetime | None
        finished_at: datetime | None

        @property
        def return_value(self) -> _R: ...
        @property
        def is_finished(self) -> bool: ...
        @property
        def attempts(self) -> int: ...
        def refresh(self) -> None: ...
        async def arefresh(self) -> None: ...


#: How a call is stored or prepared in Celery, Dramatiq, huey and RQ.
_FOREIGN = frozenset(
    [
        "delay",
        "delay_on_commit",
        "apply",
        "apply_async",
        "s",
        "si",
        "signature",
        "map",
        "starmap",
        "chunks",
        "schedule",
        "send",
        "send_with_options",
    ]
)

#: A function that returns the seconds to wait before the next attempt, or None if the failure is final.
Backoff: TypeAlias = "Callable[[BaseException, TaskResult[..., Any]], float | None]"


@dataclass(frozen=True, slots=True)
class Concurrency:
    """At most *limit* runs at a time, in all workers together, of all tasks that share the name."""

    limit: int
    #: The name of the semaphore, which other tasks and a Semaphore may share; or a function of the arguments that
    #: returns a text, which groups the calls of this task; or None to count all calls of this task together.
    name: str | Callable[..., str] | None = None

    def name_for(self, path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return the name of the semaphore for a call of the task *path*."""
        if isinstance(self.name, str):
            return self.name
        return f"task:{path}:{self.name(*args, **kwargs)}" if self.name else f"task:{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTask(Task, Generic[_P, _R]):  # type: ignore[type-arg]  # Django's is not generic when it runs
    """
    A Task with a policy. Fields that are None default to the OPTIONS of the backend. Durations are in seconds.

    Type checkers know the parameters and the result of its function, whether or not they know Django's types.
    """

    #: The number of starts after which a failure is final.
    max_attempts: int | None = None
    #: Seconds before the first retry, doubled with each further one, less up to half at random; or a function.
    backoff: float | Backoff | None = None
    #: How long a claim lasts without renewal, and so how soon another worker starts the task if its worker dies.
    lease: float | None = None
    #: How long it may run; float("inf") for no limit.
    timeout: float | None = None
    #: How long the result of a successful run is kept; at least 60.
    result_ttl: float | None = None
    #: True to store no second call with the same arguments while the first is unfinished; or a function of the
    #: arguments that returns a text, which is equal for equal calls.
    unique: bool | Callable[..., str] = False
    #: The number of starts that may end with their worker, killed or cut off, at most as many as the backend allows;
    #: 1 for a task that must not be started again.
    max_crashes: int | None = None
    #: Dropped, as TaskExpired, if it is not started in this time after it could run first: seconds or a timedelta; or
    #: by this instant. Retries count as starts.
    expires: float | timedelta | datetime | None = None
    #: True to store it only when the transaction that enqueues it has committed; or the alias of that database.
    on_commit: bool | str | None = None
    #: The limit of simultaneous runs, in all workers together.
    concurrency: int | Concurrency | None = None
    #: The limit of starts, in all workers together: "100/m", or a RateLimit, which other tasks and views may share.
    rate: str | RateLimit | None = None
    #: A function of the arguments that returns by what the starts are counted apart, such as a customer.
    rate_key: Callable[..., object] | None = None
    #: Whether the control room hides its arguments, results and tracebacks from everybody.
    sensitive: bool = False

    do_not_call_in_templates = True

    def __post_init__(self) -> None:
        _check_policy(self)
        Task.__post_init__(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        expires: float | timedelta | datetime | None = None,
    ) -> Self:
        """Return this task with other defaults. A timedelta as *run_after* counts from the moment of enqueueing."""
        django: Any = Task  # whose run_after is a datetime only, by its types
        used: Self = django.using(
            self, priority=priority, queue_name=queue_name, run_after=run_after, backend=backend
        )
        return used if expires is None else replace(used, expires=expires)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Run the function here and now, as call() does."""
        result: _R = self.call(*args, **kwargs)
        return result

    def __getattr__(self, name: str) -> Any:
        if name in _FOREIGN:
            raise AttributeError(
                f"{self.module_path} has no {name}(), which is another library's: enqueue(*args, **kwargs) stores a "
                "call of it, and using(run_after=, expires=, queue_name=, priority=) comes before."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    if TYPE_CHECKING:

        def enqueue(self, *args: _P.args, **kwargs: _P.kwargs) -> Result[_R]: ...
        async def aenqueue(self, *args: _P.args, **kwargs: _P.kwargs) -> Result[_R]: ...
        def get_result(self, result_id: str) -> Result[_R]: ...
        async def aget_result(self, result_id: str) -> Result[_R]: ...
        def call(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
        async def acall(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


def _check_policy(task: Any) -> None:
    """Raise InvalidTask if a field of the policy has a wrong value."""

    def check(name: str, is_right: bool, wanted: str) -> None:
        if not is_right:
            raise InvalidTask(f"{task.module_path}: {name} is {getattr(task, name)!r}; it must be {wanted}.")

    # 1e9 is enough for every setting, and Redis can count it in microseconds.
    for name, least, most in (
        ("max_attempts", 1, 1e9),
        ("max_crashes", 1, 1e9),
        ("lease", 1, 1e9),
        ("timeout", 0.001, inf),
        ("result_ttl", 60, 1e9),
    ):
        value = getattr(task, name)
        check(name, value is None or _is_number(value, least, most), f"a number, {least} to {most:g}")
    for name in ("max_attempts", "max_crashes"):
        check(name, isinstance(getattr(task, name), int | None), "a whole number")
    is_backoff = task.backoff is None or callable(task.backoff) or _is_number(task.backoff, 0, 1e9)
    check("backoff", is_backoff, "seconds, or a function of an error and a result")
    is_unique = isinstance(task.unique, bool) or callable(task.unique)
    check("unique", is_unique, "True, or a function of the arguments")
    expires = task.expires.total_seconds() if isinstance(task.expires, timedelta) else task.expires
    is_expiry = isinstance(expires, datetime | None) or _is_number(expires, 0.001, 1e9)
    check("expires", is_expiry, "seconds, 0.001 to 1e+09, a timedelta, or a datetime")
    limit = task.concurrency.limit if isinstance(task.concurrency, Concurrency) else task.concurrency
    is_limit = limit is None or (isinstance(limit, int) and _is_number(limit, 1, 1e9))
    check("concurrency", is_limit, "a whole number from 1 on, or Concurrency")
    is_key = task.rate_key is None or (callable(task.rate_key) and task.rate is not None)
    check("rate_key", is_key, "a function of the arguments, beside a rate")
    check("sensitive", isinstance(task.sensitive, bool), "True or False")
    is_database = isinstance(task.on_commit, bool | None) or task.on_commit in connections.settings
    databases = ", ".join(connections.settings)
    check("on_commit", is_database, f"True, False, or the alias of a database: {databases}")
    check("priority", not isinstance(task.priority, bool), "a whole number")
    try:
        rate_of(task)
    except ComponentsError as error:
        raise InvalidTask(f"{task.module_path}: {error}") from None


def rate_of(task: Any) -> RateLimit | None:
    """Return the rate limit of a task, or None. Raises InvalidValue."""
    rate = getattr(task, "rate", None)
    if rate is None or isinstance(rate, RateLimit):
        return rate
    return RateLimit(f"task:{task.module_path}", rate)


def _is_number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


class Policy(TypedDict, total=False):
    """What @task takes besides its function and takes_context: fields of a Task and of PolicyTask."""

    priority: int
    queue_name: str
    backend: str
    max_attempts: int | None
    max_crashes: int | None
    backoff: float | Backoff | None
    lease: float | None
    timeout: float | None
    result_ttl: float | None
    unique: bool | Callable[..., str]
    expires: float | timedelta | datetime | None
    on_commit: bool | str | None
    concurrency: int | Concurrency | None
    rate: str | RateLimit | None
    rate_key: Callable[..., object] | None
    sensitive: bool


class _Declare(Protocol):
    @overload
    def __call__(self, function: Callable[_P, Coroutine[Any, Any, _R]], /) -> PolicyTask[_P, _R]: ...
    @overload
    def __call__(self, function: Callable[_P, _R], /) -> PolicyTask[_P, _R]: ...


class _DeclareWithContext(Protocol):
    @overload
    def __call__(
        self, function: Callable[Concatenate[TaskContext[..., Any], _P], Coroutine[Any, Any, _R]], /
    ) -> PolicyTask[_P, _R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[TaskContext[..., Any], _P], _R], /
    ) -> PolicyTask[_P, _R]: ...


@overload
def task(function: Callable[_P, Coroutine[Any, Any, _R]], /) -> PolicyTask[_P, _R]: ...
@overload
def task(function: Callable[_P, _R], /) -> PolicyTask[_P, _R]: ...
@overload
def task(*, takes_context: Literal[True], **policy: Unpack[Policy]) -> _DeclareWithContext: ...
@overload
def task(*, takes_context: Literal[False] = False, **policy: Unpack[Policy]) -> _Declare: ...
def task(function: Callable[..., Any] | None = None, /, *, takes_context: bool = False, **policy: Any) -> Any:
    """
    Declare a function of a module as a task. The policy arguments are fields of PolicyTask.

    Raises InvalidTask, or TypeError for a name that is not a field of the policy.
    """

    def declare(function: Callable[_P, _R]) -> PolicyTask[_P, _R]:
        given = {"priority": 0, "queue_name": "default", "backend": "default", **policy}
        return PolicyTask(func=function, takes_context=takes_context, run_after=None, **given)

    return declare(function) if function else declare


def exponential(first: float, *, longest: float = 3_600.0) -> Backoff:
    """
    Return a backoff of *first* seconds, doubled with each attempt up to *longest*, and reduced at random by up to
    half.

    The randomness keeps tasks that failed together from being retried together. A number as the backoff of a task
    means this function; custom backoffs can call it as well. Raises InvalidValue.
    """

    check_seconds("first pause", first, may_be_zero=True)
    check_seconds("longest pause", longest, may_be_zero=True)

    def backoff(error: BaseException, result: TaskResult[..., Any]) -> float:
        return doubled(first, longest, result.attempts)

    return backoff


def doubled(first: float, longest: float, attempt: int) -> float:
    """Return the seconds to wait after attempt number *attempt* (1, 2 ...) has failed."""
    pause = min(longest, first * 2.0 ** min(attempt - 1, 60))
    return random.uniform(pause / 2, pause)


def retry_after(
    info: TaskInfo, result: TaskResult[..., Any] | None, error: BaseException, options: QueueOptions
) -> float | None:
    """
    Return the seconds until the next attempt of a task that failed with *error*, or None if the failure is final.
    *result* is None if this worker does not know the task, perhaps because it runs older code.
    """
    task = result.task if result is not None else None
    if info.starts >= (getattr(task, "max_attempts", None) or options.max_attempts):
        return None
    backoff = getattr(task, "backoff", None)
    if not callable(backoff):
        first = options.backoff if backoff is None else backoff
        return doubled(first, options.max_backoff, info.starts)
    try:
        pause = backoff(error, result)
        return pause if pause is None else check_seconds("pause", float(pause), may_be_zero=True)
    except BaseException as wrong:
        logger.exception("The backoff of %s failed; the task is not retried: %r", info.name, wrong)
        return None


class Run(Protocol):
    """What a running task can know of its run, and ask of its worker."""

    name: str
    is_cancelled: bool

    @property
    def id(self) -> str: ...

    def report(self, done: float, total: float | None, note: str) -> None: ...


#: The run of the task that this thread or coroutine executes.
current_run: ContextVar[Run | None] = ContextVar(
    "components.services.queues.policy.current_run", default=None
)


#: Whether this process runs tasks, and whether it has said that a thread belongs to none of them.
serves, _is_said = threading.Event(), threading.Event()


def _current() -> Run | None:
    run = current_run.get()
    if run is None and serves.is_set() and not _is_said.is_set():
        _is_said.set()
        logger.warning(
            "The thread %s asked about the running task, and belongs to none. If a task starts threads, let them "
            "have its context: Thread(target=contextvars.copy_context().run, args=[function]).",
            threading.current_thread().name,
        )
    return run


def progress(done: float, total: float | None = None, note: str = "") -> None:
    """
    Report the progress of the running task to the control room: *done* of *total*, in any unit.

    It is stored at most twice a second, so you may call this in a loop. Outside a worker, it does nothing. Nor does
    it in a thread that the task starts without its context, which a worker logs once. Raises ValueError for a value
    that is not a number, or is too large to show.
    """
    _check_progress(done, total)
    if run := _current():
        run.report(done, total, note)


async def aprogress(done: float, total: float | None = None, note: str = "") -> None:
    """Report the progress from a coroutine, as progress() does."""
    _check_progress(done, total)
    if run := _current():
        await to_thread(run.report, done, total, note)


_MOST_SHOWN = 1e18  # more bytes than anybody has


def _check_progress(done: float, total: float | None) -> None:
    for name, value in {"done": done, "total": 1 if total is None else total}.items():
        if not _is_number(value, 0, _MOST_SHOWN):
            raise ValueError(
                f"progress() was given {name}={value!r}; it must be a number, 0 to {_MOST_SHOWN:g}."
            )


def is_cancelled() -> bool:
    """
    Return whether the running task was cancelled. A long function should check this now and then, and return or
    raise.

    Coroutines are cancelled and need not check it. A cancellation becomes known within one heartbeat: 5 seconds, or a
    third of the lease. In a thread that the task starts without its context, this is False, which a worker logs once.
    """
    run = _current()
    return run is not None and run.is_cancelled


def running_task() -> tuple[str, str] | None:
    """Return the dotted path and the id of the task that this thread or coroutine runs; None outside of tasks."""
    run = current_run.get()
    return (run.name, run.id) if run else None


def unique_key(task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Return the text that equal calls of *task* share, or None if the task is not unique."""
    unique = getattr(task, "unique", False)
    if callable(unique):
        return str(unique(*args, **kwargs))
    if not unique:
        return None
    inner = unwrap(task.func, stop=lambda each: hasattr(each, "__signature__"))
    call, _least, _most = _call_of(inner, task.takes_context)
    if call:
        with suppress(TypeError):  # as given, if a decorator adds arguments or takes them
            given = call.bind(*args, **kwargs).arguments
            named = {name: value for name, value in given.items() if not _is_default(call, name, value)}
            args, kwargs = (), named
    return json.dumps(normalize_call(task.module_path, args, kwargs), sort_keys=True)


def check_call(task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError if the function of *task* cannot be called with these arguments."""
    call, least, most = _call_of(task.func, task.takes_context)
    if call and (kwargs or not least <= len(args) <= most):  # binding takes ten times as long
        try:
            call.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{task.module_path} cannot be called with these arguments: {error}.") from None


@lru_cache(maxsize=1_024)
def _call_of(function: Callable[..., Any], takes_context: bool) -> tuple[Signature | None, float, float]:
    """Return how calls of a task look, and how many arguments without names they have at least and at most."""
    try:
        found = signature_of(function)
    except ValueError:  # some that are written in C do not say
        return None, 0, inf
    parameters = list(found.parameters.values())
    if takes_context and parameters and parameters[0].kind in _PLACED:
        del parameters[0]
    placed = [each for each in parameters if each.kind in _PLACED]
    needed = [each for each in parameters if each.default is each.empty and each.kind not in _VARIADIC]
    is_open = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    least = len(needed) if all(each in placed for each in needed) else inf
    return found.replace(parameters=parameters), least, inf if is_open else len(placed)


_PLACED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def _is_default(call: Signature, name: str, value: Any) -> bool:
    default = call.parameters[name].default
    return type(default) is type(value) and bool(default == value)


def check_run_after(run_after: datetime | timedelta | None) -> None:
    """Raise InvalidTask for an instant that Redis cannot hold."""
    if isinstance(run_after, timedelta):
        is_too_late = run_after.total_seconds() > LONGEST
    else:
        is_too_late = run_after is not None and aware(run_after) > LATEST
    if is_too_late:
        raise InvalidTask(
            f"run_after is {run_after!r}; it must be at most {LATEST:%Y}, or {LONGEST:,} seconds from now."
        )
