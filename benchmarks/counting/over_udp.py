"""The client of StatsD, a datagram for each event, with a server in this process that adds them up as they come."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable

import statsd  # type: ignore[import-untyped]

from benchmarks.counting.base import Guarantees, System

_QUIET = 0.3  # seconds without a datagram, after which no more will come


class StatsD(System):
    guarantees = Guarantees(
        "its server decides", "what the socket's buffer cannot take", "is never sent again", "-"
    )
    share = 4

    def __init__(self, version: str) -> None:
        super().__init__(version)
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._listener.bind(("127.0.0.1", 0))
        self._client = statsd.StatsClient("127.0.0.1", self._listener.getsockname()[1])
        self._totals: Counter[str] = Counter()
        self._heard_at = time.monotonic()
        threading.Thread(target=self._listen, daemon=True).start()

    def begin(self) -> None:
        self._totals.clear()

    def counting(self, name: str) -> Callable[[], object]:
        return lambda: self._client.incr(_known_by(name))

    def finish(self) -> None:
        self._heard_at = time.monotonic()

    def total(self, name: str) -> int:
        while time.monotonic() < self._heard_at + _QUIET:
            time.sleep(_QUIET / 10)
        return self._totals[_known_by(name)]

    def _listen(self) -> None:
        while data := self._listener.recv(1_024):
            name, _, rest = data.partition(b":")
            self._totals[name.decode()] += int(rest.partition(b"|")[0])
            self._heard_at = time.monotonic()


def _known_by(name: str) -> str:
    """A colon ends a name of StatsD."""
    return name.replace(":", ".")
