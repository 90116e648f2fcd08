"""
Stop asking servers that do not answer until they do.

guarded() gives this behaviour, which docs/kit.md describes, to any connection class of redis-py, synchronous or not.
"""

import asyncio
import errno
import select
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, TypeAlias

from redis import Connection, SSLConnection
from redis.asyncio import SSLConnection as AsyncSSLConnection
from redis.asyncio.connection import AbstractConnection as AsyncConnection
from redis.exceptions import ConnectionError, RedisError, ResponseError
from redis.exceptions import TimeoutError as ReplyTimeout
from redis.utils import SENTINEL

from components.kit.forking import in_child

#: Host and port, or "" and the path of a Unix socket.
Address: TypeAlias = tuple[str, int | str]

_PATIENCE = 0.5  # how many seconds a server has, after a timeout, to answer the probe
_HANDSHAKE = 0.5  # seconds; a server without TLS waits for the rest of what it takes for a command
_STEP = 0.01  # seconds between two checks of the probe
_UNCONNECTED, _UNANSWERED = 1.0, 5.0  # seconds after which another probe is sent
#: Errors of the network for a host that is switched off. They are not a sign of life.
_AWAY = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT}


class ServerSilent(ConnectionError):
    """The command was not sent, because the server is known not to answer."""


class WrongTLS(RedisError):
    """One end of the connection speaks TLS, and the other does not."""


class _Probe:
    """
    A PING on its own connection. Any answer is a sign of life, even an error or a closed connection.

    Nothing is read, so a forked process may check the same socket. Only resolve() may take long.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.since = time.monotonic()
        self._targets: list[tuple[socket.AddressFamily, Any]] = []
        self._left: list[tuple[socket.AddressFamily, Any]] = []
        self._socket: socket.socket | None = None
        self._is_sent = self._was_refused = False
        self._begun = -float("inf")
        if not address[0]:
            self._targets = [(socket.AF_UNIX, address[1])]

    def is_due(self) -> bool:
        """Return True if it is time to send a PING."""
        return time.monotonic() - self._begun > (_UNANSWERED if self._is_sent else _UNCONNECTED)

    def resolve(self) -> bool:
        """Look up the host name, whose address may have changed, and return whether an address is known."""
        if self.address[0]:
            with suppress(OSError):
                found = socket.getaddrinfo(*self.address, type=socket.SOCK_STREAM)
                self._targets = [(family, target) for family, _kind, _protocol, _name, target in found]
        return bool(self._targets)

    def put_off(self) -> None:
        """Postpone the next PING."""
        self._begun = time.monotonic()

    def begin(self) -> None:
        """Forget the last PING, and send one to the first of the server's addresses that accepts it."""
        self.put_off()
        self._left = list(self._targets)
        self._was_refused = False
        self.close()

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket, self._is_sent = None, False

    def __del__(self) -> None:
        self.close()

    def is_answered(self) -> bool:
        """Return True if there was a sign of life."""
        while self._socket or self._left:
            if self._socket is None and not self._connect(*self._left.pop(0)):
                continue
            assert self._socket is not None
            poll = select.poll()
            poll.register(self._socket, select.POLLIN | (0 if self._is_sent else select.POLLOUT))
            if not poll.poll(0):
                return False
            failed = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not failed and self._is_sent:
                return True
            if not failed:
                try:
                    self._socket.send(b"PING\r\n")
                    self._is_sent = True
                    continue
                except OSError as error:
                    failed = error.errno or errno.EPIPE
            if self._is_sent:
                return failed not in _AWAY
            self._failed(failed)
        return self._was_refused

    def _connect(self, family: socket.AddressFamily, target: Any) -> bool:
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        failed = self._socket.connect_ex(target)
        if failed in (0, errno.EINPROGRESS):
            return True
        self._failed(failed)
        return False

    def _failed(self, number: int) -> None:
        """Note a refusal. A server that refuses is alive, unless the queue of its socket is full (EAGAIN)."""
        self._was_refused = number not in _AWAY and number != errno.EAGAIN
        self.close()


_silent: dict[Address, _Probe] = {}
_lock = Lock()


