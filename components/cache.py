"""
The client classes that OPTIONS["CLIENT_CLASS"] of a CACHES alias can name.

They are those of django-redis, with this app's locks, a clear() that spares what other patterns keep in Redis, and
connections that do not wait for a server that is known to hang.
"""

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack, suppress
from fnmatch import fnmatchcase
from functools import wraps
from os.path import commonprefix
from threading import Lock as ThreadLock
from typing import Any, ParamSpec, TypeVar, cast

from django.core.exceptions import ImproperlyConfigured
from django_redis.client import DefaultClient
from django_redis.client import SentinelClient as _SentinelClient
from django_redis.client.default import glob_escape
from django_redis.exceptions import ConnectionInterrupted
from django_redis.pool import SentinelConnectionFactory as _SentinelConnectionFactory
from redis import Connection, ConnectionPool, Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.connection import parse_url
from redis.exceptions import ConnectionError, RedisClusterException, ResponseError
from redis.retry import Retry

from components.conf import warn_unless_installed
from components.kit import aclient, sentinels
from components.kit.errors import REPLY_LOST
from components.kit.keyspace import ours
from components.kit.silence import guard, guarded, suspect
from components.services.locks import Lock

warn_unless_installed()  # `manage.py check` imports this, and none of the app's checks

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SCANNED = 1_000  # keys that cache.clear() looks at, and deletes, in one round trip

#: Options of a connection that would make redis-py send a command again.
_REPEATING = ("retry", "retry_on_error", "retry_on_timeout")


