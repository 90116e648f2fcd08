"""
The one door to Redis: the client behind the CACHES alias that COMPONENTS["CACHE"] names.

django-redis makes the client, so one URL says it all: a server, a Sentinel service or, through
ClusterClient below, a cluster; coroutines get theirs from the same settings (aclient.py). Nothing
here repeats a write by itself: redis-py would, up to ten times, and a counter would count ten.
Scripts are sent once more (scripts.py), being idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import AsyncExitStack
from functools import cache
from threading import Lock as ThreadLock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from django.conf import settings
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django_redis.client import DefaultClient
from django_redis.client import SentinelClient as _SentinelClient
from django_redis.client.default import glob_escape
from django_redis.pool import SentinelConnectionFactory as _SentinelConnectionFactory
from redis import Connection, ConnectionPool, Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.connection import AbstractConnection
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterError,
    ConnectionError,
    InvalidResponse,
    MasterDownError,
    MaxConnectionsError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    SlotNotCoveredError,
    TimeoutError,
    TryAgainError,
)
from redis.retry import Retry

from components import aclient, sentinels
from components.conf import conf
from components.exceptions import ComponentsError, RedisRefused, RedisUnavailable, RedisUnsuitable
from components.keys.naming import ours
from components.locations import mistakes
from components.silence import guard, guarded

if TYPE_CHECKING:
    from components.services.locks import Lock

_T = TypeVar("_T")

#: The command may or may not have been carried out: its reply did not arrive.
REPLY_LOST = (ConnectionError, TimeoutError)

#: All that may be raised because of Redis: the errors of a cluster client have no class in common with others.
REDIS_FAILED = (ComponentsError, RedisError, RedisClusterException)

#: Answers of a server that is there and cannot take a command now. redis-py has classes for some, which
#: leave the word out; errors inside scripts, and all others, have it somewhere in their text.
_NOT_NOW_CLASSES = (ClusterError, OutOfMemoryError, ReadOnlyError, TryAgainError)
_NOT_NOW = re.compile(r"\b(OOM|MISCONF|READONLY|LOADING|CLUSTERDOWN|MASTERDOWN|NOREPLICAS|BUSY|UNBLOCKED)\b")

#: What a server older than 6.2 says, to a client or inside a script, and one that has no such database.
_UNKNOWN_COMMAND = re.compile(r"unknown command|Unknown Redis command", re.IGNORECASE)
_WRONG_DATABASE = re.compile(
    r"(DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode)", re.I
)

#: What a server says inside a script to a user who may not do all that it does; outside there is a class for it.
_NO_PERMISSION = re.compile(r"user executing the script|ACL failure in script")

_LOGIN = (AuthenticationError, AuthorizationError)

#: What a server says that is there and cannot take a command now, in our words: by redis-py's class, or by the word
#: that the server begins with.
_REFUSALS: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (ReadOnlyError,),
        "READONLY",
        "it is a read-only replica, and the CACHES alias has to lead to its master",
    ),
    ((OutOfMemoryError,), "OOM", "it is full, until data have gone or its maxmemory is raised"),
    ((BusyLoadingError,), "LOADING", "it was started a moment ago and is loading its data"),
    ((), "MISCONF", "it could not save its data to disk, and takes no writes until it can"),
    ((), "NOREPLICAS", "too few of its replicas are connected"),
    ((MasterDownError,), "MASTERDOWN", "it is a replica that has lost its master"),
    ((), "BUSY", "it is busy running a script"),
)

#: What redis-py finds out by itself about a cluster that is not whole now. It has a class for neither.
_NOT_WHOLE = re.compile(r"slots are not covered|could not agree on a valid slots cache")

_SOCKET_TIMEOUT = 5.0  # seconds: redis-py's default, where the alias sets none
#: Seconds: Redis 6.2 rounds a blocking command's timeout down to milliseconds, also 0.001, and 0 is for ever.
SHORTEST_BLOCK = 0.01
_LONGEST_BLOCK = 4.0  # seconds: a blocking command must return before the socket gives up on it

_SCANNED = 1_000  # keys that cache.clear() looks at, and deletes, in one round trip

#: A client, synchronous or not (see twins.py).
AnyRedis: TypeAlias = Redis | AsyncRedis

#: Options of a connection that would make redis-py send a command again.
_REPEATING = ("retry", "retry_on_error", "retry_on_timeout")


def get_client() -> Redis:
    """
    The Redis client of this project; replies are bytes. It is shared: do not close it.

    Raises ImproperlyConfigured if the CACHES alias does not exist or is not django-redis'.
    """
    with redis_errors():
        alias = conf().cache
        client = _django_redis(alias).get_client()
        if not isinstance(client, RedisCluster):
            _make_safe(client.connection_pool, alias)
        return cast(Redis, client)


def _make_safe(pool: Any, alias: str) -> None:
    """Let *pool*, of whatever client class, wait neither for servers that are silent nor for Sentinels that are."""
    guard(pool)
    if (manager := getattr(pool, "sentinel_manager", None)) is not None:
        sentinels.hurry(manager, settings.CACHES[alias].get("OPTIONS", {}).get("SENTINEL_KWARGS") or {})


def get_async_client() -> AsyncRedis:
    """
    The same for coroutines: the client of the running event loop, which closes it at its end.

    It opens no connection before its first command. A pool, connection or parser class of your own counts
    as the class of redis-py that it derives from. Use scripts, not transactions: on a cluster redis-py runs
    each command of a transaction in a thread with a loop of its own. Raises NoEventLoop outside of a loop.
    """
    alias = conf().cache
    return aclient.client_of_the_loop(settings.CACHES.get(alias), lambda end: _new_async_client(alias, end))


def kept_by_the_loop(kind: type[_T], make: Callable[[AsyncExitStack], _T]) -> _T:
    """
    The one *kind* that the running event loop keeps beside its client; made where it has none yet.

    *make* is given the stack on which to leave what must be awaited at the end of the loop.
    """
    return aclient.kept_by_the_loop(kind, settings.CACHES.get(conf().cache), make)


async def new_async_connection() -> AbstractConnection:
    """
    A connection of its own to the Redis of the running loop's client, for who listens: it has no timeout of
    reading or writing, and must be closed by who asked for it. Raises redis-py's errors.
    """
    return await aclient.connect(get_async_client())


def _new_async_client(alias: str, closing: AsyncExitStack) -> AsyncRedis:
    client = _django_redis(alias)
    if isinstance(client, ClusterClient):
        return aclient.cluster(client.urls, client.options, closing)
    return aclient.single(client._server[0], client.connection_factory, closing)


def _django_redis(alias: str) -> Any:
    """What django-redis keeps behind a cache. Raises RedisUnsuitable if its settings cannot work."""
    try:
        found = cast(Any, caches[alias]).client
    except AttributeError:
        raise RedisUnsuitable(
            f'COMPONENTS["CACHE"] is {alias!r}, but settings.CACHES[{alias!r}] is not a cache of django-redis: '
            'its BACKEND must be "django_redis.cache.RedisCache".'
        ) from None
    _check(alias)
    return found


@cache
def _check(alias: str) -> None:
    """Raise RedisUnsuitable if the settings of the cache *alias* cannot work."""
    for mistake in mistakes(settings.CACHES[alias]):
        raise RedisUnsuitable(f"settings.CACHES[{alias!r}]: {mistake}")


def _forget(*, setting: str, **kwargs: Any) -> None:
    if setting == "CACHES":
        _check.cache_clear()


setting_changed.connect(_forget, dispatch_uid="components.client")


def server_of(client: Any, key: str) -> Hashable:
    """
    Return what stands for the server that *client* asks about *key*: equal for what is sent to the same one.

    That is its connection pool, and on a cluster the node of the key's slot besides. Nothing is sent for it.
    """
    if isinstance(client, RedisCluster):
        try:
            node: Any = client.get_node_from_key(key)  # type: ignore[no-untyped-call]
        except RedisClusterException:  # it is not known now which node has it
            node = None
        return id(client.nodes_manager), getattr(node, "name", None)
    return id(getattr(client, "connection_pool", client))


def longest_block(client: Redis | AsyncRedis) -> float:
    """How many seconds a blocking command may wait on *client* without its socket timing out."""
    timeout = client.get_connection_kwargs().get("socket_timeout", _SOCKET_TIMEOUT)
    return min(_LONGEST_BLOCK, max(0.1, timeout - 1)) if timeout else _LONGEST_BLOCK


class redis_errors:  # noqa: N801  (used as a function is)
    """
    Turn redis-py's ways to say "not now", awaited or not, into RedisUnavailable; other errors pass.

    A class, since a generator costs a microsecond each time, and a call of Redis passes two.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and (wrong := _wrong(error)):
            raise RedisUnsuitable(wrong) from error
        if error is not None and (reason := _reason(error)):
            is_there = isinstance(error, MaxConnectionsError | ResponseError) or _refusal(error)
            raise (RedisRefused if is_there else RedisUnavailable)(reason) from error


