"""
Ask Sentinels in a hurry: each has one second and one attempt, then the next one is asked.

redis-py tries each Sentinel eleven times, five seconds each, so a process that starts while one hangs waits a minute.
It asks no other if what answers is no Sentinel.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel

from components.kit.silence import guard

TIMEOUT = 1.0  # seconds


def hurry(manager: Any, given: Mapping[str, Any]) -> None:
    """
    Make *manager*, a Sentinel of redis-py, synchronous or not, skip Sentinels that do not answer soon.

    *given* are the project's own SENTINEL_KWARGS, which take precedence.
    """
    if isinstance(manager, _Careful | _AsyncCareful):
        return
    is_async = isinstance(manager, AsyncSentinel)
    for each in manager.sentinels:
        options = each.connection_pool.connection_kwargs
        for name in ("socket_timeout", "socket_connect_timeout"):
            options[name] = given.get(name, given.get("socket_timeout", TIMEOUT))
        options["retry"] = given.get("retry") or (AsyncRetry if is_async else Retry)(NoBackoff(), 0)
        guard(each.connection_pool)
        if type(each) in (Redis, AsyncRedis):
            each.__class__ = _AsyncAsked if is_async else _Asked
    if type(manager) in (Sentinel, AsyncSentinel):
        manager.__class__ = _AsyncCareful if is_async else _Careful


class _NotAnswered(ConnectionError):
    """Any error of what should be a Sentinel: redis-py asks the next one, and lists the errors at the end."""

    def __repr__(self) -> str:
        return str(self)


def _address(client: Any) -> str:
    return "{host}:{port}".format_map(client.connection_pool.connection_kwargs)


class _Asked(Redis):
    """A Sentinel, if it is one."""

    __repr__ = _address

    def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except RedisError as error:
            raise _NotAnswered(str(error)) from error


class _AsyncAsked(AsyncRedis):
    """The same for coroutines."""

    __repr__ = _address

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except RedisError as error:
            raise _NotAnswered(str(error)) from error


class _Careful(Sentinel):
    """
    A Sentinel manager whose list is safe with threads.

    redis-py moves the Sentinel that answered to the front of a list that all threads share, by its index. If two
    threads do so at once, one Sentinel is in the list twice and another is lost. Here each thread sorts its own list.
    """

    def discover_master(self, service_name: str) -> Any:
        own = copy(self)
        own.sentinels = list(self.sentinels)
        found = Sentinel.discover_master(own, service_name)  # type: ignore[no-untyped-call]
        self.sentinels = own.sentinels
        return found


class _AsyncCareful(AsyncSentinel):
    """The same for coroutines."""

    async def discover_master(self, service_name: str) -> Any:
        own = copy(self)
        own.sentinels = list(self.sentinels)
        found = await AsyncSentinel.discover_master(own, service_name)
        self.sentinels = own.sentinels
        return found
