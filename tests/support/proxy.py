"""
A proxy between client and server that loses replies: the server has executed the command, and the client does not
know. It listens on loopback and forwards to the unix socket of an embedded server.
"""

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from selectors import EVENT_READ, DefaultSelector
from threading import Thread
from typing import Self

from components.embedded import EmbeddedServer, socket_path

_CHUNK = 1 << 16


@dataclass(eq=False)
class _Link:
    client: socket.socket
    server: socket.socket
    loses_next: bool = False
    #: Nothing comes back any more: a server may write one reply in several pieces.
    is_mute: bool = False
    #: Nothing passes any more, as if a firewall had forgotten the connection.
    is_dropped: bool = False


class LossyProxy:
    """
    with LossyProxy(server) as proxy, redis_at(proxy.url): proxy.lose_replies(to="EVALSHA")

    One thread serves all connections.
    """

    def __init__(self, server: EmbeddedServer) -> None:
        self._target = str(socket_path(server.folder))
        self._links: set[_Link] = set()
        self._to, self._times, self._silently = b"", 0, False
        #: How many replies were lost so far.
        self.lost = 0
        #: When replies were lost silently, and when with their connection (monotonic seconds).
        self.muted_at: list[float] = []
        self.cut_at: list[float] = []

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()
        return f"redis://{host}:{port}"

    @property
    def thread(self) -> int | None:
        return self._thread.native_id

    def lose_replies(
        self,
        *,
        to: str,
        times: int = 1,
        silently: bool = False,
        instead: Callable[[bytes], bytes] = lambda reply: b"",
    ) -> None:
        """
        Lose the replies to the next requests that contain *to*, such as the name of a command; the client gets what
        *instead* returns.

        The connection is closed or, if *silently*, nothing more happens until the client gives up.
        """
        self._to, self._times, self._silently, self._instead = to.encode(), times, silently, instead

    def drop(self) -> None:
        """Pass nothing on any more, on all connections that there are."""
        for link in list(self._links):
            link.is_dropped = True

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._wake, self._waker = socket.socketpair()
        self._selector = DefaultSelector()
        self._selector.register(self._listener, EVENT_READ, self._accept)
        self._selector.register(self._wake, EVENT_READ)
        self._thread = Thread(target=self._run, name="lossy-proxy")
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._waker.close()
        self._thread.join()
        for link in list(self._links):
            self._close(link)
        for thing in (self._selector, self._wake, self._listener):
            thing.close()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._wake:
                    return
                key.data()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:
            server.close()
            return client.close()
        link = _Link(client, server)
        self._links.add(link)
        self._selector.register(client, EVENT_READ, partial(self._request, link))
        self._selector.register(server, EVENT_READ, partial(self._reply, link))
        return None

    def _request(self, link: _Link) -> None:
        if not (data := _receive(link.client)):
            return self._close(link)
        if self._times and self._to in data:
            self._times -= 1
            link.loses_next = True
        return self._pass_on(link, data, link.server)

    def _reply(self, link: _Link) -> None:
        if not (data := _receive(link.server)):
            return self._close(link)
        if link.loses_next:
            link.loses_next = False
            self.lost += 1
            self._pass_on(link, self._instead(data), link.client)
            if not self._silently:
                self.cut_at.append(time.monotonic())
                return self._close(link)
            link.is_mute = True
            self.muted_at.append(time.monotonic())
        if not link.is_mute:
            self._pass_on(link, data, link.client)
        return None

    def _pass_on(self, link: _Link, data: bytes, to: socket.socket) -> None:
        try:
            if not link.is_dropped:
                to.sendall(data)
        except OSError:
            self._close(link)

    def _close(self, link: _Link) -> None:
        """Close both ends, once, although each of them may ask for it."""
        if link in self._links:
            self._links.remove(link)
            for end in (link.client, link.server):
                self._selector.unregister(end)
                end.close()


def _receive(end: socket.socket) -> bytes:
    """Return received bytes; b"" if the connection has ended, from either side."""
    try:
        return end.recv(_CHUNK)
    except OSError:
        return b""