def translated(error: Exception) -> Exception:
    """RedisUnavailable for what redis_errors turns into that, with *error* as its cause; else *error* itself."""
    try:
        with redis_errors():
            raise error
    except Exception as away:  # noqa: BLE001  (which it is that is wanted)
        return away


def _reason(error: BaseException) -> str | None:
    """Why Redis is unavailable; None if *error* says something else."""
    if isinstance(error, MaxConnectionsError):
        return (
            "All connections of this process to Redis are in use: give max_connections in the "
            "CONNECTION_POOL_KWARGS of the CACHES alias, or let fewer threads or coroutines use it at once."
        )
    if said := _refusal(error):
        return said
    if isinstance(error, REPLY_LOST) or (isinstance(error, RedisClusterException) and _is_outage(error)):
        return f"Redis does not answer: {error}"
    if _is_not_now(error):
        return f"Redis does not take commands now: {error}"
    return None


def _wrong(error: BaseException) -> str | None:
    """Return the sentence for an *error* that the server's version or the settings cause; None for any other."""
    if isinstance(error, InvalidResponse):
        return (
            f"What answers at the LOCATION of CACHES[{conf().cache!r}] does not speak as Redis does: {error}"
        )
    if isinstance(error, RedisClusterException):
        reason = error.__cause__
        error = (reason.__context__ if isinstance(reason, RedisClusterException) else reason) or error
    if isinstance(error, ConnectionError) and isinstance(error.__cause__, ResponseError):
        # So the asynchronous client wraps what a server on a unix socket says at once.
        error = error.__cause__
    if not isinstance(error, ResponseError):
        return None
    text = str(error).partition(", with args")[0]  # which may be a password
    where = f"CACHES[{conf().cache!r}]"
    if _UNKNOWN_COMMAND.search(text):
        return (
            f"The Redis of {where} does not know a command that this app needs, as before Redis 6.2, or lets nobody "
            f"use it: {text.rstrip('.')}. Install Redis 6.2 or newer, or Valkey."
        )
    if isinstance(error, NoPermissionError) or _NO_PERMISSION.search(text):
        return (
            f"The user whom {where} names may not use a command, key or channel that this app needs: "
            f"{text.rstrip('.')}. Grant the user all commands, and the keys and channels that "
            "begin with COMPONENTS['PREFIX'], which is 'components' unless it is set."
        )
    if _WRONG_DATABASE.search(text):
        return (
            f"The LOCATION of {where} names a database that the server does not have: {text.rstrip('.')}. "
            "A server has the databases 0 to 15 unless its configuration says otherwise, and a cluster has 0 only."
        )
    return None