def _forget() -> None:
    """Forget all probes in a forked process, which makes its own."""
    global _lock
    _lock = Lock()
    _silent.clear()


in_child(_forget)


def _refuse(address: Address) -> None:
    """Raise ServerSilent if the server at *address* still does not answer. This never waits."""
    with _lock:
        if (probe := _silent.get(address)) is None:
            return
        if probe.is_answered():
            del _silent[address]
            return
        if probe.is_due():
            probe.put_off()
            with suppress(RuntimeError):  # raised when the interpreter ends
                Thread(target=_probe_again, args=(probe,), name="probe", daemon=True).start()
    host, port = address
    raise ServerSilent(
        f"{f'{host}:{port}' if host else port} has not answered for {time.monotonic() - probe.since:.0f} s. "
        "Commands are not sent until it answers a probe."
    )


def _probe_again(probe: _Probe) -> None:
    probe.resolve()
    with _lock:
        if _silent.get(probe.address) is probe:
            probe.begin()


def suspect(*addresses: Address) -> None:
    """Find out whether servers, which have not answered in time or have not been asked, are alive; all at once."""
    waiting = [probe for each in addresses if each not in _silent and (probe := _Probe(each)).resolve()]
    for probe in waiting:
        probe.begin()
    until = time.monotonic() + _PATIENCE
    while (waiting := [each for each in waiting if not each.is_answered()]) and time.monotonic() < until:
        time.sleep(_STEP)
    with _lock:
        for probe in waiting:
            _silent.setdefault(probe.address, probe)


async def asuspect(*addresses: Address) -> None:
    """Do what suspect() does, without blocking the loop."""
    await asyncio.to_thread(suspect, *addresses)


def heed(connection: Any) -> None:
    """Raise ServerSilent if the server of *connection* is known not to answer."""
    if _silent:
        _refuse(address_of(connection))


def _is_silence(error: OSError) -> bool:
    return isinstance(error, TimeoutError) or error.errno in _AWAY


def _check_tls(connection: Any) -> None:
    """Raise WrongTLS if the server speaks TLS and the connection does not, or the other way round."""
    address, wants = address_of(connection), isinstance(connection, SSLConnection | AsyncSSLConnection)
    is_wrong = False
    with suppress(OSError), socket.create_connection(address, _PATIENCE) as probe:
        if wants:
            probe.sendall(b"PING\r\n")
            is_wrong = probe.recv(1) in (b"+", b"-")
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.wrap_socket(probe).close()
            is_wrong = True
    if is_wrong:
        raise WrongTLS(
            f"The server at {address[0]}:{address[1]} {'does not speak' if wants else 'speaks'} TLS: begin its URL "
            f"with {'redis' if wants else 'rediss'}://, or use its port {'with' if wants else 'without'} TLS."
        )


class _Guarded:
    """The methods that a synchronous connection class overrides."""

    #: Replies that are still to be read, of the commands that were sent last; commands that are packed to be sent.
    _owed, _packed = 0, 1

    def pack_commands(self, commands: Sequence[Any]) -> Any:
        self._packed = len(commands)
        return super().pack_commands(commands)  # type: ignore[misc]

    def should_reconnect(self) -> bool:
        """Return True to the pool if a signal handler has raised an error before all replies were read."""
        is_left = self._owed > 0 and self._sock and not self._connect_callbacks  # type: ignore[attr-defined]
        return bool(is_left or super().should_reconnect())  # type: ignore[misc]  # PubSub has such a callback

    def _connect(self) -> Any:
        address = address_of(self)
        self._owed = 0
        heed(self)
        try:
            return super()._connect()  # type: ignore[misc]
        except OSError as error:
            if _is_silence(error):
                suspect(address)
            raise

    def _wrap_socket_with_ssl(self, sock: Any) -> Any:
        patience = sock.gettimeout()
        sock.settimeout(min(patience or _HANDSHAKE, _HANDSHAKE))
        try:
            made = super()._wrap_socket_with_ssl(sock)  # type: ignore[misc]
        except TimeoutError:
            _check_tls(self)
            made = super()._wrap_socket_with_ssl(Connection._connect(self))  # type: ignore
        made.settimeout(patience)
        return made

    def on_connect_check_health(self, check_health: bool = True) -> None:
        try:
            super().on_connect_check_health(check_health)  # type: ignore[misc]
        except ConnectionError as error:
            if type(error) is ConnectionError and address_of(self)[0]:
                _check_tls(self)
            raise

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if _silent and self._sock:  # type: ignore[attr-defined]
            try:
                _refuse(address_of(self))
            except ServerSilent:
                self.disconnect()  # type: ignore[attr-defined]  # Sentinels may know of another server
                raise
        try:
            super().send_packed_command(command, check_health)  # type: ignore[misc]
        except ReplyTimeout:
            suspect(address_of(self))
            raise
        self._owed, self._packed = self._packed, 1

    def read_response(
        self, disable_decoding: bool = False, *, timeout: float | object = SENTINEL, **more: Any
    ) -> Any:
        try:
            found = super().read_response(disable_decoding, timeout=timeout, **more)  # type: ignore[misc]
        except ReplyTimeout:
            if timeout is SENTINEL:  # otherwise the caller has chosen the timeout
                suspect(address_of(self))
            raise
        except ResponseError:
            self._owed -= 1
            raise
        self._owed -= 1
        return found


