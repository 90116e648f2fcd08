"""
Cached rows beside the book's, Django's ORM on PostgreSQL, cacheops and Django's cache.

Daemons are `manage.py cacherows` with its defaults. Each system that reads rows, and the book's daemon, has its own
process (row_readers.py). A proxy before the server counts round trips, and Django's connection counts queries.
"""

from __future__ import annotations

import os
import signal
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from django.core.management import call_command
from django.db import connection

from benchmarks.harness import (
    OURS,
    SLICES,
    URL,
    Bench,
    Crew,
    Rounds,
    Stuck,
    System,
    Turn,
    Worker,
    alternate,
    cpu_of,
    folder,
    running,
    say,
    socket_path,
    used,
)
from benchmarks.report import (
    Bar,
    at_least,
    at_most,
    compare,
    introduce,
    mid,
    middle,
    middle_part,
    over,
    part,
    print_bars,
    print_rounds,
    print_table,
    span,
    times,
)
from benchmarks.row_readers import Reader
from benchmarks.shop.models import Item, Offer
from benchmarks.trips import TripCounter
from components.kit.keyspace import BUCKETS, bucket, stem
from components.services.rows import member

BOOK, ORM = "book", "ORM"
DAEMONS = {"components, one daemon": 1, "components, 2 daemons": 2}
LENGTH = 100  # rows of a list
BOOK_SHARE = 20  # the book's daemon gets this many times fewer rows
DELAY = 5.0  # seconds between two loads of a row whose lateness is measured
SAMPLE = 2_000  # rows that are watched, since watching all would itself load the machine
# Seconds between two loads. No row becomes due again during a turn.
LONG = 50 * 365 * 86_400.0
# Microseconds. A claimed row is due again when the lease of the claim ends, in half this time.
SOON = 10e6
IDLE = 6.0  # seconds in which nothing is due
# The rows of each model, scheduled at once, and the batches that are counted.
BATCH_ROWS, BATCH_SLICE, BATCHES = 10_000, 250, 5
PATIENCE = 120.0  # seconds that a turn may take

PROMISES = ["system", "how old at most", "goes backwards", "values", "100 rows"]
_OWN = ["the delay and a lease, for any writer", "never", "typed, when asked for", "1 round trip"]
#: A system's way is its class in row_readers.py, with the environment of its process.
SYSTEMS = [
    System(OURS, _OWN, ("Ours", {})),
    System("components, without hiredis", _OWN, ("Ours", {"BENCHMARK_WITHOUT_HIREDIS": "1"})),
    System(ORM, ["as it is", "never", "typed", "1 query"], ("Orm", {})),
    System(
        "cacheops",
        [
            "the timeout, after what sends no signal",
            "may: a refill can be late",
            "typed, by pickle",
            "by the list",
        ],
        ("Cacheops", {"BENCHMARK_CACHEOPS": "1"}),
        "django-cacheops",
    ),
    System("Django's cache", ["the timeout", "may", "typed, by pickle", "1 round trip"], ("DjangoCache", {})),
    System(BOOK, ["none: as it is if the daemon died", "may", "text", "-"], ("Book", {})),
]


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    say("filling the tables")
    fill(max(options.rows, options.idle, BATCH_ROWS))
    parts = {"refresh": refresh, "lateness": lateness, "reading": reading, "counts": counts, "idle": idle}
    print_bars([bar for name in options.parts for bar in parts[name](bench, options)])


def fill(count: int) -> None:
    """Create the tables, both with rows from 1 to *count*."""
    call_command("migrate", run_syncdb=True, verbosity=0)
    began = datetime(2026, 11, 1, tzinfo=UTC)
    items = (
        Item(
            pk=pk,
            name=f"Item {pk}",
            description="Forged under the mountain, and sold as it is. " * 2,
            stock=pk % 1_000,
            price=Decimal(pk % 10_000) / 100,
            is_offered=pk % 2 == 0,
            seller=UUID(int=pk),
            changed_at=began + timedelta(seconds=pk, microseconds=pk % 1_000_000),
        )
        for pk in range(1, count + 1)
    )
    Item.objects.bulk_create(items, batch_size=5_000)
    offers = (Offer(pk=pk, title=f"Offer {pk}", percent=pk % 90) for pk in range(1, count + 1))
    Offer.objects.bulk_create(offers, batch_size=5_000)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


@contextmanager
def daemons(count: int) -> Iterator[list[Worker]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(running(["manage.py", "cacherows", "--verbosity", "0"])) for _ in range(count)
        ]


# Refreshing rows