def _refusal(error: BaseException | None) -> str | None:
    """Return what a server that is there has said by *error*, in our words; None if it is not among those."""
    if isinstance(error, RedisClusterException) and isinstance(error.__cause__, _LOGIN):
        error = error.__cause__
    if isinstance(error, _LOGIN):
        return f"Redis does not accept the user name or password that the CACHES alias gives: {error}"
    for classes, word, words in _REFUSALS:
        by_word = isinstance(error, ResponseError) and re.search(rf"\b{word}\b", str(error))
        if isinstance(error, classes) or by_word:
            return f"Redis does not take commands now: {words}: {error}"
    return None


def _is_not_now(error: BaseException | None) -> bool:
    return isinstance(error, _NOT_NOW_CLASSES) or (
        isinstance(error, ResponseError) and bool(_NOT_NOW.search(str(error)))
    )


def _is_outage(error: RedisClusterException) -> bool:
    """Whether the cluster is at fault, and not the caller, whose keys may lie in several slots."""
    if isinstance(error, SlotNotCoveredError) or _NOT_WHOLE.search(str(error)):
        return True
    reason = error.__cause__  # why the last node asked could not tell of the others
    if isinstance(
        reason, RedisClusterException
    ):  # "cluster mode is not enabled": so it calls any error reply
        reason = reason.__context__
    return isinstance(reason, REPLY_LOST) or _is_not_now(reason)


