"""
Return the client for the CACHES alias in COMPONENTS["CACHE"]: the only way to Redis.

django-redis makes the client, so one URL is enough: it names a server, a Sentinel service or, with the classes in
components/cache.py, a cluster. Coroutines get a client made from the same settings (aclient.py). Nothing here repeats
a write by itself.
"""

import sys
from collections.abc import Hashable
from contextlib import AsyncExitStack
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from django.conf import settings
from django.core.cache import caches
from django.core.signals import setting_changed
from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import RedisClusterException

from components.conf import conf
from components.exceptions import RedisUnsuitable
from components.kit import aclient, sentinels
from components.kit.errors import translated
from components.kit.forking import notice
from components.kit.line import keep
from components.kit.silence import guard
from components.kit.test_guard import refuse
from components.locations import mistakes

_T = TypeVar("_T")

# Seconds: redis-py's default, used if the alias sets no timeout.
_SOCKET_TIMEOUT = 5.0
#: Seconds. Redis 6.2 rounds the timeout of a blocking command down to milliseconds, and 0 means for ever.
SHORTEST_BLOCK = 0.01
_LONGEST_BLOCK = 4.0  # seconds; a blocking command must return before its socket times out

#: A synchronous or asynchronous client (see sync_async.py).
AnyRedis: TypeAlias = Redis | AsyncRedis


def get_client() -> Redis:
    """
    Return the project's Redis client; replies are bytes. It is shared: do not close it.

    Raises ImproperlyConfigured if the CACHES alias does not exist or does not use django-redis.
    """
    notice()
    found = conf()
    if found.test_run or "django.test.utils" in sys.modules:
        refuse()
    return _client_of(found.cache)


@cache
def _client_of(alias: str) -> Redis:
    try:
        client = _django_redis(alias).get_client()
    except Exception as error:  # noqa: BLE001  (a cluster's errors have no class in common with others)
        raise translated(error)  # noqa: B904  (it has its cause)
    if not isinstance(client, RedisCluster):
        # A pool of any class is guarded, so that it waits neither for silent servers nor for silent Sentinels.
        pool = client.connection_pool
        guard(pool)
        keep(pool)
        if (manager := getattr(pool, "sentinel_manager", None)) is not None:
            sentinels.hurry(manager, settings.CACHES[alias].get("OPTIONS", {}).get("SENTINEL_KWARGS") or {})
    return cast(Redis, client)


def get_async_client() -> AsyncRedis:
    """
    Return the client of the running event loop, which closes it when the loop ends.

    It opens no connection before its first command. If you use your own pool, connection or parser class, the
    asynchronous counterpart of its redis-py base class is used. Use scripts, not transactions: on a cluster redis-py
    runs each command of a transaction in a thread with its own loop. Raises NoEventLoop outside of a loop.
    """
    return aclient.kept_by_the_loop(AsyncRedis, lambda closing: _new_async_client(conf().cache, closing))


def _new_async_client(alias: str, closing: AsyncExitStack) -> AsyncRedis:
    client = _django_redis(alias)
    if make := getattr(client, "make_async_client", None):  # a cluster's client has this method
        return cast(AsyncRedis, make(closing))
    return aclient.single(client._server[0], client.connection_factory, closing)


def _django_redis(alias: str) -> Any:
    """Return the client that django-redis keeps behind a cache. Raises RedisUnsuitable if its settings are wrong."""
    try:
        found = cast(Any, caches[alias])
    except ImportError:
        _check(alias)  # which says what cannot be imported
        raise
    if not hasattr(type(found), "client"):
        raise RedisUnsuitable(
            f'COMPONENTS["CACHE"] is {alias!r}, but settings.CACHES[{alias!r}] is not a cache of django-redis: '
            'its BACKEND must be "django_redis.cache.RedisCache".'
        )
    _check(alias)
    refuse()
    return found.client


@cache
def _check(alias: str) -> None:
    """Raise RedisUnsuitable if the settings of the cache *alias* cannot work."""
    for mistake in mistakes(settings.CACHES[alias]):
        raise RedisUnsuitable(f"settings.CACHES[{alias!r}]: {mistake}")


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "CACHES":
        _check.cache_clear()
        _client_of.cache_clear()


setting_changed.connect(_forget, dispatch_uid="components.kit.client")


def server_of(client: Any, key: str) -> Hashable:
    """
    Return an object that stands for the server that *client* asks about *key*; equal objects mean the same server.

    It is the client's connection pool and, on a cluster, also the node that serves the key's slot. Nothing is sent.
    """
    if isinstance(client, RedisCluster):
        try:
            node: Any = client.get_node_from_key(key)  # type: ignore[no-untyped-call]
        except RedisClusterException:  # the client does not know now which node serves the slot
            node = None
        return id(client.nodes_manager), getattr(node, "name", None)
    return id(getattr(client, "connection_pool", client))


def longest_block(client: Redis | AsyncRedis) -> float:
    """Return how many seconds a blocking command may wait on *client* without a socket timeout."""
    timeout = client.get_connection_kwargs().get("socket_timeout", _SOCKET_TIMEOUT)
    return min(_LONGEST_BLOCK, max(0.1, timeout - 1)) if timeout else _LONGEST_BLOCK
