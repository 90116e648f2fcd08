"""
How late rows are, as somebody sees it who looks from beside: the server tells him each time that one of a sample of
rows is written (keyspace notifications), and the row says when its load began.

A row is due a delay after its last load began. It is late from then until it is told that it is written, so the way
to this process is in there as well. All clocks are those of one machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks.bench import Bench, Stuck
from benchmarks.caching.daemons import cpu_of, daemons
from benchmarks.caching.models import Item
from components import keys
from components.buckets import bucket
from components.services.rows import member

DELAY = 5.0  # seconds
SAMPLE = 2_000  # rows that are looked at: of all of them the looking would be a load of its own
_AT_ONCE = 500  # notifications, before rows are asked for when their loads began
_PATIENCE = 60.0  # seconds for the first load of all, and for the last


@dataclass
class Lateness:
    """Seconds from the moment a row is due."""

    #: Until its load began, and until it was stored.
    began: list[float] = field(default_factory=list)
    stored: list[float] = field(default_factory=list)
    #: Part of one processor that the daemons took together, and the server.
    daemon_cpu: float | None = None
    server_cpu: float = 0.0


def lateness(bench: Bench, count: int, how_many: int, periods: int) -> Lateness:
    """*how_many* daemons and *count* rows of 5 s, for so many *periods* after each was loaded once. Raises Stuck."""
    bench.clear()
    with daemons(how_many) as workers:
        # All of them answer, and have their connections, before there is something to do.
        workers[0].wait_for(lambda: len(bench.redis.client_list()) > how_many)
        time.sleep(1)
        with Notified(bench, count) as notified:
            Item.cached.schedule_many(range(1, count + 1), DELAY)
            due = _until_all_are_loaded(notified)
            before, cpu, began = bench.work(), cpu_of(workers), time.monotonic()
            found = _watch(notified, due, periods * DELAY)
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
        while len(found) < _AT_ONCE:
            told: Any = self._pubsub.get_message(timeout=0 if found else wait)
            if told is None:
                break
            if told["data"] == b"set":
                found[self._pk_of[told["channel"]]] = time.time()
        return found


def _until_all_are_loaded(notified: Notified) -> dict[int, float]:
    """When each is due again, once all were loaded for the first time."""
    due: dict[int, float] = {}
    deadline = time.monotonic() + _PATIENCE
    while len(due) < len(notified.pks):
        if time.monotonic() > deadline:
            raise Stuck(
                f"{len(notified.pks) - len(due):,} rows of the sample were not loaded in {_PATIENCE:.0f} s."
            )
        due.update((pk, since + DELAY) for pk, since in _began(notified.written(0.1)))
    return due


def _watch(notified: Notified, due: dict[int, float], duration: float) -> Lateness:
    """All that is due in so many seconds, however late: what is the latest must not be left out."""
    found, until = Lateness(), time.time() + duration
    while min(due.values()) < until:
        if time.time() > until + _PATIENCE:
            raise Stuck(f"A row of the sample was not loaded in {_PATIENCE:.0f} s.")
        written = notified.written(0.1)
        for pk, since in _began(written):
            if due[pk] < until:
                found.began.append(since - due[pk])
                found.stored.append(written[pk] - due[pk])
            due[pk] = since + DELAY
    return found


def _began(written: Mapping[int, float]) -> Iterator[tuple[int, float]]:
    """When the loads of these rows began, in seconds of the clock."""
    rows = Item.cached.cache.get_many(written)
    for key, row in rows.items():
        yield int(key), row.since / 1e6


def _key(pk: int) -> str:
    each = member(Item.cached.name, str(pk))
    return keys.row(bucket(each), each)
