"""
Sums: how often an event happened since the beginning, and how long it took, for /metrics.

Counters over time answer questions of people; a monitoring system asks again and again for sums that only grow. One
hash has them all, so one command reads them. A process adds to them in memory, and a thread sends what was added once
a second. An unanswered call is sent again unchanged, with its number, so it counts once. A killed process loses its
last second. Nothing happens unless COMPONENTS["METRICS"] is True.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import NamedTuple

from components.conf import conf
from components.kit.client import get_client
from components.kit.endings import at_end
from components.kit.leases import clock
from components.kit.scripts import Call, Script
from components.kit.stored import number_of, text_of
from components.services.counters.keys import SumKeys, SumSourceKeys

logger = logging.getLogger(__name__)

SUM = Script("counters/sum")
TAG = "all"

#: The upper bounds of the buckets of a histogram, in seconds; the last bucket has none.
BOUNDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 1_800.0)
_NAMES = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")
_TIME = "us"  # stands for the sum of microseconds where a field names a bound

_INTERVAL = 1.0  # seconds from one call to the next
_LAST_WAIT = 5.0  # seconds that the end of a process waits for a running call
_PATIENCE = (
    1_800  # seconds after which an unanswered call is dropped, because Redis may have forgotten its number
)
_MOST = 200  # things that one event is summed up of by name in a process; that of others goes to "others"

_known: defaultdict[str, set[str]] = defaultdict(set)


@dataclass
class Sum:
    """What is known of one event, of one thing."""

    count: int = 0
    #: Of a histogram: the number in each bucket by its upper bound, and the sum of seconds.
    buckets: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


class Added(NamedTuple):
    """A field of the hash, and what is added to it."""

    name: str
    number: int


def sum_up(event: str, count: int = 1, *, of: str = "") -> None:
    """Add to the sum of an *event* of the thing *of*."""
    if conf().metrics:
        _adder.add(f"{event}  {_named(event, of)}", count)


def observe(event: str, seconds: float, *, of: str = "") -> None:
    """Add a duration to the histogram of an *event* of the thing *of*."""
    if conf().metrics:
        of = _named(event, of)
        _adder.add(f"{event} {_NAMES[bisect_left(BOUNDS, seconds)]} {of}", 1)
        _adder.add(f"{event} {_TIME} {of}", max(0, round(seconds * 1e6)))


def read_sums(stored: Mapping[bytes, bytes]) -> dict[str, dict[str, Sum]]:
    """Return the sums in the hash by event, and by the thing that it was of."""
    found: defaultdict[str, defaultdict[str, Sum]] = defaultdict(lambda: defaultdict(Sum))
    for name, value in stored.items():
        event, bound, of = [*text_of(name).split(" ", 2), "", ""][:3]
        known, number = found[event][of], number_of(value)
        if bound == _TIME:
            known.seconds = number / 1e6
        elif bound:
            known.buckets[bound] = number
        else:
            known.count = number
    return {event: dict(sums) for event, sums in found.items()}


def cumulated(buckets: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return each bound, and how many durations were no longer, as Prometheus wants histograms."""
    total, found = 0, []
    for name in _NAMES:
        total += buckets.get(name, 0)
        found.append((name, total))
    return found


def sums_key() -> str:
    """Return the key of the hash with all sums."""
    return SumKeys(TAG).sums


def _named(event: str, of: str) -> str:
    known = _known[event]
    if of not in known:
        if len(known) >= _MOST:
            return "others"
        known.add(of)
    return of


class _Adder:
    """What this process has added and not sent."""

    def __init__(self) -> None:
        self._inbox: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._sums: Counter[str] = Counter()
        self._unanswered: Call | None = None
        self._asked_at = 0.0
        self._source, self._number = secrets.token_hex(8), 0
        self._sending = threading.Lock()
        self._closed = threading.Event()
        self._is_away = False
        self._thread: threading.Thread | None = None
        #: Whether anything waits; the thread sleeps until then.
        self._has_any = threading.Event()

    def add(self, name: str, count: int) -> None:
        self._inbox.put((name, count))
        if not self._has_any.is_set():
            self._has_any.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sums", daemon=True)
            with suppress(RuntimeError):  # the interpreter ends
                self._thread.start()
            at_end(finish)

    def send(self) -> None:
        """Send everything. Raises RedisUnavailable; then it is kept."""
        with self._sending:
            self._send()

    def finish(self) -> None:
        """Send everything at the end of the process, unless Redis was just unavailable."""
        if not self._is_away and self._sending.acquire(timeout=_LAST_WAIT):
            try:
                self._try()
            finally:
                self._sending.release()

    def close(self) -> None:
        self._closed.set()
        self._has_any.set()

    def _run(self) -> None:
        while self._has_any.wait() and not self._closed.wait(_INTERVAL):
            self._has_any.clear()
            with self._sending:
                if not self._try():
                    self._has_any.set()

    def _try(self) -> bool:
        try:
            self._send()
        except Exception as error:  # noqa: BLE001  (wrong settings too: adding must harm nobody)
            if not self._is_away:
                logger.warning("The sums for /metrics are kept in this process, to be sent later: %s", error)
            self._is_away = True
            return False
        self._is_away = False
        return True

    def _send(self) -> None:
        self._call()
        with suppress(Empty):
            while True:
                name, count = self._inbox.get_nowait()
                self._sums[name] += count
        if self._sums:
            self._number += 1
            keys = SumSourceKeys(TAG, self._source)
            added = [Added(name, count) for name, count in self._sums.items()]
            self._unanswered = SUM.call(keys, call=self._number, added=added)
            self._asked_at = clock()
            self._sums.clear()
            self._call()

    def _call(self) -> None:
        if self._unanswered is not None and clock() - self._asked_at < _PATIENCE:
            keys, args = self._unanswered
            SUM(get_client(), keys=keys, args=args)
        self._unanswered = None


_adder = _Adder()


def send_sums() -> None:
    """Send the sums of this process now. Raises RedisUnavailable; then they are sent later."""
    _adder.send()


def finish() -> None:
    """Send the sums of this process at its end. Sums that cannot be sent are lost."""
    _adder.finish()


def forget_sums() -> None:
    """Drop the unsent sums of this process, for tests that empty Redis."""
    global _adder
    before, _adder = _adder, _Adder()
    before.close()
    _known.clear()


def _begin_anew() -> None:
    global _adder
    _adder = _Adder()


os.register_at_fork(after_in_child=_begin_anew)
