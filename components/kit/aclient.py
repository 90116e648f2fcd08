"""
The asynchronous client: redis.asyncio, made from the same settings as django-redis' client.

A connection belongs to the event loop that opened it, so each loop has its own clients, one for each setting. The
clients are closed when the loop shuts down its asynchronous generators, as asyncio.run() does at its end; one
generator is left open for this purpose. A loop that was closed without that step is removed from the mapping of loops
when the next loop begins. A forked child runs its own loop and does not touch the clients that it inherits.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from copy import copy
from functools import partial
from importlib import import_module
from random import sample
from typing import Any, TypeVar, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from redis._parsers import AsyncCommandsParser
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode, NodesManager
from redis.asyncio.connection import AbstractConnection, parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    ClusterError,
    ConnectionError,
    SlotNotCoveredError,
    TimeoutError,
    TryAgainError,
)

from components.conf import conf
from components.exceptions import NoEventLoop
from components.kit.aline import AsyncLine
from components.kit.sentinels import hurry
from components.kit.silence import asuspect, guard, guarded

_T = TypeVar("_T")

_PRIMARY = "primary"  # redis-py's word for masters

#: For how many seconds a cluster is not asked for its nodes again after one of them fails. MOVED is always followed
#: at once.
_REFRESH = 1.0

#: How many seconds a server has to accept a connection for news, and again to answer the first commands on it.
_CONNECTING = 4.0


class _Clients:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._made: dict[tuple[type, int], tuple[Any, object]] = {}
        self._closing = AsyncExitStack()
        self._closing.callback(_loops.pop, loop, None)
        self._end = _closed_at_the_end(self._closing)
        # The generator runs up to its yield, and waits there for the end of the loop.
        with suppress(StopIteration):
            anext(self._end).__await__().send(None)

    def get(self, kind: type[_T], cache: object, make: Callable[[AsyncExitStack], _T]) -> _T:
        found = self._made.get((kind, id(cache)))
        if found is None:
            # A reference to the settings keeps their id from being reused.
            found = self._made[kind, id(cache)] = make(self._closing), cache
        made: _T = found[0]
        return made


#: Each entry is added and used only by the thread of its loop; the operations on the mapping itself are atomic.
_loops: dict[asyncio.AbstractEventLoop, _Clients] = {}


async def _closed_at_the_end(closing: AsyncExitStack) -> AsyncGenerator[None]:
    async with closing:
        yield


def kept_by_the_loop(kind: type[_T], make: Callable[[AsyncExitStack], _T]) -> _T:
    """
    Return the object of class *kind* that the running event loop keeps beside its client; create it if there is none.

    *make* gets a stack; what it leaves there is awaited at the end of the loop.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise NoEventLoop(
            "The asynchronous client was requested, but no event loop is running. Request it in a "
            "coroutine, or use the synchronous method, the one without the leading a."
        ) from None
    clients = _loops.get(loop)
    if clients is None:
        for closed in [other for other in list(_loops) if other.is_closed()]:
            _loops.pop(closed, None)
        clients = _loops[loop] = _Clients(loop)
    return clients.get(kind, settings.CACHES.get(conf().cache), make)


def single(url: str, connection_factory: Any, closing: AsyncExitStack) -> Redis:
    """Return a client for the server or the Sentinel service at *url*, with the options of a django-redis factory."""
    factory = copy(connection_factory)
    factory.pool_cls = _counterpart(factory.pool_cls)
    factory.pool_cls_kwargs = {**factory.pool_cls_kwargs, "retry": Retry(NoBackoff(), 0)}
    if "connection_class" in factory.pool_cls_kwargs:
        factory.pool_cls_kwargs["connection_class"] = _counterpart(
            factory.pool_cls_kwargs["connection_class"]
        )
    if (known := getattr(factory, "_sentinel", None)) is not None:
        given = factory.options.get("SENTINEL_KWARGS") or {}
        options = {name: value for name, value in known.sentinel_kwargs.items() if name != "retry"}
        factory._sentinel = Sentinel(  # type: ignore[no-untyped-call]
            factory.options["SENTINELS"], known.min_other_sentinels, sentinel_kwargs=options
        )
        hurry(factory._sentinel, {name: value for name, value in given.items() if name != "retry"})
        closing.push_async_callback(factory._sentinel.aclose)
    params = factory.make_connection_params(url)
    pool = factory.get_connection_pool({**params, "parser_class": _counterpart(params["parser_class"])})
    guard(pool)
    closing.push_async_callback(pool.aclose)
    pool.line = AsyncLine(pool.make_connection)
    closing.callback(pool.line.close)
    return Redis(connection_pool=pool)


