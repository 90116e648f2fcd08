"""
AsyncLock: the drop-in for redis.asyncio.lock.Lock, from which it derives. core.py says how it works.

One object may be shared by many coroutines: each has its own token (holdings.py), where redis-py's class lets one
release what another holds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self

from redis import Redis as SyncRedis
from redis import RedisCluster as SyncRedisCluster
from redis.asyncio import RedisCluster
from redis.asyncio.lock import Lock as RedisLock
from redis.exceptions import LockNotOwnedError

from components.exceptions import LockNotAcquired
from components.kit import leases as renewals
from components.kit.at_once import cancellations, to_its_end
from components.kit.errors import REDIS_FAILED
from components.services.locks.core import DEFAULT_SLEEP, LockCore, milliseconds_to_add
from components.services.locks.holdings import Holding, Shared, TaskLocal

logger = logging.getLogger(__name__)

_SYNCHRONOUS = (SyncRedis, SyncRedisCluster)


class AsyncLock(LockCore, RedisLock):
    """
    Lock for coroutines: redis.asyncio.lock.Lock with more to it. The arguments are those of Lock.

    *min_replicas* needs a client of one server or of Sentinel, not of a cluster.
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
        if isinstance(redis, _SYNCHRONOUS):
            raise TypeError("The client of an AsyncLock is not asynchronous: give it to Lock.")
        super().__init__(
            redis, name, timeout, sleep, blocking, blocking_timeout, thread_local, raise_on_release_error
        )
        self.local: Any = TaskLocal() if thread_local else Shared()
        self._configure(fair=fair, auto_renewal=auto_renewal, owner=owner, min_replicas=min_replicas)
        if min_replicas and isinstance(redis, RedisCluster):
            raise ValueError("min_replicas is for Lock, or for the client of one server: not for this one.")

    def register_scripts(self) -> None:
        """Nothing: the scripts are this app's."""

    async def __aenter__(self) -> Self:
        if await self.acquire():
            return self
        raise LockNotAcquired(f"The lock {self.name!r} was not free in time.", self.name)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.release()
        except REDIS_FAILED as problem:
            if self.raise_on_release_error and error is None:
                raise
            logger.warning("A lock could not be released at the end of its block: %s", problem)

    async def acquire(
        self,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: str | bytes | None = None,
    ) -> bool:
        """Lock.acquire(), awaited."""
        blocking, patience = self._patience(blocking, blocking_timeout)
        own = self._token(None if token is None else self._encoded(token), is_coroutine=True)
        if not self._polls(None):
            return await self._take(own, blocking=blocking, patience=patience)
        try:
            return bool(await super().acquire(blocking, patience, own))
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:  # it may be held
            await self._give_up(own)
            raise

    async def do_acquire(self, token: Any) -> bool:
        """Try once, for redis-py's loop."""
        cancelled = cancellations()
        is_taken = not await self._try(token)
        if cancellations() > cancelled:
            raise asyncio.CancelledError
        return is_taken

    async def locked(self) -> bool:
        """Whether anybody holds it."""
        with self._errors():
            return await super().locked()

    async def owned(self) -> bool:
        """Whether this coroutine holds it."""
        with self._errors():
            return await super().owned()

    async def release(self) -> None:
        """
        Lock.release(), awaited.

        If it is cancelled, however often, it is released nevertheless before CancelledError is raised. If Redis did
        not answer by then, it may be tried again.
        """
        token = self._token_to_release()
        try:
            await self._release(token)
        except asyncio.CancelledError:
            with suppress(*REDIS_FAILED):
                await to_its_end(lambda: self._release(token))
            raise

    async def _release(self, token: bytes) -> None:
        try:
            await self.do_release(token)
        except LockNotOwnedError:
            self._forget(token)
            raise
        self._forget(token)

    async def do_release(self, expected_token: Any) -> None:
        await self._give_back(expected_token)

    def extend(self, additional_time: float, replace_ttl: bool = False) -> Awaitable[Literal[True]]:
        """Lock.extend(), to be awaited; what is wrong with the call itself is raised at once."""
        self._token_to_extend("extend")
        milliseconds_to_add(additional_time)  # it is checked before anything is sent
        return self.do_extend(additional_time, replace_ttl)

    async def do_extend(self, additional_time: float, replace_ttl: bool) -> Literal[True]:
        milliseconds, how = milliseconds_to_add(additional_time), "replaces" if replace_ttl else "adds"
        if not await self._extend(self.local.token, milliseconds, how):
            raise self._loss("Cannot extend a lock that's no longer owned")
        return True

    def reacquire(self) -> Awaitable[Literal[True]]:
        """Lock.reacquire(), to be awaited."""
        self._token_to_extend("reacquire")
        return self.do_reacquire()

    async def do_reacquire(self) -> Literal[True]:
        if not await self._extend(self.local.token, self._ms, "anew"):
            raise self._loss("Cannot reacquire a lock that's no longer owned")
        return True

    async def ensure_held(self) -> None:
        """Lock.ensure_held(), awaited."""
        await self._ensure_held()

    @property
    def lost(self) -> asyncio.Event:
        """Set when it is lost: when a renewal finds that, or its time is over. Raises LockError if it is not held."""
        holding = self._holding
        if not self.auto_renewal:
            renewals.awatch(holding)
        lost: asyncio.Event = holding.event(asyncio.Event)
        return lost

    async def _to_its_end(self, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await to_its_end(start)

    def _encoded(self, token: str | bytes) -> bytes:
        try:
            encoder = self.redis.connection_pool.get_encoder()
        except AttributeError:  # of a cluster
            encoder = self.redis.get_encoder()
        encoded: bytes = encoder.encode(token)
        return encoded

    async def _arenew(self, holding: Holding) -> bool:
        return await self._prolong(holding)

    _keep = staticmethod(renewals.akeep)
    _drop = staticmethod(renewals.adrop)
