"""
Lock: the drop-in for redis.lock.Lock, from which it derives. core.py says how it works.

What redis-py's class has, it has under the same names and with the same errors; where the caller gives a `sleep` of
their own, redis-py's loop does the waiting. It takes the key as it is given; lock() makes one of the app's.
"""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Any, Literal, Self

from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.exceptions import LockNotOwnedError
from redis.lock import Lock as RedisLock

from components.exceptions import LockNotAcquired
from components.kit import leases as renewals
from components.kit.at_once import at_once
from components.kit.errors import REDIS_FAILED
from components.kit.leases import clock
from components.kit.values import check_seconds
from components.services.locks.core import (
    ACQUIRE,
    DEFAULT_SLEEP,
    RELEASE,
    LockCore,
    milliseconds_to_add,
    plain,
)
from components.services.locks.holdings import Holding, Shared, ThreadLocal

logger = logging.getLogger(__name__)

_ASYNCHRONOUS = (AsyncRedis, AsyncRedisCluster)


class Lock(LockCore, RedisLock):
    """
    A lock at the key *name* of the client *redis*, for threads and processes; redis.lock.Lock with more to it.

    *timeout* (seconds; None: for ever) is how long it can be held, and *auto_renewal* starts it anew at each third,
    until release(). acquire() waits for *blocking_timeout* seconds (None: for ever), woken by a release, or looking
    every *sleep* seconds if that is given. With *fair*, who came first is first. *owner* is who it is for, as the
    admin shows it. With *min_replicas*, it is only held if so many replicas have it (else NotReplicated).

    As a context manager it gives itself, or raises LockNotAcquired. A lock that is not held any more raises LockLost,
    which is a LockNotOwnedError of redis-py. Raises InvalidName, InvalidDuration or ValueError for what it cannot be.
    """

    def __init__(
        self,
        redis: Any,
        name: str | bytes | memoryview,
        timeout: float | None = None,
        sleep: float = DEFAULT_SLEEP,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        thread_local: bool = True,
        raise_on_release_error: bool = True,
        *,
        fair: bool = False,
        auto_renewal: bool = False,
        owner: str | None = None,
        min_replicas: int = 0,
    ) -> None:
        if isinstance(redis, _ASYNCHRONOUS):
            raise TypeError("The client of a Lock is asynchronous: give it to AsyncLock.")
        given: Any = name  # redis-py's type is narrower than what its clients take
        super().__init__(
            redis, given, timeout, sleep, blocking, blocking_timeout, thread_local, raise_on_release_error
        )
        self.local = ThreadLocal() if thread_local else Shared()
        self._configure(fair=fair, auto_renewal=auto_renewal, owner=owner, min_replicas=min_replicas)

    def register_scripts(self) -> None:
        """Nothing: the scripts are this app's."""

    def __enter__(self) -> Self:
        if self.acquire():
            return self
        raise LockNotAcquired(f"The lock {self.name!r} was not free in time.", self.name)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.release()
        except REDIS_FAILED as problem:
            if self.raise_on_release_error and error is None:
                raise
            logger.warning("A lock could not be released at the end of its block: %s", problem)

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: str | bytes | None = None,
    ) -> bool:
        """
        Whether it is held now. A *token* of the caller's own must differ from all others in use.

        Raises redis-py's errors, or RedisUnavailable if it was made by lock(); then it is not held, or is given back
        by the next call.
        """
        blocking, patience = self._patience(blocking, blocking_timeout)
        given = None if token is None else self.redis.get_encoder().encode(token)
        own = self._token(given, is_coroutine=False)
        if sleep is not None:
            sleep = check_seconds("sleep", plain(sleep), may_be_zero=True)
        try:
            if self._polls(sleep):
                return bool(super().acquire(sleep, blocking, patience, own))  # type: ignore[arg-type]
            wait = self._try_fast(own, blocking)
        except BaseException:  # it may be held
            at_once(self._give_up(own))
            raise
        return wait == 0 or at_once(self._take(own, blocking=blocking, patience=patience, wait=wait))

    def do_acquire(self, token: Any) -> bool:
        """One try, for redis-py's loop."""
        return not at_once(self._try(token))

    def locked(self) -> bool:
        """Whether anybody holds it."""
        with self._errors():
            return super().locked()

    def owned(self) -> bool:
        """Whether this thread holds it."""
        with self._errors():
            return super().owned()

    def release(self) -> None:
        """
        Give it back. Raises LockError if it is not held here, LockLost if it is not any more; after redis-py's errors
        (or RedisUnavailable) it may be tried again.
        """
        token = self._token_to_release()
        try:
            self.do_release(token)
        except LockNotOwnedError:
            self._forget(token)
            raise
        self._forget(token)

    def do_release(self, expected_token: Any) -> None:
        if not RELEASE.quick(self.redis, *self._release_call(expected_token)):
            at_once(self._give_back(expected_token))

    def extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        """
        Add *additional_time* seconds to its time, or, with *replace_ttl*, let it be that from now on.

        Less than none takes from it; with none left it is over, and release() raises LockLost as after any loss.
        Raises LockError if it is not held here or has no timeout, LockLost if it is held no more.
        """
        self._token_to_extend("extend")
        milliseconds_to_add(additional_time)  # it is checked before anything is sent
        return self.do_extend(additional_time, replace_ttl)

    def do_extend(self, additional_time: float, replace_ttl: bool) -> Literal[True]:
        milliseconds, how = milliseconds_to_add(additional_time), "replaces" if replace_ttl else "adds"
        if not at_once(self._extend(self.local.token, milliseconds, how)):
            raise self._loss("Cannot extend a lock that's no longer owned")
        return True

    def reacquire(self) -> Literal[True]:
        """Start its time anew. Raises as extend() does."""
        self._token_to_extend("reacquire")
        return self.do_reacquire()

    def do_reacquire(self) -> Literal[True]:
        if not at_once(self._extend(self.local.token, self._ms, "anew")):
            raise self._loss("Cannot reacquire a lock that's no longer owned")
        return True

    def ensure_held(self) -> None:
        """Ask Redis. Raises LockError if it is not held here, LockLost if it is not any more."""
        at_once(self._ensure_held())

    @property
    def lost(self) -> threading.Event:
        """Set when it is lost: when a renewal finds that, or its time is over. Raises LockError if it is not held."""
        holding = self._holding
        if not self.auto_renewal:
            renewals.watch(holding)
        lost: threading.Event = holding.event(threading.Event)
        return lost

    def _try_fast(self, token: bytes, waits: bool) -> float | None:
        """_try() by the shortest way, which most calls can go; None if it has led nowhere."""
        asked_at = clock()
        if self.min_replicas:
            return None
        said = ACQUIRE.quick(self.redis, *self._acquire_call(token, waits))
        return self._answered(said, token, asked_at) if said else None

    def _renew(self, holding: Holding) -> bool:
        return at_once(self._prolong(holding))

    _keep = staticmethod(renewals.keep)
    _drop = staticmethod(renewals.drop)