def _interrupted(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let *method* raise the error of django-redis that OPTIONS["IGNORE_EXCEPTIONS"] ignores, for any outage."""

    @wraps(method)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return method(*args, **kwargs)
        except (RedisClusterException, ResponseError, *REPLY_LOST) as error:
            raise ConnectionInterrupted(connection=None) from error

    return run


class LockMixin:
    """Lets cache.lock() make this app's Lock. A class of yours: class OurClient(LockMixin, SentinelClient)."""

    get_client: Callable[..., Redis]
    make_key: Callable[..., str]

    def lock(
        self,
        key: str,
        version: int | None = None,
        timeout: float | None = None,
        sleep: float = 0.1,
        blocking: bool = True,
        blocking_timeout: float | None = None,
        client: Redis | None = None,
        thread_local: bool = True,
        **more: Any,
    ) -> Lock:
        """Return a Lock at the cache's *key*, with django-redis' arguments and all *more* that Lock takes."""
        return Lock(
            client or self.get_client(write=True),
            self.make_key(key, version=version),
            timeout=timeout,
            sleep=sleep,
            blocking=blocking,
            blocking_timeout=blocking_timeout,
            thread_local=thread_local,
            **more,
        )


class SparingMixin:
    """
    cache.clear() deletes the keys of that cache, and spares those of this app and of other caches in the database.

    django-redis empties the database with FLUSHDB: queues, locks and messages would go, too.
    """

    get_client: Callable[..., Redis]
    _backend: Any

    @_interrupted
    def clear(self, client: Redis | None = None) -> None:
        """
        Delete all keys of this cache, of every version, whatever else the database holds.

        Raises ImproperlyConfigured if nothing in them tells them from those of others.
        """
        client = client or self.get_client(write=True)
        is_ours, batch = ours().match, list[bytes]()
        # SCAN returns every key that exists throughout the scan. Keys that are added meanwhile may remain, as with
        # FLUSHDB.
        for key in client.scan_iter(match=self._pattern(), count=_SCANNED):
            if not is_ours(key):
                batch.append(key)
            if len(batch) >= _SCANNED:
                _unlink(client, batch)
                batch.clear()
        _unlink(client, batch)

    def _pattern(self) -> str:
        """Return the pattern of this cache's keys. A KEY_FUNCTION may hash the key, and want a number as version."""
        prefix, make = self._backend.key_prefix, self._backend.key_func
        made = [str(make(key, prefix, version)) for key, version in (("a", 1), ("b:c", 29), ("*", 387))]
        with suppress(TypeError, ValueError):
            pattern = str(make("*", glob_escape(prefix), "*"))
            # What stands for anything must not follow a letter: the prefix of another cache may begin with this one.
            is_telling = not pattern.startswith("*") or (prefix and glob_escape(prefix) in pattern)
            is_telling = is_telling and not re.search(r"[^\W_]\*", pattern)
            if is_telling and all(fnmatchcase(each, pattern) for each in made):
                return pattern
        common = re.sub(r"[^\W_]+$", "", commonprefix(made))  # noqa: RUF071  (of texts)
        if prefix and prefix in common:
            return f"{glob_escape(common)}*"
        raise ImproperlyConfigured(
            "clear() cannot tell the keys of this cache from others, since its KEY_FUNCTION does not let them begin "
            "with a readable KEY_PREFIX. Let it do so, or send FLUSHDB if nothing else is in the database."
        )


def _unlink(client: Redis, names: Sequence[bytes]) -> None:
    """Delete these keys, in one round trip to each node. Raises the first error."""
    if names:
        with client.pipeline(transaction=False) as pipe:
            for name in names:  # one by one, since on a cluster the keys lie in many slots
                pipe.unlink(name)
            pipe.execute()


class GuardedMixin:
    """The cache does not wait for a server that is known not to answer: its commands fail at once."""

    def connect(self, index: int = 0) -> Redis:
        """Return a new client of the server *index*, whose connections are guarded."""
        client: Redis = super().connect(index)  # type: ignore[misc]
        guard(client.connection_pool)
        return client


class Client(LockMixin, SparingMixin, GuardedMixin, DefaultClient):  # type: ignore[misc]  # django-redis has no py.typed
    """
    django-redis' client for a single server: OPTIONS {"CLIENT_CLASS": "components.cache.Client"}.

    Its cache.lock() makes this app's Lock, and its cache.clear() spares this app's keys. While the server hangs, the
    cache fails at once (ConnectionError) where it would wait for a timeout each time.
    """


class SentinelClient(LockMixin, SparingMixin, GuardedMixin, _SentinelClient):  # type: ignore[misc]
    """
    The same for a service that Sentinels know: OPTIONS {"CLIENT_CLASS": "components.cache.SentinelClient",
    "CONNECTION_FACTORY": "components.cache.SentinelConnectionFactory", "SENTINELS": [(host, port), …]}.
    """


class SentinelConnectionFactory(_SentinelConnectionFactory):  # type: ignore[misc]
    """
    django-redis' factory for Sentinels, which asks the next one soon when one does not answer.

    redis-py tries each Sentinel eleven times, five seconds each; here a Sentinel has one second and one try,
    unless SENTINEL_KWARGS say otherwise.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        sentinels.hurry(self._sentinel, options.get("SENTINEL_KWARGS") or {})


class _GuardedPool(ConnectionPool):
    """The connections to a node of a cluster."""

    def __init__(self, connection_class: Any = Connection, *args: Any, **options: Any) -> None:
        super().__init__(guarded(connection_class), *args, **options)


class _Cluster(RedisCluster):
    """A client that starts while a node is gone: redis-py asks the first for the commands, and fails with it."""

    def command(self, **kwargs: Any) -> Any:
        """Ask any node that answers for the commands of the servers. Raises the error of the last one."""
        if "target_nodes" in kwargs:
            return super().command(**kwargs)
        nodes = self.get_primaries()  # type: ignore[no-untyped-call]
        suspect(*((each.host, each.port) for each in nodes))
        for last, node in enumerate(nodes, start=1):
            try:
                found = super().command(target_nodes=node)
            except REPLY_LOST:
                if last == len(nodes):
                    raise
            else:
                self.set_default_node(node)  # type: ignore[no-untyped-call]
                return found
        raise ConnectionError("The cluster has no nodes.")


class ClusterClient(LockMixin, SparingMixin, DefaultClient):  # type: ignore[misc]
    """
    The same for a Redis Cluster: OPTIONS {"CLIENT_CLASS": "components.cache.ClusterClient"}.

    LOCATION is the URL of one node, or of several with commas between: the first that answers knows all others. The
    connections belong to the process, as those of django-redis' own pools do.
    """

    _clusters: dict[tuple[str, ...], RedisCluster] = {}
    _guard = ThreadLock()

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(self._server)

    @property
    def options(self) -> dict[str, Any]:
        """Return the connection options in OPTIONS. The protocol determines the parser; no command is repeated."""
        factory = self.connection_factory
        options = {**factory.make_connection_params(""), **factory.pool_cls_kwargs}
        return {
            name: value for name, value in options.items() if name not in ("url", "parser_class", *_REPEATING)
        }

    def make_async_client(self, closing: AsyncExitStack) -> AsyncRedis:
        """Return a client of the same cluster for coroutines; *closing* closes it."""
        return aclient.cluster(self.urls, self.options, closing)

    def connect(self, index: int = 0) -> Redis:
        urls = self.urls
        with self._guard:
            if urls not in self._clusters:
                self._clusters[urls] = self._find(urls)
        return cast(Redis, self._clusters[urls])

    def disconnect(self, index: int = 0, client: Any = None) -> None:
        """Do nothing, because other threads use the same connections."""

    def get_many(
        self, keys: Collection[str], version: int | None = None, client: Redis | None = None
    ) -> dict[str, Any]:
        """Return the existing values by key. Keys may be in any slots, whereas MGET takes those of one slot only."""
        cluster = cast(RedisCluster, client or self.get_client(write=False))
        names = {self.make_key(key, version=version): key for key in keys}
        found = cluster.mget_nonatomic(list(names)) if names else []
        pairs = zip(names.values(), found, strict=True)
        return {key: self.decode(value) for key, value in pairs if value is not None}

    def keys(self, search: str, version: int | None = None, client: Redis | None = None) -> list[Any]:
        """Return the matching keys of all nodes."""
        return list(self.iter_keys(search, version=version, client=client))

    # Sets may lie in any slots, whereas the commands take those of one slot only. None of these is atomic.

    def sdiff(self, *keys: str, version: int | None = None, client: Redis | None = None) -> set[Any]:
        return self._decoded(self._sets(keys, version, client), set.difference)

    def sinter(self, *keys: str, version: int | None = None, client: Redis | None = None) -> set[Any]:
        return self._decoded(self._sets(keys, version, client), set.intersection)

    def sunion(self, *keys: str, version: int | None = None, client: Redis | None = None) -> set[Any]:
        return self._decoded(self._sets(keys, version, client), set.union)

    def sdiffstore(
        self,
        dest: str,
        *keys: str,
        version_dest: int | None = None,
        version_keys: int | None = None,
        client: Redis | None = None,
    ) -> int:
        return self._store(
            dest, version_dest, client, set.difference(*self._sets(keys, version_keys, client))
        )

    def sinterstore(
        self, dest: str, *keys: str, version: int | None = None, client: Redis | None = None
    ) -> int:
        return self._store(dest, version, client, set.intersection(*self._sets(keys, version, client)))

    def sunionstore(
        self, destination: str, *keys: str, version: int | None = None, client: Redis | None = None
    ) -> int:
        return self._store(destination, version, client, set.union(*self._sets(keys, version, client)))

    def smove(
        self,
        source: str,
        destination: str,
        member: Any,
        version: int | None = None,
        client: Redis | None = None,
    ) -> bool:
        if not self.sismember(source, member, version=version, client=client):
            return False
        self.sadd(destination, member, client=client)
        return bool(self.srem(source, member, version=version, client=client))

    def _sets(self, keys: Sequence[str], version: int | None, client: Redis | None) -> list[set[bytes]]:
        client = client or self.get_client(write=False)
        return [{*cast(Any, client).smembers(self.make_key(key, version=version))} for key in keys]

    def _decoded(self, sets: list[set[bytes]], combine: Callable[..., set[bytes]]) -> set[Any]:
        return {self.decode(member) for member in combine(*sets)}

    def _store(self, key: str, version: int | None, client: Redis | None, members: set[bytes]) -> int:
        client, name = client or self.get_client(write=True), self.make_key(key, version=version)
        with client.pipeline(transaction=True) as pipe:
            pipe.delete(name)
            if members:
                pipe.sadd(name, *members)
            pipe.execute()
        return len(members)

    def _find(self, urls: tuple[str, ...]) -> RedisCluster:
        if len(urls) > 1:  # so that nobody waits for the first if it hangs
            named, make = map(cast(Any, parse_url), urls), cast(Any, ClusterNode)
            nodes = [make(each.get("host", "localhost"), each.get("port", 6379)) for each in named]
            suspect(*((each.host, each.port) for each in nodes))
        for last, url in enumerate(urls, start=1):
            try:
                options = {"connection_pool_class": _GuardedPool, **self.options}
                return _Cluster.from_url(url, retry=Retry(NoBackoff(), 0), **options)
            except (RedisClusterException, *REPLY_LOST):
                if last == len(urls):
                    raise
        raise ImproperlyConfigured("The LOCATION of the cluster names no node.")


for _name, _method in inspect.getmembers(ClusterClient, inspect.isfunction):
    # What uses Redis. django-redis knows the errors of a single server only.
    if "client" in inspect.signature(_method).parameters and not inspect.isgeneratorfunction(_method):
        setattr(ClusterClient, _name, _interrupted(_method))
