"""A server that answers like Redis 5 or 6.0, which can no longer be installed."""

from __future__ import annotations

import socketserver
from threading import Thread
from typing import Self

_HELLO = (
    b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n6.0.16\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:3\r\n"
    b"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
)
_IN_SCRIPT = (
    b"-ERR Error running script (call to f_0): @user_script:1: @user_script: 1: "
    b"Unknown Redis command called from Lua script\r\n"
)


class OldRedis(socketserver.ThreadingTCPServer):
    """with OldRedis("5.0.14") as server: redis_at(server.url)"""

    daemon_threads = True

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(("127.0.0.1", 0), _Connection)

    @property
    def url(self) -> str:
        host, port = self.socket.getsockname()
        return f"redis://{host}:{port}"

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.shutdown()
        self.server_close()

    def answer(self, command: list[bytes]) -> bytes:
        name, args = command[0].upper(), command[1:]
        if name == b"HELLO" and self.version >= "6":
            return _HELLO
        if name in (b"AUTH", b"SELECT"):
            return b"+OK\r\n"
        if name == b"PING":
            return b"+PONG\r\n"
        if name == b"INFO":
            text = b"# Server\r\nredis_version:%b\r\nredis_mode:standalone\r\n" % self.version.encode()
            return b"$%d\r\n%b\r\n" % (len(text), text)
        if name == b"EVALSHA":
            return b"-NOSCRIPT No matching script. Please use EVAL.\r\n"
        if name == b"EVAL":
            return _IN_SCRIPT
        told = b"".join(b" `%b`," % each for each in args)
        return b"-ERR unknown command `%b`, with args beginning with:%b \r\n" % (name, told)


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, OldRedis)
        try:
            while line := self.rfile.readline():
                command = [self._part() for _ in range(int(line[1:]))]
                self.wfile.write(self.server.answer(command))
        except OSError:
            pass  # the client has gone

    def _part(self) -> bytes:
        length = int(self.rfile.readline()[1:])
        return self.rfile.read(length + 2)[:-2]
