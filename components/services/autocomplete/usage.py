"""
Usage of address books: how often each is searched, and how long searches take. The control room shows it.

A search only reads, so a replica can answer it. Each process counts its searches. A thread, which ends when nobody
searches, adds the sums of all books to those in Redis once a second, in one round trip. Redis keeps them by the
minute, for an hour. If the process dies, the counts of its last second are lost. If Redis is unavailable, the sums
are lost, and a warning is logged. A forked child starts from zero. Counting never delays a search or makes it fail.

Of what people type, only the length is kept. If COMPONENTS["BOOK_MISSES"] is True, so are the texts of searches that
found nothing, at most 200 of a book: they say which names people miss.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from unicodedata import normalize

from components.conf import conf
from components.kit.client import AnyRedis, get_client
from components.kit.contracts import record
from components.kit.ids import new_call
from components.kit.scripts import Call, Script
from components.kit.stored import number_of, text_of
from components.services.autocomplete.facts import instant
from components.services.autocomplete.keys import BookKeys
from components.services.counters import tally

logger = logging.getLogger(__name__)

_PACE = 1.0  # seconds between two writes to Redis
_HOUR = 60  # minutes
_SECOND = 1_000_000  # microseconds
_SHORTEST, _LONGEST = 2, 50  # characters of a text that found nothing
_MOST_MISSES = 50  # texts of a book that are sent at once; further ones are not stored

COUNT = Script("autocomplete/count")
COUNTED = Script("autocomplete/counted")
_MINUTE, _MISS = record("autocomplete", "minute"), record("autocomplete", "miss")


@dataclass(frozen=True)
class SlowSearch:
    """The slowest search of a minute."""

    #: When the minute began.
    at: datetime
    #: From the request to the answer, measured by the process that searched.
    seconds: float
    #: Characters of the prefix.
    length: int


@dataclass(frozen=True)
class Miss:
    """A text that people searched for and that found nothing."""

    #: As it was compared: without capitals and accents, and cut to 50 characters.
    text: str
    count: int
    last_at: datetime


@dataclass(frozen=True)
class BookUsage:
    """The searches in a book within an hour, by all processes."""

    searches: int
    #: In the current minute and the one before.
    per_second: float
    #: Seconds; None if there were no searches.
    mean: float | None
    #: The slowest search of each minute, the slowest first.
    slowest: Sequence[SlowSearch]
    #: The texts that found nothing, the most frequent first, then the latest; empty unless they were asked for.
    misses: Sequence[Miss] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Missed:
    """A text that found nothing, to be sent to Redis."""

    typed: str
    count: int


@dataclass
class _Tally:
    """The searches in one book that are not in Redis yet. Times are in microseconds."""

    searches: int = 0
    spent: int = 0
    slowest: int = 0
    length: int = 0
    misses: Counter[str] = field(default_factory=Counter)

    def add(self, microseconds: int, length: int, missed: str) -> None:
        self.searches += 1
        self.spent += microseconds
        if microseconds >= self.slowest:
            self.slowest, self.length = microseconds, length
        if missed in self.misses or (missed and len(self.misses) < _MOST_MISSES):
            self.misses[missed] += 1


@dataclass
class _Searches:
    """The searches of this process that are not in Redis yet, and the thread that sends them."""

    _tallies: dict[str, _Tally] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _sending: threading.Lock = field(default_factory=threading.Lock)
    _has_thread: bool = False
    _is_away: bool = False

    def note(self, book: str, length: int, seconds: float, missed: str) -> None:
        with self._guard:
            self._tallies.setdefault(book, _Tally()).add(round(seconds * _SECOND), length, missed)
            if not self._has_thread:
                self._start()

    def flush(self) -> None:
        with self._sending:
            with self._guard:
                found, self._tallies = self._tallies, {}
            if found:
                self._send(found)

    def forget(self) -> None:
        with self._sending, self._guard:
            self._tallies.clear()

    def _start(self) -> None:
        try:
            threading.Thread(target=self._run, name="searches", daemon=True).start()
        except (
            RuntimeError
        ):  # the process is ending, or cannot start a thread now; the next search tries again
            return
        self._has_thread = True

    def _run(self) -> None:
        while True:
            time.sleep(_PACE)
            with self._guard:
                if not self._tallies:
                    self._has_thread = False
                    return
            self.flush()

    def _send(self, tallies: Mapping[str, _Tally]) -> None:
        try:
            COUNT.many(get_client(), [_call(name, tally) for name, tally in tallies.items()])
            self._is_away = False
        except Exception as error:  # noqa: BLE001  (whatever the error is, the thread must go on)
            if not self._is_away:
                logger.warning(
                    "Redis did not store the counts of searches in address books. They are lost: %s", error
                )
            self._is_away = True


def _call(name: str, tally: _Tally) -> Call:
    return COUNT.call(
        BookKeys(name),
        searches=tally.searches,
        spent=tally.spent,
        slowest=tally.slowest,
        length=tally.length,
        keeps=int(conf().book_misses),
        call=new_call(),
        misses=[_Missed(typed, count) for typed, count in tally.misses.items()],
    )


class _Process:
    """The state of this process. A forked child starts with an empty one."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.searches = _Searches()


