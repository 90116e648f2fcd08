"""
How late rows are, as somebody sees it who looks from beside: the server tells him each time that one of a sample of
rows is written (keyspace notifications). Then the row says when its load began, and the schedule when it is due next.

A row is late from when it is due until it is told that it is written, so the way to this process is in there as well.
All clocks are those of one machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from benchmarks.bench import Bench, Stuck
from benchmarks.caching.daemons import cpu_of, daemons
from benchmarks.caching.models import Item
from components.kit.buckets import bucket
from components.services.rows import member
from components.services.rows.keys import RowKeys

DELAY = 5.0  # seconds
SAMPLE = 2_000  # rows that are looked at: of all of them the looking would be a load of its own
_AT_ONCE = 100  # notifications, before rows are asked for when their loads began
_PATIENCE = 60.0  # seconds for the first load of all, and for the last


@dataclass
class Lateness:
    """Seconds from the moment a row is due."""

    #: Until its load began, and until it was stored.
    began: list[float] = field(default_factory=list)
    stored: list[float] = field(default_factory=list)
    #: How old the row was that was there until then.
    ages: list[float] = field(default_factory=list)
    #: Part of one processor that the daemons took together, and the server.
    daemon_cpu: float | None = None
    server_cpu: float = 0.0


def lateness(bench: Bench, count: int, how_many: int, periods: int) -> Lateness:
    """*how_many* daemons and *count* rows of 5 s, for so many *periods*, after the first two. Raises Stuck."""
    bench.clear()
    with daemons(how_many) as workers:
        # All of them answer, and have their connections, before there is something to do.
        workers[0].wait_for(lambda: len(bench.redis.client_list()) > how_many)
        time.sleep(1)
        with Notified(bench, count) as notified:
            Item.cached.schedule_many(range(1, count + 1), DELAY)
            last = _until_all_are_loaded(bench, notified)
            _watch(bench, notified, last, DELAY)  # what was late because all were due at once is made up for
            before, cpu, began = bench.work(), cpu_of(workers), time.monotonic()
            found = _watch(bench, notified, last, periods * DELAY)
            took, spent = time.monotonic() - began, cpu_of(workers)
            found.server_cpu = (bench.work() - before).cpu / 1e6 / took
            if spent is not None and cpu is not None:
                found.daemon_cpu = (spent - cpu) / took
    return found


class Notified:
    """What the server tells of rows of a sample, while the block runs: which were written, when."""

    def __init__(self, bench: Bench, count: int) -> None:
        self._bench = bench
        self.pks = sorted(Random(8).sample(range(1, count + 1), min(SAMPLE, count)))
        self._pk_of = {f"__keyspace@0__:{_key(pk)}".encode(): pk for pk in self.pks}

    def __enter__(self) -> Notified:
        self._bench.redis.config_set("notify-keyspace-events", "K$")
        self._pubsub = self._bench.redis.pubsub(ignore_subscribe_messages=True)
        self._pubsub.subscribe(*self._pk_of)
        return self

    def __exit__(self, *error: object) -> None:
        self._pubsub.close()
        self._bench.redis.config_set("notify-keyspace-events", "")

    def written(self, wait: float) -> dict[int, float]:
        """Some of them, by the seconds of the clock at which it was told; none if nothing was in *wait* seconds."""
        found: dict[int, float] = {}
        connection: Any = self._pubsub.connection
        # What is there may be half a message: for the rest of it there is time.
        while len(found) < _AT_ONCE and connection.can_read(0 if found else wait):
            told: Any = self._pubsub.get_message(timeout=_PATIENCE)
            if told and told["data"] == b"set":
                found[self._pk_of[told["channel"]]] = time.time()
        return found


class _Loaded(NamedTuple):
    """When the load of a row began, and when it is due again, in seconds of the clock."""

    since: float
    due: float


def _until_all_are_loaded(bench: Bench, notified: Notified) -> dict[int, _Loaded]:
    """How each row stands, once all were loaded for the first time."""
    last: dict[int, _Loaded] = {}
    deadline = time.monotonic() + _PATIENCE
    while len(last) < len(notified.pks):
        if time.monotonic() > deadline:
            raise Stuck(f"{len(notified.pks) - len(last):,} rows were not loaded in {_PATIENCE:.0f} s.")
        last.update(_look(bench, notified.written(0.1)))
    return last


def _watch(bench: Bench, notified: Notified, last: dict[int, _Loaded], duration: float) -> Lateness:
    """All that is due in so many seconds, however late: what is the latest must not be left out."""
    found, until = Lateness(), time.time() + duration
    while any(each.due < until for each in last.values()):
        if time.time() > until + _PATIENCE:
            raise Stuck(f"A row of the sample was not loaded in {_PATIENCE:.0f} s.")
        written = notified.written(0.1)
        for pk, loaded in _look(bench, written):
            if last[pk].due < until:
                found.began.append(loaded.since - last[pk].due)
                found.stored.append(written[pk] - last[pk].due)
                found.ages.append(written[pk] - last[pk].since)
            last[pk] = loaded
    return found


def _look(bench: Bench, pks: Iterable[int]) -> Iterator[tuple[int, _Loaded]]:
    """How these rows stand, which were just written; one that is claimed again by now was due when its delay ends."""
    rows, pipe = Item.cached.cache.get_many(pks), bench.redis.pipeline(transaction=False)
    for key in rows:
        each = member(Item.cached.name, key)
        pipe.zscore(RowKeys(bucket(each)).schedule, each)
    for (key, row), score in zip(rows.items(), pipe.execute(), strict=True):
        since = row.since / 1e6
        yield int(key), _Loaded(since, min(since + DELAY, score / 1e6))


def _key(pk: int) -> str:
    each = member(Item.cached.name, str(pk))
    return RowKeys(bucket(each)).row_of(each)
