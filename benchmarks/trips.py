"""
Count a client's round trips to Redis, with a proxy on a Unix socket.

The proxy passes on the client's bytes when nothing more has come for a moment, so a pipeline counts once, however
long it is. That takes time, so counted calls are not timed.
"""

from __future__ import annotations

import select
import socket
import threading
from pathlib import Path
from types import TracebackType

_PAUSE = 0.02  # a request counts as complete after this many seconds without further bytes
_CHUNK = 1 << 20


class TripCounter:
    """
    Listens at *path* and passes everything on to *server*, both paths of sockets, while the block runs; counts the
    trips.
    """

    def __init__(self, server: Path, path: Path) -> None:
        self._server, self._path = server, path
        self.trips = 0

    @property
    def url(self) -> str:
        return f"unix://{self._path}"

    def __enter__(self) -> TripCounter:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        threading.Thread(target=self._accept, name="trips", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self._path.unlink()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # the socket was closed
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._server))
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            while True:
                readable, _, _ = select.select([client, server], [], [])
                if server in readable:
                    if not (data := server.recv(_CHUNK)):
                        return
                    client.sendall(data)
                elif request := self._request(client):
                    self.trips += 1
                    server.sendall(request)
                else:
                    return

    def _request(self, client: socket.socket) -> bytes:
        """Return all bytes that the client sends before it waits."""
        request = data = client.recv(_CHUNK)
        while data and select.select([client], [], [], _PAUSE)[0]:
            data = client.recv(_CHUNK)
            request += data
        return request
