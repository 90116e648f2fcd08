"""
The one door to Redis: the client behind the CACHES alias that COMPONENTS["CACHE"] names.

django-redis makes the client, so one URL says it all: a server, a Sentinel service or, through
ClusterClient below, a cluster. Nothing here repeats a write by itself: redis-py would, up to ten
times, and a counter would count ten. Scripts are sent once more (scripts.py), being idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, cast

from django.core.exceptions import ImproperlyConfigured
from django_redis import get_redis_connection
from django_redis.client import DefaultClient
from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.exceptions import (
    ClusterDownError,
    ConnectionError,
    MaxConnectionsError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    ResponseError,
    TimeoutError,
    TryAgainError,
)
from redis.retry import Retry

from components.conf import conf
from components.exceptions import RedisUnavailable

#: The command may or may not have been carried out: its reply did not arrive.
REPLY_LOST = (ConnectionError, TimeoutError)

#: Answers of a server that is there and cannot take a command now. redis-py has classes for some, which
#: leave the word out; errors inside scripts, and all others, have it somewhere in their text.
_NOT_NOW_CLASSES = (ClusterDownError, OutOfMemoryError, ReadOnlyError, TryAgainError)
_NOT_NOW = re.compile(r"\b(OOM|MISCONF|READONLY|LOADING|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|BUSY)\b")

_SOCKET_TIMEOUT = 5.0  # seconds: redis-py's default, where the alias sets none
_LONGEST_BLOCK = 4.0  # seconds: a blocking command must return before the socket gives up on it


def get_client() -> Redis:
    """
    The Redis client of this project; replies are bytes. It is shared: do not close it.

    Raises ImproperlyConfigured if the CACHES alias does not exist or is not django-redis'.
    """
    alias = conf().cache
    try:
        with redis_errors():
            return cast(Redis, get_redis_connection(alias))
    except NotImplementedError:
        raise ImproperlyConfigured(
            f'COMPONENTS["CACHE"] is {alias!r}, but settings.CACHES[{alias!r}] is not a cache of django-redis: '
            'its BACKEND must be "django_redis.cache.RedisCache".'
        ) from None


def longest_block(client: Redis) -> float:
    """How many seconds a blocking command may wait on *client* without its socket timing out."""
    pool = getattr(client, "connection_pool", None)  # a cluster client has one per node, with our defaults
    timeout = pool.connection_kwargs.get("socket_timeout", _SOCKET_TIMEOUT) if pool else _SOCKET_TIMEOUT
    return min(_LONGEST_BLOCK, max(0.1, timeout - 1)) if timeout else _LONGEST_BLOCK


@contextmanager
def redis_errors() -> Iterator[None]:
    """Turn redis-py's ways to say "not now" into RedisUnavailable; other errors pass."""
    try:
        yield
    except MaxConnectionsError as error:
        raise RedisUnavailable(
            "All connections of this process to Redis are in use: give max_connections in the "
            "CONNECTION_POOL_KWARGS of the CACHES alias, or let fewer threads use it at once."
        ) from error
    except (*REPLY_LOST, RedisClusterException) as error:
        raise RedisUnavailable(f"Redis does not answer: {error}") from error
    except ResponseError as error:
        if isinstance(error, _NOT_NOW_CLASSES) or _NOT_NOW.search(str(error)):
            raise RedisUnavailable(f"Redis does not take commands now: {error}") from error
        raise


class ClusterClient(DefaultClient):  # type: ignore[misc]  # django-redis has no py.typed
    """
    django-redis' client for a Redis Cluster: OPTIONS {"CLIENT_CLASS": "components.client.ClusterClient"}.

    LOCATION is the URL of one node, or of several with commas between: the first that answers tells of
    all others. The connections belong to the process, as those of django-redis' own pools do.
    """

    _clusters: dict[tuple[str, ...], RedisCluster] = {}
    _guard = Lock()

    def connect(self, index: int = 0) -> Redis:
        urls = tuple(self._server)
        with self._guard:
            if urls not in self._clusters:
                self._clusters[urls] = self._find(urls)
        return cast(Redis, self._clusters[urls])

    def disconnect(self, index: int = 0, client: Any = None) -> None:
        """Nothing: other threads use the same connections."""

    def _find(self, urls: tuple[str, ...]) -> RedisCluster:
        options = self.connection_factory.make_connection_params("")
        for name in ("url", "parser_class"):
            del options[name]
        for last, url in enumerate(urls, start=1):
            try:
                return RedisCluster.from_url(url, retry=Retry(NoBackoff(), 0), **options)
            except (RedisClusterException, *REPLY_LOST):
                if last == len(urls):
                    raise
        raise ImproperlyConfigured("The LOCATION of the cluster names no node.")
