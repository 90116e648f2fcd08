"""
Script("queues/push"): the file services/queues/lua/push.lua, which run() and acall() send.

A script is run with EVALSHA; a server that does not know it then gets the source with EVAL. If a reply is lost, the
call is sent once more; while its slot moves to another node of a cluster, it is sent until it is there, for MOVING
seconds. That is safe because every script of this app is idempotent if it is repeated with the same arguments, which
tests check.

idempotent() does the same for a plain command, and pipelined() for many in one round trip. amany() sends several
calls of a script in one round trip to each node, because redis-py's own cluster pipelines do not accept scripts.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from functools import cached_property, partial
from hashlib import sha1
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.exceptions import (
    ClusterError,
    NoPermissionError,
    NoScriptError,
    RedisClusterException,
    RedisError,
    SlotNotCoveredError,
    TryAgainError,
)

from components.exceptions import RedisUnavailable
from components.kit.aclient import AsyncCluster, kept_by_the_loop
from components.kit.aline import AsyncLine
from components.kit.client import SHORTEST_BLOCK, AnyRedis, longest_block
from components.kit.errors import REPLY_LOST, ended_early, is_moving, redis_errors, translated
from components.kit.line import LinePool, ask
from components.kit.lua_headers import Contract, contract
from components.kit.sync_async import answer

_P = ParamSpec("_P")
_T = TypeVar("_T")

ASYNCHRONOUS: tuple[type, ...] = (AsyncRedis, AsyncRedisCluster)
#: Clients of several nodes, some of which may be down while others answer.
CLUSTERS: tuple[type, ...] = (RedisCluster, AsyncRedisCluster)

#: For how many seconds a call is sent again while its slot moves to another node: 100,000 results of a queue take 8.
MOVING = ContextVar("MOVING", default=15.0)
_POOL = 100  # connections that redis-py's asynchronous clients open to a server, at most
_MOMENT = 0.2  # seconds for which a coroutine waits if there are too many, without and with a connection
_PAUSE = 0.05  # seconds between two of them, in addition to those in which redis-py does the same

#: The keys and the arguments of a call.
Call: TypeAlias = tuple[Sequence[str], Sequence[Any]]


class Script:
    """A Lua script of this app. All its keys must lie in one hash slot."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def contract(self) -> Contract:
        return contract(self.name)

    @cached_property
    def source(self) -> str:
        return self.contract.source

    async def run(self, client: AnyRedis, keys: object, /, **args: Any) -> Any:
        """
        Run the script with the keys of an entity, and with its arguments by name.

        Await this, with an asynchronous client, or with either client in the logic of both(). Raises RedisUnavailable
        if two attempts had no answer, and TypeError if the arguments are not exactly the script's.
        """
        found = self.contract.keys_of(keys, args)
        return await self.acall(client, keys=found, args=self.contract.args_of(args))

    def call(self, keys: object, /, **args: Any) -> Call:
        """Return a call of the script, for amany() and aoutcomes()."""
        return self.contract.keys_of(keys, args), self.contract.args_of(args)

    def put(self, pipe: Any, keys: object, **args: Any) -> None:
        """Put a call of the script into a pipeline to one node. The source is sent, so it needs no second trip."""
        found = self.contract.keys_of(keys, args)
        command = ("EVAL", self.source, len(found), *found, *self.contract.args_of(args))
        pipe.execute_command(*command)  # pipelines of a cluster refuse eval()

    @cached_property
    def sha(self) -> str:
        return sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    async def acall(
        self, client: Redis | AsyncRedis, *, keys: Sequence[str], args: Sequence[Any] = ()
    ) -> Any:
        """Run the script, awaited, with an asynchronous client, or with either in the logic of both()."""
        try:
            return await self.send(client, keys=keys, args=args)
        except Exception as error:  # noqa: BLE001  (a cluster's errors have no class in common with others)
            raise translated(error)  # noqa: B904  (it has its cause)

    def quick(self, client: Redis, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Return the answer of a single EVALSHA, or None; then acall() sends the call again and reports the error."""
        try:
            return _sent(client, "EVALSHA", self.sha, len(keys), *keys, *args)
        except (RedisError, RedisClusterException):
            return None

    async def send(
        self,
        client: Redis | AsyncRedis,
        *,
        keys: Sequence[str],
        args: Sequence[Any] = (),
        until: float | None = None,
    ) -> Any:
        """
        Run the script as acall() does, but without translating redis-py's errors, for replacements of redis-py's
        classes. *until* is an instant of time.monotonic() instead of MOVING seconds after the first error.
        """
        is_repeated = False
        while True:
            try:
                try:
                    sent = _sent(client, "EVALSHA", self.sha, len(keys), *keys, *args)
                    return await sent if isinstance(sent, Awaitable) else sent
                except NoScriptError:
                    return await answer(_sent(client, "EVAL", self.source, len(keys), *keys, *args))
            except REPLY_LOST:
                if is_repeated:
                    raise
                is_repeated = True
                continue
            except (ClusterError, TryAgainError) as error:
                is_repeated = False
                until = time.monotonic() + MOVING.get() if until is None else until
                if time.monotonic() >= until or not is_moving(error):
                    raise
            await pause(client, _PAUSE)

    async def amany(self, client: AnyRedis, calls: Sequence[Call]) -> list[Any]:
        """Send several calls together, and return their answers. Raises RedisUnavailable as a single call does."""
        if len(calls) == 1:
            [(keys, args)] = calls
            return [await self.acall(client, keys=keys, args=args)]
        return all_well(await self.aoutcomes(client, calls))

    async def aoutcomes(self, client: AnyRedis, calls: Sequence[Call]) -> list[Any]:
        """
        Send several calls together, and return for each its answer or the exception that it raised.

        If a node of a cluster is down, only the calls that it serves fail. A call that fails in a pipeline is sent
        again by itself.
        """
        found = await self.aoutcomes_now(client, calls)
        await self.follow(client, calls, found)
        return found

    async def follow(self, client: AnyRedis, calls: Sequence[Call], outcomes: list[Any]) -> None:
        """Send those of *calls* again whose slot moves to another node, and put down what they say then."""
        moving = [
            number
            for number, each in enumerate(outcomes)
            if isinstance(each, Exception) and is_moving(each.__cause__)
        ]
        until = time.monotonic() + MOVING.get()
        found = await _all(client, [self.outcome(client, calls[number], until) for number in moving])
        for number, outcome in zip(moving, found, strict=True):
            outcomes[number] = outcome

    async def aoutcomes_now(self, client: AnyRedis, calls: Sequence[Call]) -> list[Any]:
        """Do what aoutcomes() does, but do not wait for slots that move."""
        return await at_nodes(client, calls, partial(self._of_node, client))

    async def _of_node(self, client: AnyRedis, node: Any, calls: Sequence[Call]) -> list[Any]:
        outcomes = await self._pipelined(node, calls) if node else [SlotNotCoveredError()] * len(calls)
        failed = [number for number, each in enumerate(outcomes) if isinstance(each, Exception)]
        while failed:
            number = failed.pop(0)
            outcome = outcomes[number] = await self.outcome(client, calls[number], 0.0)
            if isinstance(outcome, RedisUnavailable) and isinstance(outcome.__cause__, REPLY_LOST):
                rest = await self._elsewhere(client, node, [calls[each] for each in failed], outcome)
                for number, outcome in zip(failed, rest, strict=True):
                    outcomes[number] = outcome
                break
        return outcomes

    async def _elsewhere(self, client: AnyRedis, gone: Any, calls: Sequence[Call], error: Any) -> list[Any]:
        """
        Return the outcomes of *calls* after a node is *gone*, and has failed another one with *error*.

        The client has reloaded the cluster by now, so calls that still belong to that node would fail as well.
        """

        async def ask(node: Any, some: Sequence[Call]) -> list[Any]:
            if node is None or node is gone:
                return [error] * len(some)
            return [await self.outcome(client, each, 0.0) for each in some]

        return await at_nodes(client, calls, ask)

    async def outcome(self, client: AnyRedis, call: Call, until: float | None = None) -> Any:
        """Return the answer to one call or the exception that it raised; *until* is that of send()."""
        keys, args = call
        try:
            return await self.send(client, keys=keys, args=args, until=until)
        except Exception as error:  # noqa: BLE001  (raised where it is asked for)
            return translated(error)

    async def _pipelined(self, node: Any, calls: Sequence[Call]) -> list[Any]:
        """Return the answers of one node; errors are among them."""
        sent = [("EVALSHA", self.sha, len(keys), *keys, *args) for keys, args in calls]
        try:
            answers = await _send_together(node, sent)
            # Some calls may have been answered, if another client has loaded the script between them.
            unknown = [number for number, each in enumerate(answers) if isinstance(each, NoScriptError)]
            if unknown:
                again = [("SCRIPT", "LOAD", self.source), *(sent[number] for number in unknown)]
                for number, each in zip(unknown, (await _send_together(node, again))[1:], strict=True):
                    answers[number] = each
        except Exception as error:  # noqa: BLE001  (each is asked singly, and says what is the matter)
            return [error] * len(calls)
        return answers


def _sent(client: Any, name: str, script: str, count: int, *rest: Any) -> Any:
    """Return the answer, or with an asynchronous client what is awaited."""
    pool = getattr(client, "connection_pool", None)
    if pool.__class__ is LinePool and client.__class__ is Redis and not client.connection:
        return ask(pool, name, script, count, *rest)
    if line := _line(client, pool):
        return line.ask(name, script, count, *rest)
    if count and isinstance(client, AsyncCluster):
        return client.ask(rest[0], name, script, count, *rest)
    return (client.evalsha if name == "EVALSHA" else client.eval)(script, count, *rest)


def _line(client: Any, pool: Any) -> Any:
    """Return the line of an asynchronous client, unless somebody has made it for themselves."""
    return getattr(pool, "line", None) if client.__class__ is AsyncRedis and not client.connection else None


async def pause(client: AnyRedis, seconds: float) -> None:
    """Sleep for some *seconds*: the thread, or with an asynchronous client the coroutine."""
    if isinstance(client, ASYNCHRONOUS):
        await asyncio.sleep(seconds)
    else:
        time.sleep(seconds)


class _Turn(asyncio.Lock):
    """One for each event loop: threads that compute would only take turns, and the loop would come last."""


async def aside(client: AnyRedis, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return what long *work* returns. With an asynchronous client, threads do it, one call after another."""
    if not isinstance(client, ASYNCHRONOUS):
        return work(*args, **kwargs)
    async with kept_by_the_loop(_Turn, lambda closing: _Turn()):
        return await asyncio.to_thread(work, *args, **kwargs)


async def idempotent(send: Callable[[], Any]) -> Any:
    """
    Return the answer to a plain command that *send* sends with either client, and that is safe to repeat.

    It is sent again if its reply was lost. Raises RedisUnavailable if two attempts had no answer.
    """
    try:
        try:
            return await in_turn(send())
        except REPLY_LOST:
            return await in_turn(send())
    except Exception as error:  # noqa: BLE001  (a cluster's errors have no class in common with others)
        raise translated(error)  # noqa: B904  (it has its cause)


class _Turns(asyncio.Semaphore):
    """
    Limits how many coroutines of an event loop use the pool at once, far below the hundred connections that it has:
    one piece of news can wake a thousand readers, and the pool would refuse the rest.
    """


async def in_turn(sent: Any) -> Any:
    """Return the answer to a command of either client, which is awaited when it is the caller's turn."""
    if not isinstance(sent, Awaitable):
        return sent
    async with kept_by_the_loop(_Turns, lambda closing: _Turns(16)):
        return await sent


class _Waits(asyncio.Semaphore):
    """Limits how many coroutines of an event loop keep a connection while they wait: half of those there are."""


async def popped(client: AnyRedis, key: str, seconds: float) -> Any:
    """
    Return what comes into a list within *seconds*, or None: then the caller looks again. Coroutines beyond half of
    the connections that there may be wait in turn, for a moment each. Raises redis-py's errors.
    """
    found, timeout = None, max(SHORTEST_BLOCK, min(seconds, longest_block(client)))
    async with AsyncExitStack() as stack:
        if isinstance(client, ASYNCHRONOUS):
            most = getattr(getattr(client, "connection_pool", None), "max_connections", _POOL)
            waits = kept_by_the_loop(_Waits, lambda closing: _Waits(most // 2 or 1))
            try:
                async with asyncio.timeout(min(timeout, _MOMENT)):
                    await stack.enter_async_context(waits)
            except TimeoutError:
                return None
            if waits.locked():
                timeout = min(timeout, _MOMENT)
        with ended_early():
            found = await answer(client.blpop([key], timeout=timeout))
    return found


async def pipelined(
    client: AnyRedis, things: Sequence[_T], add: Callable[[Any, _T], object], *, without_right: bool = False
) -> list[Any]:
    """
    Return the answers to the commands that *add* puts into a pipeline for each of *things*, as idempotent() does.
    With *without_right*, the answer to a command that the user may not send is None.

    It takes one round trip to each node, and none if there are no *things*.
    """
    if not things:
        return []

    def send() -> Any:
        pipe = client.pipeline(transaction=False)
        for thing in things:
            add(pipe, thing)
        return pipe.execute(raise_on_error=not without_right)

    found = await idempotent(send)
    with redis_errors():
        return all_well([None if isinstance(each, NoPermissionError) else each for each in found])


def all_well(outcomes: list[Any]) -> list[Any]:
    """Return *outcomes* if all of them are answers. Raises the first exception among them."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return outcomes


async def at_nodes(
    client: AnyRedis, calls: Sequence[Call], ask: Callable[[Any, Sequence[Call]], Awaitable[list[Any]]]
) -> list[Any]:
    """
    Return the outcomes of *calls*, for which *ask* gets nodes as _by_node() returns them, each with its calls.

    If the client cannot find the nodes, the error is the outcome of each call.
    """
    try:
        groups = await _by_node(client, calls)
    except Exception as error:  # noqa: BLE001  (that of each call)
        return [translated(error)] * len(calls)
    if len(groups) == 1:
        return await ask(groups[0][0], calls)
    parts = await _all(client, [ask(node, [calls[each] for each in numbers]) for node, numbers in groups])
    found: list[Any] = [None] * len(calls)
    for (_node, numbers), part in zip(groups, parts, strict=True):
        for number, outcome in zip(numbers, part, strict=True):
            found[number] = outcome
    return found


async def _all(client: AnyRedis, asked: Sequence[Awaitable[_T]]) -> list[_T]:
    if len(asked) > 1 and isinstance(client, ASYNCHRONOUS):
        return await asyncio.gather(*asked)
    return [await each for each in asked]


async def _by_node(client: Any, calls: Sequence[Call]) -> list[tuple[Any, list[int]]]:
    """
    Return clients of nodes or lines to them, each with the numbers of the calls that go there; None for slots that no
    node serves.

    An asynchronous client first finds the nodes of its cluster. Raises redis-py's errors if it cannot.
    """
    if not isinstance(client, RedisCluster | AsyncCluster):
        target = _line(client, client.connection_pool) or client
        return [(target, list(range(len(calls))))] if calls else []
    if isinstance(client, AsyncCluster):
        await client.initialize()
    line_to = client.line_to if isinstance(client, AsyncCluster) else client.get_redis_connection
    nodes: dict[str, tuple[Any, list[int]]] = {}
    for number, (keys, _args) in enumerate(calls):
        try:
            node: Any = client.get_node_from_key(keys[0])
        except RedisClusterException:
            nodes.setdefault("", (None, []))[1].append(number)
            continue
        nodes.setdefault(node.name, (line_to(node), []))[1].append(number)
    return list(nodes.values())


async def _send_together(node: Any, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    if isinstance(node, AsyncLine):
        return await node.ask_all(commands)
    pipe = node.pipeline(transaction=False)
    for command in commands:
        pipe.execute_command(*command)
    return cast(list[Any], await answer(pipe.execute(raise_on_error=False)))