class LockMixin:
    """
    cache.lock() makes this app's Lock: for a client class of your own, class OurClient(LockMixin, SentinelClient).
    """

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
        """A Lock at the cache's *key*: by django-redis' arguments, and all *more* that Lock takes."""
        from components.services.locks import Lock  # it is built upon this module

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

    def clear(self, client: Redis | None = None) -> None:
        """Delete all keys of this cache, of every version, whatever else the database holds."""
        client = client or self.get_client(write=True)
        is_ours, batch = ours().match, list[bytes]()
        # SCAN gives every key that is there all the time; what is added meanwhile may stay, as after FLUSHDB.
        for key in client.scan_iter(match=self._pattern(), count=_SCANNED):
            if not is_ours(key):
                batch.append(key)
            if len(batch) >= _SCANNED:
                _unlink(client, batch)
                batch.clear()
        _unlink(client, batch)

    def _pattern(self) -> str:
        """What the keys of this cache match; everything, where a KEY_FUNCTION of the project hides it."""
        prefix = glob_escape(self._backend.key_prefix)
        pattern = str(self._backend.key_func("*", prefix, "*"))
        return pattern if "*" in pattern else "*"


def _unlink(client: Redis, names: Sequence[bytes]) -> None:
    """Delete them, in one round trip to each node. Raises what the first that could not be deleted met."""
    if names:
        with client.pipeline(transaction=False) as pipe:
            for name in names:  # singly: on a cluster they lie in many slots
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
    django-redis' client for a single server: OPTIONS {"CLIENT_CLASS": "components.client.Client"}.

    Its cache.lock() makes this app's Lock, and its cache.clear() spares this app's keys. While the server hangs, the
    cache fails at once (ConnectionError) where it would wait for a timeout each time.
    """


class SentinelClient(LockMixin, SparingMixin, GuardedMixin, _SentinelClient):  # type: ignore[misc]
    """
    The same for a service that Sentinels know: OPTIONS {"CLIENT_CLASS": "components.client.SentinelClient",
    "CONNECTION_FACTORY": "components.client.SentinelConnectionFactory", "SENTINELS": [(host, port), …]}.
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
        """What commands the servers know, by any node that answers. Raises the error of the last one."""
        if "target_nodes" in kwargs:
            return super().command(**kwargs)
        nodes = self.get_primaries()  # type: ignore[no-untyped-call]
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
    The same for a Redis Cluster: OPTIONS {"CLIENT_CLASS": "components.client.ClusterClient"}.

    LOCATION is the URL of one node, or of several with commas between: the first that answers tells of
    all others. The connections belong to the process, as those of django-redis' own pools do.
    """

    _clusters: dict[tuple[str, ...], RedisCluster] = {}
    _guard = ThreadLock()

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(self._server)

    @property
    def options(self) -> dict[str, Any]:
        """What OPTIONS say about connections. The parser goes by the protocol; nothing is repeated."""
        factory = self.connection_factory
        options = {**factory.make_connection_params(""), **factory.pool_cls_kwargs}
        return {
            name: value for name, value in options.items() if name not in ("url", "parser_class", *_REPEATING)
        }

    def connect(self, index: int = 0) -> Redis:
        urls = self.urls
        with self._guard:
            if urls not in self._clusters:
                self._clusters[urls] = self._find(urls)
        return cast(Redis, self._clusters[urls])

    def disconnect(self, index: int = 0, client: Any = None) -> None:
        """Nothing: other threads use the same connections."""

    def get_many(
        self, keys: Collection[str], version: int | None = None, client: Redis | None = None
    ) -> dict[str, Any]:
        """The values that are there, by key. The keys may lie in any slots: MGET alone takes those of one."""
        cluster = cast(RedisCluster, client or self.get_client(write=False))
        names = {self.make_key(key, version=version): key for key in keys}
        found = cluster.mget_nonatomic(list(names)) if names else []
        pairs = zip(names.values(), found, strict=True)
        return {key: self.decode(value) for key, value in pairs if value is not None}

    def _find(self, urls: tuple[str, ...]) -> RedisCluster:
        for last, url in enumerate(urls, start=1):
            try:
                options = {"connection_pool_class": _GuardedPool, **self.options}
                return _Cluster.from_url(url, retry=Retry(NoBackoff(), 0), **options)
            except (RedisClusterException, *REPLY_LOST):
                if last == len(urls):
                    raise
        raise ImproperlyConfigured("The LOCATION of the cluster names no node.")
