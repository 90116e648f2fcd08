"""
The line of an event loop to a server: one connection, on which all coroutines send their commands.

Redis answers in order, so commands are sent as they come, and those of a turn of the loop in one write. A coroutine
that is cancelled leaves its answer to nobody. redis-py opens the connection, and authenticates on it; its retries and
metrics are left out: send only what may be sent twice.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from copy import copy
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError, InvalidResponse, ReadOnlyError, TimeoutError

from components.kit.resp import MORE, Push, new_reader, pack_command
from components.kit.silence import address_of, asuspect, heed

_ENDED = "The event loop is ending."


class AsyncLine:
    """
    Sends commands on a connection that *make* returns, and that is opened, or replaced, when a command needs it.

    Answers are values or exceptions, those of Redis and those of the connection alike.
    """

    def __init__(self, make: Callable[[], AbstractConnection]) -> None:
        self._make = make
        self._wire: _Wire | None = None
        self._opening: asyncio.Task[None] | None = None
        self._openers = _Crowd()

    async def ask(self, *command: Any) -> Any:
        """Send a command, and return its answer. Raises redis-py's errors."""
        wire = await self._ready()
        found = await wire.send(command)
        if isinstance(found, ReadOnlyError):  # Sentinels may know of another master
            found = ConnectionError(f"READONLY {found}")
            wire.end(found)
        if isinstance(found, Exception):
            raise found
        return found

    async def ask_all(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send commands together, and return their answers, with errors among them."""
        wire = await self._ready()
        return [await each for each in [wire.send(command) for command in commands]]

    def close(self) -> None:
        if self._opening:
            self._opening.cancel()
        if self._wire:
            self._wire.end(ConnectionError(_ENDED))

    async def _ready(self) -> "_Wire":
        while True:
            wire = self._wire
            if wire is None or wire.error:
                if self._opening is None:
                    # A fresh context, so that the connection does not keep the context variables of the first caller.
                    self._opening = asyncio.get_running_loop().create_task(self._open(), context=Context())
                wire = await self._openers.wait()
                if isinstance(wire, Exception):
                    raise _again(wire)
            wire.heed()
            if not wire.is_full:
                return wire
            await wire.room.wait()

    async def _open(self) -> None:
        """Open a connection for all who wait for it, none of whom is hurt if another one is cancelled."""
        connection: Any = None
        found: _Wire | Exception = ConnectionError(_ENDED)
        try:
            connection = self._make()
            await connection.connect()
            self._wire = found = _Wire(connection)
        except Exception as error:  # noqa: BLE001  (raised where it is waited for)
            found = error
        finally:
            self._opening = None
            self._openers.tell(found)
            if connection and not isinstance(found, _Wire):
                await connection.disconnect(nowait=True)


class _Crowd(list[asyncio.Future[Any]]):
    """Those who wait for one thing. Unlike an asyncio.Event, it does not search for those who leave."""

    async def wait(self) -> Any:
        future = asyncio.get_running_loop().create_future()
        self.append(future)
        return await future

    def tell(self, result: Any) -> None:
        waiting = self.copy()
        self.clear()
        for future in waiting:
            if not future.done():  # otherwise cancelled
                future.set_result(result)


def _again(error: BaseException) -> BaseException:
    """Return the same error for another caller, who adds frames of their own to it."""
    made = copy(error)
    made.__cause__ = error.__cause__
    return made


class _Wire(asyncio.Protocol):
    """An open connection, from which redis-py reads no more. Its socket timeout begins anew with each answer."""

    def __init__(self, connection: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection, self._timeout = connection, connection.socket_timeout
        self._transport = connection._writer.transport
        self._reader = new_reader(connection._parser.parse_error)
        self._unsent: list[bytes] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._context = Context()
        self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        #: Why it was closed.
        self.error: Exception | None = None
        #: Whether the server does not read as fast as it is sent to; and who waits for that.
        self.is_full, self.room = False, _Crowd()
        self._transport.set_protocol(self)

    def heed(self) -> None:
        """Raise ServerSilent, and end the connection, if the server is known not to answer."""
        try:
            heed(self._connection)
        except ConnectionError as error:
            self.end(error)
            raise

    def send(self, command: Sequence[Any]) -> asyncio.Future[Any]:
        """Send a command with the next write. Its answer, or its error, is the result."""
        future = self._loop.create_future()
        if self.error:
            future.set_result(_again(self.error))
            return future
        try:
            packed = pack_command(tuple(command))
        except TypeError:  # an argument that redis-py converts, or refuses
            packed = b"".join(self._connection.pack_command(*command))
        if not self._unsent:
            self._loop.call_soon(self._write, context=self._context)
        if not self._waiting:
            self._heard = self._loop.time()
            if self._timer is None and self._timeout:
                self._watch(self._timeout)
        self._unsent.append(packed)
        self._waiting.append(future)
        return future

    def _write(self) -> None:
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        try:
            self._reader.feed(data)
            while (found := self._reader.gets()) is not MORE:
                if isinstance(found, Push):
                    continue
                future = self._waiting.popleft()
                if not future.done():  # otherwise its caller was cancelled
                    future.set_result(found)
        except InvalidResponse as error:
            self.end(error)
        except IndexError:
            self.end(ConnectionError("The server has sent an answer that nobody has asked for."))

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        self.room.tell(None)

    def connection_lost(self, error: Exception | None) -> None:
        self.end(ConnectionError(f"Connection closed by server: {error or 'end of stream'}."))

    def _watch(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._look, context=self._context)

    def _look(self) -> None:
        self._timer = None
        left = self._heard + self._timeout - self._loop.time()
        if self._waiting and left > 0:
            self._watch(left)
        elif self._waiting:
            self._ending = self._loop.create_task(self._time_out(), context=self._context.copy())

    async def _time_out(self) -> None:
        await asuspect(address_of(self._connection))
        self.end(TimeoutError("Timeout reading from {}:{}".format(*address_of(self._connection))))

    def end(self, error: Exception) -> None:
        """Close the connection, and answer what waits with *error*."""
        if self.error is None:
            self.error = error
            self._transport.abort()
            self._connection._close()
        self.resume_writing()
        while self._waiting:
            if not (future := self._waiting.popleft()).done():
                future.set_result(_again(error))