class _AsyncGuarded:
    """The methods that an asynchronous connection class overrides."""

    async def _connect(self) -> None:
        address = address_of(self)
        heed(self)
        try:
            if isinstance(self, AsyncSSLConnection):
                try:
                    async with asyncio.timeout(_HANDSHAKE):
                        await super()._connect()  # type: ignore[misc]
                    return
                except TimeoutError:
                    await asyncio.to_thread(_check_tls, self)
            await super()._connect()  # type: ignore[misc]
        except OSError as error:
            if _is_silence(error):
                await asuspect(address)
            raise

    async def on_connect_check_health(self, check_health: bool = True) -> None:
        try:
            await super().on_connect_check_health(check_health)  # type: ignore[misc]
        except ConnectionError as error:
            if type(error) is ConnectionError and address_of(self)[0]:
                await asyncio.to_thread(_check_tls, self)
            raise

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if _silent and self.is_connected:  # type: ignore[attr-defined]
            try:
                _refuse(address_of(self))
            except ServerSilent:
                await self.disconnect(nowait=True)  # type: ignore[attr-defined]
                raise
        try:
            await super().send_packed_command(command, check_health)  # type: ignore[misc]
        except ReplyTimeout:
            await asuspect(address_of(self))
            raise

    async def read_response(
        self, disable_decoding: bool = False, timeout: float | None = None, **more: Any
    ) -> Any:
        try:
            return await super().read_response(disable_decoding, timeout, **more)  # type: ignore[misc]
        except ReplyTimeout:
            await asuspect(address_of(self))
            raise


def address_of(connection: Any) -> Address:
    path = getattr(connection, "path", None)
    return ("", path) if path else (str(connection.host), int(connection.port))


_made: dict[type, type] = {}
#: The server is not told the name of the client library: users of least right may not use CLIENT.
_NOT_TOLD = property(lambda connection: None, lambda connection, given: None)


def guarded(kind: type) -> Any:
    """Return a subclass of *kind*, a connection class of redis-py, that does not ask silent servers."""
    if issubclass(kind, _Guarded | _AsyncGuarded):
        return kind
    if kind not in _made:
        mixin = _AsyncGuarded if issubclass(kind, AsyncConnection) else _Guarded
        _made[kind] = type(kind.__name__, (mixin, kind), {"__module__": __name__, "driver_info": _NOT_TOLD})
    return _made[kind]


def guard(pool: Any) -> None:
    """Make *pool*, a connection pool of redis-py, create guarded connections, and guard the ones that it has."""
    if not issubclass(pool.connection_class, _Guarded | _AsyncGuarded):
        pool.connection_class = guarded(pool.connection_class)
        for name in ("_available_connections", "_in_use_connections", "_connections"):
            for connection in list(getattr(pool, name, ())):
                if type(connection).__module__.startswith("redis."):
                    connection.__class__ = guarded(type(connection))