def refresh(bench: Bench, options: Namespace) -> Iterator[Bar]:
    """Let daemons load rows that are all due, and let the book's daemon load some of them."""
    with Reader("Book", {}) as book:

        def turn(name: str) -> Turn:
            if name == BOOK:
                return {"rate": book.do("refresh_book", options.rows // BOOK_SHARE)}
            return load_all(bench, options.rows, DAEMONS[name])

        rounds = compare(
            f"{options.rows:,} rows that are due",
            [*DAEMONS, BOOK],
            options.rounds,
            turn,
            mid("rows/s", "rate"),
            span(),
            over(BOOK, form=".1f", head="times the book's", is_theirs=True),
            mid("CPU of daemons, µs a row", "daemons", ".1f"),
            mid("of Redis", "redis", ".1f"),
        )
    rate = middle(rounds["components, one daemon"], "rate")
    yield at_least("rows loaded anew by one daemon", 20_000, rate, ",.0f", "/s")


def load_all(bench: Bench, count: int, how_many: int) -> Turn:
    """
    Let daemons load *count* rows that are all due. Raises Stuck.

    Figures exclude the start of the daemons: when they have loaded all rows once they are stopped, all rows are made
    due, and the daemons go on. The time ends when the last row is stored.
    """
    bench.clear()
    Item.cached.schedule_many(range(1, count + 1), LONG)
    with daemons(how_many) as workers:
        wait_until_stored(bench, workers[0])
        for worker in workers:
            os.killpg(worker.process.pid, signal.SIGSTOP)
        make_due(bench)
        before = cpu_of(workers)
        with bench.cost(count) as turn:
            for worker in workers:
                os.killpg(worker.process.pid, signal.SIGCONT)
            wait_until_stored(bench, workers[0])
        return turn | {"daemons": used(before, cpu_of(workers), count / 1e6)}


def wait_until_stored(bench: Bench, worker: Worker) -> None:
    """
    Wait until no row is due or claimed, which shows that all are stored, since the next loads are far in the future.
    """

    def is_all_stored() -> bool:
        soon = time.time() * 1e6 + SOON
        return not any(of_each(bench, lambda pipe, schedule: pipe.zcount(schedule, "-inf", soon)))

    worker.wait_for(is_all_stored, patience=PATIENCE, glance=0.005)


def make_due(bench: Bench) -> None:
    """Write the schedules as if the delays of all rows had passed."""
    listed = of_each(bench, lambda pipe, schedule: pipe.zrange(schedule, 0, -1))
    pipe = bench.redis.pipeline(transaction=False)
    for tag, members in zip(BUCKETS, listed, strict=True):
        if members:
            pipe.zadd(schedule_key(tag), dict.fromkeys(members, 1))
    pipe.execute()


def of_each(bench: Bench, add: Callable[[Any, str], object]) -> list[Any]:
    """Add commands for the schedule of each bucket to one pipeline, and run it."""
    pipe = bench.redis.pipeline(transaction=False)
    for tag in BUCKETS:
        add(pipe, schedule_key(tag))
    return pipe.execute()


def schedule_key(tag: str) -> str:
    return stem("rows", tag) + "schedule"


# Lateness


def lateness(bench: Bench, options: Namespace) -> Iterator[Bar]:
    """Measure how late rows are, and how old they become."""
    say("lateness")
    rounds = {
        name: [be_late(bench, options.rows, how_many, options.periods)] for name, how_many in DAEMONS.items()
    }
    columns = [part(f"due to stored, ms: {name}", "stored", at, ",.0f") for name, at in _PERCENTS.items()]
    columns += [part(f"due to claimed: {name}", "began", _PERCENTS[name], ",.0f") for name in ("p50", "p99")]
    columns += [
        part(f"age when replaced, s: {name}", "ages", _PERCENTS[name], ".2f", 1) for name in ("p99", "most")
    ]
    head = f"{options.rows:,} rows every {DELAY:g} s, {options.periods} times"
    columns += [mid("CPU of daemons", "daemons", ".1%"), mid("of Redis", "redis", ".1%")]
    print_rounds(head, rounds, mid("watched", "watched"), *columns)
    late = middle_part(rounds["components, one daemon"], "stored", 99) * 1e3
    yield at_most(
        f"{options.rows:,} rows every {DELAY:g} s, one daemon: p99 of lateness", 250, late, ",.0f", " ms"
    )


_PERCENTS = {"p50": 50, "p99": 99, "most": 100}


def be_late(bench: Bench, count: int, how_many: int, periods: int) -> Turn:
    """
    Schedule rows with a delay of 5 s all at once, and watch some of them for *periods* periods. Raises Stuck.

    The server notifies this process whenever a watched row is written (keyspace notifications). Then the row shows
    when its load began, and the schedule shows when it is due next. A row is late from the moment when it is due
    until this process hears that it is stored, so the figure includes the notification. All clocks are those of one
    machine, and all seconds count from the moment when a row is due.
    """
    bench.clear()
    with daemons(how_many) as workers:
        # All daemons answer, and have their connections, before a row is due.
        workers[0].wait_for(lambda: len(bench.redis.client_list()) > how_many)
        time.sleep(1)
        with Notified(bench, count) as notified:
            Item.cached.schedule_many(range(1, count + 1), DELAY)
            last = until_all_are_loaded(bench, notified)
            # Lets daemons catch up, because at first all rows are due at once.
            watch(bench, notified, last, DELAY)
            before, cpu, began = bench.work(), cpu_of(workers), time.monotonic()
            found = watch(bench, notified, last, periods * DELAY)
            took = time.monotonic() - began
            found["redis"] = (bench.work().cpu - before.cpu) / 1e6 / took
            found["daemons"] = used(cpu, cpu_of(workers), took)
    return found | {"watched": len(found["stored"])}


class Notified:
    """A listener that learns which rows of a sample are written, and when, while the block runs."""

    def __init__(self, bench: Bench, count: int) -> None:
        self._bench = bench
        self.pks = sorted(Random(8).sample(range(1, count + 1), min(SAMPLE, count)))
        members = {pk: member(Item.cached.name, str(pk)) for pk in self.pks}
        self._pk_of = {
            f"__keyspace@0__:{stem('rows', bucket(each))}row:{each}".encode(): pk
            for pk, each in members.items()
        }

    def __enter__(self) -> Notified:
        self._bench.redis.config_set("notify-keyspace-events", "K$")
        self._pubsub = self._bench.redis.pubsub(ignore_subscribe_messages=True)
        self._pubsub.subscribe(*self._pk_of)
        return self

    def __exit__(self, *error: object) -> None:
        self._pubsub.close()
        self._bench.redis.config_set("notify-keyspace-events", "")

    def written(self) -> dict[int, float]:
        """
        Return up to 100 written rows with the times of their notifications; none if nothing came for 0.1 seconds.
        """
        found: dict[int, float] = {}
        connection: Any = self._pubsub.connection
        # A message may be incomplete; wait for the rest.
        while len(found) < 100 and connection.can_read(0 if found else 0.1):
            told: Any = self._pubsub.get_message(timeout=PATIENCE)
            if told and told["data"] == b"set":
                found[self._pk_of[told["channel"]]] = time.time()
        return found


class _Loaded(NamedTuple):
    """When the load of a row began, and when it is due again, in seconds of the clock."""

    since: float
    due: float


def until_all_are_loaded(bench: Bench, notified: Notified) -> dict[int, _Loaded]:
    """Return the state of each row, once all rows were loaded for the first time."""
    last: dict[int, _Loaded] = {}
    deadline = time.monotonic() + PATIENCE
    while len(last) < len(notified.pks):
        if time.monotonic() > deadline:
            raise Stuck(f"{len(notified.pks) - len(last):,} rows were not loaded in {PATIENCE:.0f} s.")
        last.update(look(bench, notified.written()))
    return last


def watch(bench: Bench, notified: Notified, last: dict[int, _Loaded], duration: float) -> Turn:
    """
    Watch all rows that become due in *duration* seconds, however late they are, so that the latest one is not left
    out.
    """
    found, until = {"began": [], "stored": [], "ages": []}, time.time() + duration
    while any(each.due < until for each in last.values()):
        if time.time() > until + PATIENCE:
            raise Stuck(f"A row of the sample was not loaded in {PATIENCE:.0f} s.")
        written = notified.written()
        for pk, loaded in look(bench, written):
            if last[pk].due < until:
                found["began"].append(loaded.since - last[pk].due)
                found["stored"].append(written[pk] - last[pk].due)
                found["ages"].append(written[pk] - last[pk].since)
            last[pk] = loaded
    return found


def look(bench: Bench, pks: Iterable[int]) -> Iterator[tuple[int, _Loaded]]:
    """
    Yield the states of rows that were just written. If a row is claimed again by now, it was due when its delay
    ended.
    """
    rows, pipe = Item.cached.cache.get_many(pks), bench.redis.pipeline(transaction=False)
    for key in rows:
        each = member(Item.cached.name, key)
        pipe.zscore(schedule_key(bucket(each)), each)
    for (key, row), score in zip(rows.items(), pipe.execute(), strict=True):
        since = row.since / 1e6
        yield int(key), _Loaded(since, min(since + DELAY, score / 1e6))


# Reading rows. Figures are times, so a ratio is theirs divided by ours

#: The kinds of reads, and the demanded ratio to the ORM's time.
READING_BARS = {"one": 3, "one, a value": 3, "many": 10, "many, a value": 10}


def reading(bench: Bench, options: Namespace) -> Iterator[Bar]:
    """Let each system read cached rows in its process, one and 100 at a time, in turns."""
    bench.clear()
    chosen = Random(2).sample(range(1, options.rows + 1), options.lists * LENGTH)
    lists = [chosen[at : at + LENGTH] for at in range(0, len(chosen), LENGTH)]
    installed = introduce(PROMISES, SYSTEMS, None if options.only is None else [ORM, *options.only])
    with ExitStack() as stack:
        readers = {}
        for name, system in installed.items():
            say(f"reading: {name} begins")
            readers[name] = stack.enter_context(Reader(*system.way))
            readers[name].do("begin", lists)
        turn = lambda name: readers[name].do("read", lists, options.calls)  # noqa: E731
        rounds = alternate("reading", readers, options.rounds * SLICES, turn)
    for size, word in (("one", "one row"), ("many", f"{LENGTH} rows")):
        whats = {size: "read", f"{size}, a value": "and a value of each", f"{size}, all values": "and all 8"}
        columns = [mid(head, what) for what, head in whats.items()]
        heads = ("ORM's time, times", "and a value", "and all 8")
        columns += [over(ORM, what, ".1f", head) for what, head in zip(whats, heads, strict=True)]
        print_rounds(f"{word}, µs", rounds, *columns)
    for what, least in READING_BARS.items():
        size, _, more = what.partition(", ")
        name = f"reading {'one row' if size == 'one' else f'{LENGTH} rows'}{' and a value of each' if more else ''}"
        yield at_least(f"{name}, times the ORM", least, times(rounds, ORM, OURS, what), ".1f")


# Round trips and queries


def counts(bench: Bench, options: Namespace) -> Iterator[Bar]:
    """Count the round trips and queries of our batches, with two models that are due, and of a row of the book's."""
    say("counts")
    with (
        TripCounter(socket_path(), folder() / "trips") as counter,
        Reader("Book", {URL: counter.url}) as reader,
    ):
        reader.do("connect")
        for first in range(1, BATCH_ROWS, BATCH_SLICE):  # in turn, so that both are in each batch
            for rows in (Item.cached, Offer.cached):
                rows.schedule_many(range(first, first + BATCH_SLICE), 3_600)
        begun = counter.trips
        queries = reader.do("batches", BATCHES)
        trips = (counter.trips - begun) / BATCHES
        bench.redis.flushall()
        bench.redis.zadd("delay:", {"1": 3_600, "2": 3_600})
        bench.redis.zadd("schedule:", {"1": 1, "2": 2})
        begun = counter.trips
        book_queries = reader.do("book_row")
        book_trips = counter.trips - begun
    print_table(
        ["", "round trips to Redis", "queries"],
        [
            ["components: a batch of two models", f"{trips:g}", f"{queries} for each model"],
            ["book: a row", f"{book_trips}", f"{book_queries}"],
        ],
    )
    yield at_most("round trips to Redis for a batch", 3, trips, "g")
    yield at_most("queries for each model and batch", 1, queries, ".0f")


# Nothing to do


def idle(bench: Bench, options: Namespace) -> Iterator[Bar]:
    """Measure the work of a daemon that has loaded all rows, none of which is due. Raises Stuck."""
    say("idle")
    bench.clear()
    Item.cached.schedule_many(range(1, options.idle + 1), LONG)
    with daemons(1) as workers:
        wait_until_stored(bench, workers[0])
        time.sleep(1)
        before, cpu = bench.work(), cpu_of(workers)
        time.sleep(IDLE)
        after, spent = bench.work(), cpu_of(workers)
    # Processor time is measured in ticks; this is its upper limit. One command belongs to the first measurement.
    daemon = used(cpu, spent, IDLE, 1 / os.sysconf("SC_CLK_TCK"))
    commands = (after.commands - before.commands - 1) / IDLE
    turn = {"daemons": daemon, "redis": (after.cpu - before.cpu) / 1e6 / IDLE, "commands": commands}
    columns = mid("CPU of the daemon", "daemons", ".1%"), mid("of Redis", "redis", ".1%")
    rounds: Rounds = {OURS: [turn]}
    print_rounds(
        f"a daemon and {options.idle:,} rows, none due", rounds, *columns, mid("commands/s", "commands")
    )
    yield from ()