_process = _Process()
os.register_at_fork(after_in_child=_process.reset)


def note(book: str, length: int, seconds: float, missed: str = "") -> None:
    """
    Count a search in *book*: the prefix had *length* characters, and the answer took *seconds*.

    *missed* is the search key of a prefix that found nothing, which is stored if the settings say so.
    """
    is_kept = len(missed) >= _SHORTEST and conf().book_misses
    _process.searches.note(book, length, seconds, missed[:_LONGEST] if is_kept else "")
    tally("autocomplete:searched")


def flush() -> None:
    """Send the counts to Redis now."""
    _process.searches.flush()


def forget() -> None:
    """Drop the counts, because their Redis is gone. Wait until a running send has ended."""
    _process.searches.forget()


async def read(client: AnyRedis, names: Sequence[str], *, with_misses: bool = False) -> list[BookUsage]:
    """Return the usage of these books, in one round trip to each node."""
    misses = int(with_misses and conf().book_misses)
    calls = [COUNTED.call(BookKeys(name), misses=misses) for name in names]
    answers = await COUNTED.amany(client, calls) if names else []
    return [
        replace(_usage(int(now), [_MINUTE.read(each) for each in texts if each]), misses=_misses(stored))
        for now, texts, stored in answers
    ]


def _misses(stored: Sequence[bytes]) -> list[Miss]:
    pairs = zip(stored[::2], stored[1::2], strict=True)
    found = [_miss(text_of(typed), _MISS.read(record)) for typed, record in pairs]
    return sorted(found, key=lambda each: (each.count, each.last_at), reverse=True)


def _miss(text: str, stored: Mapping[str, str]) -> Miss:
    # The key of a Korean text consists of letters; people read syllables.
    count, second = number_of(stored["count"]), number_of(stored["second"])
    return Miss(normalize("NFC", text), count, instant(second * _SECOND))


def _usage(now: int, found: Iterable[Mapping[str, str]]) -> BookUsage:
    """Return the usage at the second *now*."""
    this = now // 60
    minutes = [
        minute
        for each in found
        if this - _HOUR < (minute := {name: int(value) for name, value in each.items()})["minute"] <= this
    ]
    searches = sum(each["searches"] for each in minutes)
    lately = sum(each["searches"] for each in minutes if each["minute"] >= this - 1)
    slowest = [
        SlowSearch(instant(each["minute"] * 60 * _SECOND), each["slowest"] / _SECOND, each["length"])
        for each in minutes
    ]
    return BookUsage(
        searches=searches,
        per_second=lately / (60 + now % 60),
        mean=sum(each["spent"] for each in minutes) / searches / _SECOND if searches else None,
        slowest=sorted(slowest, key=lambda each: each.seconds, reverse=True),
    )
