"""
Ask Sentinels in a hurry: each has one second and one attempt, then the next one is asked.

redis-py tries each Sentinel eleven times, five seconds each, so a process that starts while one hangs waits a minute.
It asks no other if what answers is no Sentinel.
"""

from collections.abc import Mapping
from typing import Any

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError
from redis.retry import Retry

from components.kit.silence import guard

TIMEOUT = 1.0  # seconds


def hurry(manager: Any, given: Mapping[str, Any]) -> None:
    """
    Make *manager*, a Sentinel of redis-py, synchronous or not, skip Sentinels that do not answer soon.

    *given* are the project's own SENTINEL_KWARGS, which take precedence.
    """
    if isinstance(manager.sentinels, _Unmoved):
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
    manager.sentinels = _Unmoved(manager.sentinels)


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


class _Unmoved(list[Any]):
    """
    Sentinels that stay in their order.

    redis-py moves the one that answered to the front, by its index. If two threads do so at once, one Sentinel is in
    the list twice and another is lost. Moving saves nothing here, since one that is silent is not asked.
    """

    def __setitem__(self, *moved: Any) -> None: ...
