"""
lock(name), alock(name), locks(names), alocks(names): locks in the project's Redis, within the app's keyspace.

They raise this app's errors. Several locks are acquired all or none, in the order of their names, so that no two
callers wait for each other. Each is a separate lock, perhaps on another node of a cluster, so each takes a round
trip. While the caller waits for one lock, those acquired before are renewed, so the wait may be longer than their
time. At the end, the time of each is restarted. If one was lost meanwhile, for example because Redis did not answer
for too long, all are acquired again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, ParamSpec, Self, TypedDict, TypeVar, Unpack, cast

from redis.exceptions import LockError

from components.exceptions import InvalidName, LockNotAcquired, RedisNotPrivate
from components.kit.calls import around
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.leases import clock
from components.kit.sync_async import answer, at_once
from components.kit.validation import check_name
from components.services.locks.drop_ins import AsyncLock, Lock
from components.services.locks.keys import LockKeys

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 30.0  # seconds
_FRESH = 2 / 3  # share of its time that each of several locks must have left; otherwise its time is restarted

_L = TypeVar("_L", bound=Lock | AsyncLock)
_P = ParamSpec("_P")
_T = TypeVar("_T")


class LockOptions(TypedDict, total=False):
    """The options of lock() and its siblings, as in Lock. Durations are in seconds."""

    timeout: float | None
    sleep: float
    blocking: bool
    blocking_timeout: float | None
    thread_local: bool
    raise_on_release_error: bool
    fair: bool
    auto_renewal: bool
    owner: str | None


def lock(name: str, **options: Unpack[LockOptions]) -> NamedLock:
    """
    Return the lock *name*. The options are those of Lock, with a timeout of 30 seconds unless one is given.

        with lock("item:42", timeout=10, blocking_timeout=2) as held:
            Item.objects.fenced(held.fence).filter(pk=42).update(owner=buyer)

    @lock("rebuild") on a function holds it during each call, also of a coroutine function. Nothing is sent until it
    is acquired. If Redis does not answer, it raises RedisUnavailable, while Lock raises redis-py's errors.
    """
    try:
        made = _made(NamedLock, get_client(), name, options)
    except RedisNotPrivate as error:  # a test imports what a lock decorates
        made = cast("NamedLock", _Refused(error))
    made.given = name, options
    return made


class NamedLock(Lock):
    """What lock() returns: a Lock that is also a decorator."""

    given: tuple[str, LockOptions]

    def __call__(self, function: Callable[_P, _T]) -> Callable[_P, _T]:
        name, options = self.given
        return around(function, "a lock", partial(lock, name, **options), partial(alock, name, **options))


class _Refused:
    """A lock in a test without Redis: it decorates functions, and each other use of it raises *error*."""

    __call__ = NamedLock.__call__

    def __init__(self, error: RedisNotPrivate) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        raise self.error

    def __enter__(self) -> Any:
        raise self.error

    def __exit__(self, *of_a_block: object) -> None: ...


def alock(name: str, **options: Unpack[LockOptions]) -> AsyncLock:
    """Return the same lock for coroutines. Raises NoEventLoop outside of a loop."""
    return _made(AsyncLock, get_async_client(), name, options)


def key_of(name: str) -> str:
    """Return the key of the lock *name*. Raises InvalidName."""
    return LockKeys.named(name).lock


def _made(kind: Callable[..., _L], client: AnyRedis, name: str, options: LockOptions) -> _L:
    made = kind(client, key_of(name), **{"timeout": DEFAULT_TIMEOUT, **options})
    made.translates = True
    return made


class _Several(Generic[_L]):
    """The parts that Locks and AsyncLocks share."""

    def __init__(self, made: Mapping[str, _L]) -> None:
        self._locks: Mapping[str, Any] = made

    @property
    def fences(self) -> dict[str, int]:
        """Return the fencing tokens by name. Raises LockError if the locks are not held."""
        return {name: each.fence for name, each in self._locks.items()}

    async def _acquire(self, blocking: bool | None, blocking_timeout: float | None) -> bool:
        first = next(iter(self._locks.values()))
        waits, patience = first._patience(blocking, blocking_timeout)
        until = math.inf if patience is None else clock() + patience
        while True:
            held: list[Any] = []
            try:
                for each in self._locks.values():
                    if not await self._take(each, held, waits, until):
                        await self._release(held)
                        return False
                    held.append(each)
                if all([await self._is_fresh(each) for each in held[:-1]]):
                    return True
            except BaseException:
                await self._release(held, says_so=False)
                raise
            await self._release(held, says_so=False)

    async def _take(self, each: Any, held: list[Any], waits: bool, until: float) -> bool:
        """Acquire *each*, waiting until the instant *until* of clock(), and renew the *held* locks meanwhile."""
        if held and await answer(each.acquire(blocking=False)):
            return True
        if held and not waits:
            return False
        kept = [other._holding for other in held if not (other.timeout is None or other.auto_renewal)]
        for holding in kept:
            holding.keep()
        try:
            left = None if until == math.inf else max(0.0, until - clock())
            return bool(await answer(each.acquire(blocking=waits, blocking_timeout=left)))
        finally:
            for holding in kept:
                holding.drop()

    async def _is_fresh(self, each: Any) -> bool:
        """Return whether the lock is held with most of its time left."""
        if each.timeout is None or each.remaining > each._holding.lease * _FRESH:
            return True
        try:
            return bool(await answer(each.reacquire()))
        except LockError:
            return False

    async def _release(self, held: Iterable[Any], *, says_so: bool = True) -> None:
        """
        Release all locks, even if one release fails or the caller is cancelled. At the end, raise the first error, or
        log it.

        A cancellation or an interrupt of the caller is always raised.
        """
        wrong: BaseException | None = None
        for each in reversed(list(held)):
            try:
                await answer(each.release())
            except GeneratorExit:  # the loop is gone: nothing can be awaited
                raise
            except BaseException as error:  # noqa: BLE001  (raised below)
                wrong = error if wrong is None or not isinstance(error, Exception) else wrong
        if wrong and (says_so or not isinstance(wrong, Exception)):
            raise wrong
        if wrong:
            logger.warning("One of several locks could not be released: %s", wrong)

    def _refusal(self) -> LockNotAcquired:
        return LockNotAcquired(f"Not all of the locks {', '.join(self._locks)} were free in time.")


class Locks(_Several[Lock]):
    """with locks(["item:1", "item:2"], timeout=10) as held: held.fences"""

    def acquire(self, blocking: bool | None = None, blocking_timeout: float | None = None) -> bool:
        """
        Acquire all locks.

        Return whether all are held now. Raises the errors of Lock.acquire(), and then holds none.
        """
        return at_once(self._acquire(blocking, blocking_timeout))

    def release(self) -> None:
        """Release all locks. Raises LockError or LockLost if one is no longer held."""
        at_once(self._release(self._locks.values()))

    def ensure_held(self) -> None:
        """Raise LockLost if one is not held any more."""
        for each in self._locks.values():
            each.ensure_held()

    def __enter__(self) -> Self:
        if self.acquire():
            return self
        raise self._refusal()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        at_once(self._release(self._locks.values(), says_so=error is None))


class AsyncLocks(_Several[AsyncLock]):
    """async with alocks(["item:1", "item:2"], timeout=10) as held: held.fences"""

    async def acquire(self, blocking: bool | None = None, blocking_timeout: float | None = None) -> bool:
        """Acquire all, as Locks.acquire() does."""
        return await self._acquire(blocking, blocking_timeout)

    async def release(self) -> None:
        """Release all, as Locks.release() does."""
        await self._release(self._locks.values())

    async def ensure_held(self) -> None:
        """Raise LockLost if one is not held any more."""
        for each in self._locks.values():
            await each.ensure_held()

    async def __aenter__(self) -> Self:
        if await self.acquire():
            return self
        raise self._refusal()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._release(self._locks.values(), says_so=error is None)


def locks(names: Iterable[str], **options: Unpack[LockOptions]) -> Locks:
    """Return the locks of these *names*, with the options of lock(); blocking_timeout is for all together."""
    return Locks({name: lock(name, **options) for name in _in_order(names)})


def alocks(names: Iterable[str], **options: Unpack[LockOptions]) -> AsyncLocks:
    """Return the same locks for coroutines."""
    return AsyncLocks({name: alock(name, **options) for name in _in_order(names)})


def _in_order(names: Iterable[str]) -> list[str]:
    """Return the names in the order in which all callers acquire them. Raises InvalidName."""
    if isinstance(names, str) or not (several := sorted({check_name("lock", name) for name in names})):
        raise InvalidName(f"The names of several locks are {names!r}; give a list with at least one name.")
    return several
