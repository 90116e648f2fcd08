"""
What locks guard in test_locks.py: a register outside of Redis, which accepts no fence below one that it has accepted.

It lives in the test's process, and those who write to it are other processes: so it can stop or kill a writer
in the middle of its work, where that surely holds the lock.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True)
class Write:
    """One attempt to write."""

    at: float
    process: int
    acquisition: int
    fence: int
    is_accepted: bool


class Register:
    """with Register(folder) as register: ... register.writes"""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "register.sock")
        self.writes: list[Write] = []
        self._highest = 0
        self._guard = threading.Lock()
        self._signal: signal.Signals | None = None
        self._struck: int | None = None
        self._has_struck = threading.Event()

    def strike(self, number: signal.Signals) -> int:
        """Send that signal to the next who writes, before it hears what has become of that; the process' id."""
        self._has_struck.clear()
        self._signal = number
        assert self._has_struck.wait(20)
        assert self._struck
        return self._struck

    def write(self, process: int, acquisition: int, fence: int, is_last: bool) -> bool:
        with self._guard:
            accepted = fence >= self._highest
            self._highest = max(fence, self._highest)
            self.writes.append(Write(time.monotonic(), process, acquisition, fence, accepted))
            if self._signal and accepted and not is_last:
                os.kill(process, self._signal)
                self._signal, self._struck = None, process
                self._has_struck.set()
        return accepted

    def __enter__(self) -> Self:
        register = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    accepted = register.write(*json.loads(line))
                    try:
                        self.wfile.write(b"1" if accepted else b"0")
                    except OSError:  # it was killed
                        return

        self._server = socketserver.ThreadingUnixStreamServer(self.address, Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Writer:
    """The other end, in another process."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address)

    def write(self, acquisition: int, fence: int, *, is_last: bool = False) -> bool:
        line: list[Any] = [os.getpid(), acquisition, fence, is_last]
        self._socket.sendall(f"{json.dumps(line)}\n".encode())
        return self._socket.recv(1) == b"1"