class AsyncCluster(RedisCluster):
    """
    A cluster client that many coroutines can use at once from the start.

    redis-py sends the first commands to any node, before it knows the slots, and then closes connections in use.
    """

    _found_at = -float("inf")
    # Nodes that have left the cluster, with connections that are still open.
    _removed: Sequence[ClusterNode] = ()
    _lines: dict[str, AsyncLine]

    def line_to(self, node: ClusterNode) -> AsyncLine:
        if node.name not in self._lines:
            self._lines[node.name] = AsyncLine(partial(node.connection_class, **node.connection_kwargs))
        return self._lines[node.name]

    async def ask(self, key: str, *command: Any) -> Any:
        """Send a command on the line to the node of *key*; if that refers to another, as execute_command() does."""
        await self.initialize()
        with suppress(SlotNotCoveredError, AskError, ClusterError, TryAgainError):
            node: Any = self.get_node_from_key(key)
            try:
                return await self.line_to(node).ask(*command)
            except (ConnectionError, TimeoutError):
                self.nodes_manager.move_node_to_end_of_cached_nodes(node.name)
                self._initialize = True
                raise
        return await self.execute_command(*command)

    async def initialize(self, *args: Any, **kwargs: Any) -> RedisCluster:
        """Find the nodes if none are known, or if one has failed and the last search is not recent."""
        if self._initialize:
            if self.get_default_node() and time.monotonic() - self._found_at < _REFRESH:
                self._initialize = False
            else:
                before = [*self._removed, *self._nodes()]
                if self._found_at < 0 and len(before) > 1:  # so that nobody waits for the first if it hangs
                    await asuspect(*((each.host, each.port) for each in before))
                try:
                    await super().initialize(*args, **kwargs)
                except IndexError:  # redis-py raises this if there is no master
                    raise SlotNotCoveredError("No node of the cluster serves any slot.") from None
                finally:
                    # redis-py closes the connections of such a node some time later, if the loop is still running
                    # then.
                    now = [id(node) for node in self._nodes()]
                    gone = [node for node in before if id(node) not in now]
                    self._removed = [
                        node for node in gone if any(each.is_connected for each in node._connections)
                    ]
                self._found_at = time.monotonic()
        return self

    def _nodes(self) -> list[ClusterNode]:
        manager = self.nodes_manager
        return [*manager.startup_nodes.values(), *manager.nodes_cache.values()]

    async def close_rest(self) -> None:
        """Close the lines, and the connections to nodes that have left the cluster."""
        for line in self._lines.values():
            line.close()
        for node in self._removed:
            await node.disconnect()

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        await self.initialize()
        try:
            return await super().execute_command(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            if "NoneType" not in str(error):
                raise
            # If another coroutine has closed a connection after an error, the connection has neither a reader nor a
            # parser.
            raise ConnectionError("The connection was closed while it was in use.") from error


class _Commands(AsyncCommandsParser):
    """Finds the commands of servers by asking any node that answers; redis-py fails with the first one."""

    def __init__(self, nodes: NodesManager) -> None:
        super().__init__()
        self._nodes = nodes

    async def initialize(self, node: ClusterNode | None = None) -> None:
        first = node or self._nodes.default_node
        others = [each for each in self._nodes.get_nodes_by_server_type(_PRIMARY) if each != first]
        await asuspect(*((each.host, each.port) for each in (first, *others)))
        for last, each in enumerate([first, *others]):
            try:
                await super().initialize(each)
            except (ConnectionError, TimeoutError):
                if last == len(others):
                    raise
            else:
                self._nodes.default_node = each
                return


def cluster(urls: Sequence[str], options: Mapping[str, Any], closing: AsyncExitStack) -> Redis:
    """Return a client for the cluster whose nodes *urls* name; the other options of the first URL apply to all."""
    first, *others = urls
    nodes = [parse_url(url) for url in others]
    client: AsyncCluster = AsyncCluster.from_url(  # type: ignore[assignment]
        first,
        startup_nodes=[ClusterNode(node.get("host", "localhost"), node.get("port", 6379)) for node in nodes],
        retry=Retry(NoBackoff(), 0),
        # Otherwise each fifth reply that a slot was moved would close connections in use.
        reinitialize_steps=0,
        # As in the synchronous client: an unserved slot fails only the commands that need it.
        require_full_coverage=False,
        **options,
    )
    client._lines = {}
    client.commands_parser = _Commands(client.nodes_manager)
    for node in client.nodes_manager.startup_nodes.values():
        node.connection_class = guarded(node.connection_class)
    # All nodes that are found later share these options.
    client.connection_kwargs["connection_class"] = guarded(client.connection_kwargs["connection_class"])
    # After an outage the client considers itself closed, although the nodes may still be connected.
    for attr in ("startup_nodes", "nodes_cache"):
        closing.push_async_callback(client.nodes_manager.aclose, attr)
    closing.push_async_callback(client.close_rest)
    closing.push_async_callback(client.aclose)
    return cast(Redis, client)


async def connect(client: Redis | RedisCluster) -> AbstractConnection:
    """
    Return a new connection with the settings of *client*, to any node of a cluster; the caller must close it.

    The connection has timeouts only while it connects, and none longer than _CONNECTING, so its reader must be able
    to wait.
    """
    if not isinstance(client, RedisCluster):
        pool = client.connection_pool
        return await _open(pool.connection_class, pool.connection_kwargs)
    await client.initialize()
    nodes = client.get_nodes()
    for last, node in enumerate(sample(nodes, len(nodes)), start=1):
        try:
            return await _open(node.connection_class, node.connection_kwargs)
        except (ConnectionError, TimeoutError):
            if last == len(nodes):
                raise
    raise ConnectionError("The cluster has no nodes.")


async def _open(kind: type[AbstractConnection], options: Mapping[str, Any]) -> AbstractConnection:
    timeout = min(options.get("socket_timeout") or _CONNECTING, _CONNECTING)
    connecting = min(options.get("socket_connect_timeout") or timeout, _CONNECTING)
    limits = {"socket_timeout": timeout, "socket_connect_timeout": connecting}
    connection: Any = kind(**{**options, **limits, "retry": Retry(NoBackoff(), 0)})
    try:
        await connection.connect()  # a server that hangs does not answer these first commands
        connection.socket_timeout = None
    except BaseException:  # if cancelled here, the connection would stay open
        await connection.disconnect(nowait=True)
        raise
    return cast(AbstractConnection, connection)


def _counterpart(kind: type) -> Any:
    """Return the asynchronous counterpart of a class of pools, connections or parsers, or of a base of *kind*."""
    for base in kind.__mro__:
        package, _, module = base.__module__.rpartition(".")
        if package == "redis":
            home, name = f"redis.asyncio.{module}", base.__name__
        elif package == "redis._parsers":
            home, name = base.__module__, base.__name__.replace("_", "_Async", 1)
        else:
            continue
        if found := getattr(import_module(home), name, None):
            return found
    raise ImproperlyConfigured(
        f"{kind.__module__}.{kind.__qualname__}, named in the OPTIONS of the CACHES alias, derives from no "
        "class of redis-py that redis.asyncio has too, so the asynchronous client cannot use it."
    )
