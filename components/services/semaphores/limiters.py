"""
limit_concurrency: a semaphore around a call, such as that of another's API which allows so many at a time.

    @limit_concurrency("shipping-api", limit=5, wait=2)
    def ship(parcel): ...                               # or async def

    with limit_concurrency("shipping-api", limit=5): ...     # or async with

The permit is renewed while the call lasts, so *lease* is only how long the places of a process that died stay taken.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from components.services.semaphores.acquisitions import Acquisition
from components.services.semaphores.permits import Permit
from components.services.semaphores.semaphores import Semaphore

_P = ParamSpec("_P")
_T = TypeVar("_T")


class limit_concurrency:  # noqa: N801  (used as a function is)
    """
    No more than *limit* calls at a time under this name, in all processes, in the order in which they came.

    The call is not made, and SemaphoreFull raised, if no place was free within *wait* seconds (None: it waits on).
    PermitLost is raised after a call whose place was lost while it lasted. One object may be used by many threads
    and coroutines at once. Raises InvalidName, InvalidLimit, InvalidDuration, RedisUnavailable.
    """

    def __init__(
        self, name: str, *, limit: int, wait: float | None = None, lease: float = 30.0, weight: int = 1
    ) -> None:
        self._semaphore = Semaphore(name, limit=limit, lease=lease)
        self._semaphore.check(wait=wait, weight=weight)
        self._wait, self._weight = wait, weight
        #: What each thread and coroutine has entered with this object and not left, the latest last.
        self._entered: defaultdict[tuple[int, int], list[Permit]] = defaultdict(list)

    def __call__(self, function: Callable[_P, _T]) -> Callable[_P, _T]:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} is a generator: it runs after its call has returned, so a limit of calls "
                "means nothing to it. Use limit_concurrency in a with block inside of it."
            )
        if inspect.iscoroutinefunction(function):
            return cast("Callable[_P, _T]", self._around_coroutine(function))

        @wraps(function)
        def limited(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            with self._acquire():
                return function(*args, **kwargs)

        return limited

    def _around_coroutine(self, function: Callable[_P, Any]) -> Callable[_P, Any]:
        @wraps(function)
        async def limited(*args: _P.args, **kwargs: _P.kwargs) -> Any:
            async with self._aacquire():
                return await function(*args, **kwargs)

        return limited

    def __enter__(self) -> Permit:
        permit = self._acquire()
        self._entered[_here()].append(permit)
        return permit

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._latest().__exit__(kind, error, trace)

    async def __aenter__(self) -> Permit:
        permit = await self._aacquire()
        self._entered[_here()].append(permit)
        return permit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._latest().__aexit__(kind, error, trace)

    def _latest(self) -> Permit:
        permits = self._entered[_here()]
        permit = permits.pop()
        if not permits:
            del self._entered[_here()]
        return permit

    def _acquire(self) -> Permit:
        return self._semaphore.acquire(wait=self._wait, weight=self._weight, auto_renewal=True)

    def _aacquire(self) -> Acquisition:
        return self._semaphore.aacquire(wait=self._wait, weight=self._weight, auto_renewal=True)


def _here() -> tuple[int, int]:
    """The thread, and the task if a loop runs in it: a with block is left where it was entered."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident(), id(task)
