"""
limit_concurrency: a semaphore around calls, such as calls of an API that allows only a few at a time.

    @limit_concurrency("shipping-api", limit=5, wait=2)
    def ship(parcel): ...                               # or async def

    with limit_concurrency("shipping-api", limit=5): ...     # or async with

The permit is renewed while the call lasts, so *lease* only determines how long the places of a dead process stay
taken.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import ref

from components.kit.calls import around
from components.services.semaphores.permit import Permit
from components.services.semaphores.semaphore import Semaphore

_P = ParamSpec("_P")
_T = TypeVar("_T")


class limit_concurrency:  # noqa: N801  (used as a function is)
    """
    At most *limit* calls at a time under this name, in all processes, in order of arrival.

    If no place becomes free within *wait* seconds (None: wait without limit), SemaphoreFull is raised and the call is
    not made. If the place is lost during the call, PermitLost is raised after it. Many threads and coroutines may use
    one object. Raises InvalidName, InvalidValue, RedisUnavailable.
    """

    def __init__(
        self, name: str, *, limit: int, wait: float | None = None, lease: float = 30.0, weight: int = 1
    ) -> None:
        self._semaphore = Semaphore(name, limit=limit, lease=lease)
        self._semaphore.check(wait=wait, weight=weight)
        self._acquire = partial(self._semaphore.acquire, wait=wait, weight=weight, auto_renewal=True)
        self._aacquire = partial(self._semaphore.aacquire, wait=wait, weight=weight, auto_renewal=True)
        #: The blocks that were entered and not left yet, the latest last, and where they were entered.
        self._entered: list[tuple[Permit, ref[Any]]] = []
        self._guard = threading.Lock()

    def __call__(self, function: Callable[_P, _T]) -> Callable[_P, _T]:
        return around(function, "a limit on calls", self._acquire, self._aacquire)

    def __enter__(self) -> Permit:
        return self._note(self._acquire())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._latest(is_awaited=False).__exit__(kind, error, trace)

    async def __aenter__(self) -> Permit:
        return self._note(await self._aacquire())

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._latest(is_awaited=True).__aexit__(kind, error, trace)

    def _note(self, permit: Permit) -> Permit:
        with self._guard:
            self._entered.append((permit, ref(_here())))
        return permit

    def _latest(self, *, is_awaited: bool) -> Permit:
        """
        Return the permit of the block that ends now.

        This is the latest block that the current task or thread entered. If it entered none, for example because
        another task closes an exit stack, it is the latest block whose task or thread has ended, else the latest of
        all. Raises RuntimeError if no block was entered.
        """
        with self._guard:
            rest = [each for each in self._entered if bool(each[0].loop) == is_awaited]
            if not rest:
                raise RuntimeError("This limit_concurrency is left more often than it was entered.")
            mine = [each for each in rest if each[1]() is _here()]
            orphans = [each for each in rest if _is_over(each[1]())]
            found = (mine or orphans or rest)[-1]
            self._entered.remove(found)
        return found[0]


def _here() -> Any:
    """Return the running task, or the thread if no loop runs in it."""
    with suppress(RuntimeError):
        if task := asyncio.current_task():
            return task
    return threading.current_thread()


def _is_over(where: Any) -> bool:
    return where is None or (where.done() if isinstance(where, asyncio.Task) else not where.is_alive())
