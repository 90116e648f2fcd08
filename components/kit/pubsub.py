"""
News: a hint to waiting coroutines that something has changed. Nothing is stored, and a lost hint costs only time.

A subscription lasts some seconds longer than its last interest, because most waiters come back at once. One task
writes to the connection and another reads. Waiters themselves never send, because redis-py closes the connection if a
coroutine is cancelled while it sends.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError, RedisError

from components.conf import conf
from components.exceptions import RedisUnavailable
from components.kit.aclient import connect, kept_by_the_loop
from components.kit.client import get_async_client
from components.kit.errors import redis_errors

LINGER = 5.0  # seconds that a subscription lasts without an interest
# Seconds between two signs of life. A dead connection is given up after two of these periods.
_TICK = 2.4
_CONNECTING = 5.0  # seconds
# Seconds between two attempts to connect: the first pause, and the longest.
_BACKOFF = (0.05, 1.0)
# How many messages are read before the woken coroutines get their turn.
_BURST = 64


def channel(kind: Literal["chat", "inbox", "mailbox", "typing"], name: str) -> str:
    """
    Return the channel of a chat, of those who type in it, of an inbox or of a mailbox.

    A channel is not a key: it belongs to no slot, and stores nothing.
    """
    return f"{conf().prefix}:news:{kind}:{name}"


@dataclass(eq=False)
class _Channel:
    interests: set[Interest] = field(default_factory=set)
    is_sent: bool = False
    is_confirmed: bool = False
    #: The time of the loop's clock at which its last interest ended.
    idle_since: float = 0.0


class Listener:
    """All interests of an event loop in news from one Redis."""

    def __init__(self) -> None:
        self._channels: dict[str, _Channel] = {}
        #: Interests that Redis has not confirmed yet.
        self._entering: set[Interest] = set()
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._is_quiet = False

    @classmethod
    def of_the_loop(cls) -> Listener:
        """Return the listener of the running event loop, for the current CACHES alias. Raises NoEventLoop."""

        def make(closing: AsyncExitStack) -> Listener:
            listener = cls()
            closing.push_async_callback(listener.aclose)
            return listener

        return kept_by_the_loop(cls, make)

    def interest(self, channels: Iterable[str]) -> Interest:
        """Return an Interest in *channels*, to be entered with `async with`."""
        return Interest(self, channels)

    async def aclose(self) -> None:
        """Close the connection. Waiters are not notified."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _add(self, interest: Interest, names: Iterable[str]) -> None:
        for name in names:
            found = self._channels.setdefault(name, _Channel())
            found.interests.add(interest)
            if not found.is_confirmed:
                interest._missing.add(name)
        if not interest._missing:
            return
        self._entering.add(interest)
        self._changed.set()
        if self._task is None:
            # A fresh context, because the task serves all waiters and must not inherit the first one's context
            # variables.
            context = contextvars.Context()
            self._task = asyncio.get_running_loop().create_task(self._run(), name="news", context=context)

    def _remove(self, interest: Interest) -> None:
        self._entering.discard(interest)
        now = asyncio.get_running_loop().time()
        for name in interest._names:
            if found := self._channels.get(name):
                found.interests.discard(interest)
                found.idle_since = now

    async def _run(self) -> None:
        """Stay connected as long as there are channels."""
        backoff = _BACKOFF[0]
        try:
            while self._channels:
                try:
                    async with asyncio.timeout(_CONNECTING):
                        connection = await connect(get_async_client())
                    await self._serve(connection)
                    backoff = _BACKOFF[0]
                except (RedisError, OSError, TimeoutError) as error:
                    self._lose(error)
                    await self._pause(backoff * random.uniform(0.5, 1))
                    backoff = min(2 * backoff, _BACKOFF[1])
        finally:
            self._lose(ConnectionError("the listener for news was closed"))
            self._task = None

    async def _pause(self, seconds: float) -> None:
        """Wait for *seconds*, or until a new waiter arrives, who should learn at once whether Redis is back."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    async def _serve(self, connection: AbstractConnection) -> None:
        """Serve until there are no channels left. Raises an error when the connection is lost."""
        tasks = [asyncio.create_task(each(connection)) for each in (self._write, self._read)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            # Disconnect first, because the end of the loop cancels what is awaited.
            await connection.disconnect(nowait=True)
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled():
                task.result()

    def _lose(self, error: Exception) -> None:
        """Note that nothing is subscribed. Waiters go on waiting; interests that still register fail with *error*."""
        for name, each in list(self._channels.items()):
            each.is_sent = each.is_confirmed = False
            if not each.interests:
                del self._channels[name]
        for interest in self._entering:
            interest._fail(error)
        self._entering.clear()

    async def _write(self, connection: AbstractConnection) -> None:
        """Subscribe, unsubscribe and send signs of life, until no channel is left."""
        loop = asyncio.get_running_loop()
        for each in self._channels.values():
            each.is_sent = each.is_confirmed = False
        next_tick, self._is_quiet = loop.time() + _TICK, False
        while True:
            self._changed.clear()
            await self._send(connection, "UNSUBSCRIBE", self._take_idle(loop.time() - LINGER))
            if not self._channels:
                return
            await self._send(connection, "SUBSCRIBE", self._take_new())
            if loop.time() >= next_tick:
                if self._is_quiet:
                    raise ConnectionError(f"No sign of life in {_TICK} seconds.")
                next_tick, self._is_quiet = loop.time() + _TICK, True
                await self._send(connection, "PING", [""])
            try:
                async with asyncio.timeout_at(next_tick):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _send(self, connection: AbstractConnection, command: str, args: list[str]) -> None:
        if args:
            async with asyncio.timeout(2 * _TICK):
                await connection.send_command(command, *args, check_health=False)

    def _take_idle(self, until: float) -> list[str]:
        """Remove and return the channels that have had no interests since *until*."""
        idle = [
            name
            for name, each in self._channels.items()
            if not each.interests and each.is_confirmed == each.is_sent and each.idle_since <= until
        ]
        return [name for name in idle if self._channels.pop(name).is_sent]

    def _take_new(self) -> list[str]:
        new = [name for name, each in self._channels.items() if not each.is_sent]
        for name in new:
            self._channels[name].is_sent = True
        return new

    async def _read(self, connection: AbstractConnection) -> None:
        parser = connection._parser
        if hasattr(parser, "set_pubsub_push_handler"):
            parser.set_pubsub_push_handler(_as_it_is)
        while True:
            for _ in range(_BURST):
                answer = await connection.read_response(disconnect_on_error=False, push_request=True)
                self._is_quiet = False
                if isinstance(answer, list) and len(answer) == 3:
                    self._hear(answer[0].decode(), answer[1].decode())
            await asyncio.sleep(0)

    def _hear(self, kind: str, name: str) -> None:
        found = self._channels.get(name)
        if found is None:
            return
        if kind == "subscribe":
            found.is_confirmed = True
            for interest in found.interests:
                if interest._confirm(name):
                    self._entering.discard(interest)
        elif kind == "message":
            for interest in found.interests:
                interest._tell(name)


class Interest:
    """
    async with listener.interest(channels) as interest:  # each subscription is confirmed now: read the state
        changed = await interest.wait(20)
    """

    def __init__(self, listener: Listener, channels: Iterable[str]) -> None:
        self._listener = listener
        self._names = set(channels)
        #: Channels that Redis has not confirmed since the last request.
        self._missing: set[str] = set()
        self._error: Exception | None = None
        self._news: set[str] = set()
        #: Set when all channels are confirmed, an error occurs, or news arrives.
        self._woken = asyncio.Event()

    async def __aenter__(self) -> Self:
        try:
            await self._register(self._names)
        except BaseException:
            self._listener._remove(self)
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._listener._remove(self)

    async def add(self, channels: Iterable[str]) -> None:
        """Add *channels*; return when Redis has confirmed the subscriptions. Raises RedisUnavailable."""
        new = set(channels) - self._names
        self._names |= new
        await self._register(new)

    async def wait(self, timeout: float) -> set[str]:
        """
        Return the channels that had news since the last call, as soon as there are any; none after *timeout* seconds.

        After an outage of Redis these are all channels, though not always at once. During an outage nothing is
        raised.
        """
        try:
            async with asyncio.timeout(timeout):
                while not self._news:
                    self._woken.clear()
                    await self._woken.wait()
        except TimeoutError:
            pass
        news, self._news = self._news, set()
        return news

    async def _register(self, names: set[str]) -> None:
        self._listener._add(self, names)
        while self._missing:
            self._woken.clear()
            await self._woken.wait()
            if self._error is not None:
                error, self._error = self._error, None
                self._missing.clear()
                with redis_errors():
                    raise error

    def _confirm(self, name: str) -> bool:
        """Return True if this was the last channel to confirm. A confirmation after an outage counts as news."""
        if name not in self._missing:
            self._tell(name)
            return False
        self._missing.discard(name)
        if not self._missing:
            self._woken.set()
        return not self._missing

    def _fail(self, error: Exception) -> None:
        self._error = (
            error if isinstance(error, RedisError) else RedisUnavailable(f"Redis does not answer: {error}")
        )
        self._woken.set()

    def _tell(self, name: str) -> None:
        self._news.add(name)
        self._woken.set()


async def _as_it_is(push: Any) -> Any:
    """Replace redis-py's handler, which logs each message."""
    return push
