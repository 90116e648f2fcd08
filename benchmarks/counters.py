"""
Counters beside the book's, prometheus_client and StatsD.

The book's counters are those of chapter 5 of "Redis in Action", rebuilt from their description with the same commands
and round trips. An update sends one transaction: for each of seven precisions, the name into a sorted set of all that
are known, and an increment of the slice in a hash. A cleaner goes through the sorted set, by rank, and removes what
is too old.
"""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from argparse import Namespace
from bisect import bisect_right
from collections import Counter as Totals
from collections.abc import Callable, Iterator
from statistics import median
from types import SimpleNamespace
from typing import Any

from django.http import HttpResponse
from redis import Redis

from benchmarks.harness import SLICES, Bench, Call, Crew, Rounds, System, Turn, seconds
from benchmarks.report import (
    Bar,
    at_least,
    at_most,
    compare,
    introduce,
    mid,
    middle,
    none,
    over,
    print_bars,
    print_table,
    span,
    times,
)
from components.kit.client import get_client
from components.kit.keyspace import bucket, stem
from components.middleware import CountRequestsMiddleware
from components.services.counters import Counter, count, flush, forget
from components.services.counters.precisions import WINDOW, plan

OURS, BUFFERED, BOOK = "components, at once", "components, in memory", "book"
FLOOR = "a script that does nothing"
PRECISIONS = (1, 5, 60, 300, 3_600, 18_000, 86_400)
NAMES = (1_000, 10_000, 100_000)  # numbers of names whose cost is measured while nobody counts
COUNTED = 10  # names that are counted in rotation
IDLE = 3.0  # seconds in which nobody counts


class AtOnce:
    """A way to count: ours, with each event sent at once."""

    def begin(self) -> None:
        """Prepare a turn, after all data were deleted."""

    def counting(self, name: str) -> Call:
        """Return the function that counts one event."""
        return Counter(name).update

    def finish(self) -> None:
        """Bring all counts to the place where they can be read."""

    def total(self, name: str) -> int | None:
        """Return how often *name* was counted; None if the system cannot tell."""
        return Counter(name).get(86_400).total


class InMemory(AtOnce):
    def counting(self, name: str) -> Call:
        return Counter(name).count

    def finish(self) -> None:
        flush()


class Floor(AtOnce):
    """The cost of a round trip: a script that does nothing, sent by redis-py like any other."""

    def begin(self) -> None:
        self._sha = str(get_client().script_load("return 1"))

    def counting(self, name: str) -> Call:
        client, sha = get_client(), self._sha
        return lambda: client.evalsha(sha, 0)

    def total(self, name: str) -> None:
        return None


class Book(AtOnce):
    def counting(self, name: str) -> Call:
        redis = get_client()
        return lambda: book_update(redis, name)

    def total(self, name: str) -> int:
        return sum(map(int, get_client().hvals(f"count:86400:{name}")))


class Prometheus(AtOnce):
    """The mode for several processes, with files that all of them map into memory. Its server makes the slices."""

    def __init__(self) -> None:
        os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", tempfile.mkdtemp(prefix="prometheus-"))
        import prometheus_client

        self._counter = prometheus_client.Counter("hits", "Events.", ["name"])

    def begin(self) -> None:
        self._before = self._totals()

    def counting(self, name: str) -> Call:
        increment: Call = self._counter.labels(name).inc
        return increment

    def total(self, name: str) -> int:
        return self._totals().get(name, 0) - self._before.get(name, 0)

    def _totals(self) -> dict[str, int]:
        from prometheus_client import CollectorRegistry
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        samples = (sample for metric in registry.collect() for sample in metric.samples)
        return {each.labels["name"]: int(each.value) for each in samples if each.name == "hits_total"}


class StatsD(AtOnce):
    """One datagram for each event, and a server in this process that adds them up."""

    QUIET = 0.3  # after this many seconds without a datagram, no more will come

    def __init__(self) -> None:
        import statsd

        self._listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._listener.bind(("127.0.0.1", 0))
        self._client = statsd.StatsClient("127.0.0.1", self._listener.getsockname()[1])
        self._totals: Totals[str] = Totals()
        self._heard_at = time.monotonic()
        threading.Thread(target=self._listen, daemon=True).start()

    def begin(self) -> None:
        self._totals.clear()

    def counting(self, name: str) -> Call:
        known_by = name.replace(":", ".")  # a colon would end a name in StatsD
        return lambda: self._client.incr(known_by)

    def finish(self) -> None:
        self._heard_at = time.monotonic()

    def total(self, name: str) -> int:
        while time.monotonic() < self._heard_at + self.QUIET:
            time.sleep(self.QUIET / 10)
        return self._totals[name.replace(":", ".")]

    def _listen(self) -> None:
        while data := self._listener.recv(1_024):
            name, _, rest = data.partition(b":")
            self._totals[name.decode()] += int(rest.partition(b"|")[0])
            self._heard_at = time.monotonic()


PROMISES = ["system", "kept", "lost", "a lost reply", "cleaned"]
#: The class of each system's way to count.
SYSTEMS = [
    System(FLOOR, ["nothing", "-", "-", "-"], Floor),
    System(OURS, ["7 precisions", "nothing", "counts once", "by expiry"], AtOnce),
    System(BUFFERED, ["7 precisions", "a second, of a killed process", "counts once", "by expiry"], InMemory),
    System(BOOK, ["7 precisions", "nothing", "counts again", "by a process"], Book),
    System(
        "prometheus_client",
        ["totals", "nothing until the files go", "sends nothing", "by hand, files"],
        Prometheus,
        "prometheus_client",
    ),
    System(
        "statsd",
        ["its server decides", "what the socket's buffer cannot take", "is never sent again", "-"],
        StatsD,
        "statsd",
    ),
]
#: How many updates a turn of a fast system has, as a multiple of a slow system's.
SHARES = {BUFFERED: 200, "prometheus_client": 50, "statsd": 4}


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    installed = introduce(PROMISES, SYSTEMS, None if options.only is None else [FLOOR, BOOK, *options.only])
    ways = {name: system.way() for name, system in installed.items()}
    counts = {name: options.events * SHARES.get(name, 1) for name in ways}
    rates = compare(
        "system",
        ways,
        options.rounds * SLICES,
        lambda name: rate(bench, ways[name], counts[name] // SLICES),
        mid("events", "events"),
        mid("events/s", "rate"),
        span(),
        over(OURS, head="ours/theirs: at once"),
        over(BUFFERED, form=".1f", head="in memory"),
        mid("CPU of Redis, µs", "redis", ".2f"),
        mid("lost", "lost", ".1%"),
    )
    reads = [reading(bench) for _ in range(options.rounds)]
    slices = {precision: median(each[precision] for each in reads) for precision in PRECISIONS}
    rows = [[f"{precision:,} s", f"{value:.2f}"] for precision, value in slices.items()]
    print_table(["slices of", "120 samples, ms beyond a PING"], rows)
    print(f"\nA sample takes {bytes_per_sample(bench):.1f} bytes.")
    curve = [standing(bench, names, options.cleaned) for names in NAMES if names <= options.names]
    print_curve(curve)
    print_bars(bars(rates, max(slices.values()), curve, middleware()))
    forget()


def rate(bench: Bench, way: AtOnce, count: int) -> Turn:
    """Count in rotation; the time ends when all counts can be read."""
    bench.clear()
    names = [f"hits:/{number}" for number in range(COUNTED)]
    way.begin()
    counting = [way.counting(name) for name in names]
    for each in counting:
        each()
    made = count // COUNTED * COUNTED
    with bench.cost(made) as turn:
        for _ in range(count // COUNTED):
            for each in counting:
                each()
        way.finish()
    arrived = [total for total in map(way.total, names) if total is not None]
    lost = 1 - (sum(arrived) - COUNTED) / made if arrived else None
    return {**turn, "lost": lost, "events": made * SLICES}


def reading(bench: Bench) -> dict[int, float]:
    """Return, for each precision, the milliseconds beyond a PING that reading 120 filled samples takes."""
    bench.clear()
    fill(bench)
    counter, found = Counter("hits"), {}
    for precision in PRECISIONS:
        assert len(counter.get(precision)) == 120
        read = milliseconds(lambda p=precision: counter.get(p))  # type: ignore[misc]
        found[precision] = read - milliseconds(bench.redis.ping)
    return found


def fill(bench: Bench) -> None:
    """Write a count into each second, minute and hour that is kept of one counter."""
    now = int(bench.redis.time()[0])  # type: ignore[index]
    pipe = bench.redis.pipeline(transaction=False)
    samples = stem("counters", bucket("hits")) + "samples:hits"
    for stored, kept in plan().kept.items():
        for slot in range((now - kept) // stored, now // stored + (600 if stored == 1 else 1)):
            pipe.hincrby(f"{samples}/{stored}:{slot // WINDOW}", str(slot % WINDOW), slot % 97 * stored)
    pipe.execute()


def bytes_per_sample(bench: Bench) -> float:
    """Return the bytes of a sample. Call this after reading(), which fills all samples of a counter."""
    found: Any = bench.redis.keys("*:samples:*")
    samples = sum(int(bench.redis.hlen(key)) for key in found)  # type: ignore[arg-type]
    return sum(int(bench.redis.memory_usage(key) or 0) for key in found) / samples  # type: ignore[arg-type]


def standing(bench: Bench, names: int, largest: int) -> Turn:
    """Measure the cost of these names while nobody counts; run the book's cleaner for at most *largest* names."""
    bench.clear()
    empty = bench.memory()
    for number in range(names):
        count(f"hits:{number}")
    flushed = seconds(flush)
    size, before = (bench.memory() - empty) / names, bench.work()
    time.sleep(IDLE)
    # subtracts the first look, which the second one counts
    idle = bench.work().commands - before.commands - 1
    turn = {"names": names, "commands": idle * 60 / IDLE, "size": size, "flush": flushed * 1e3, "pass": None}
    if names <= largest:
        bench.clear()
        for number in range(names):
            book_update(bench.redis, f"hits:{number}")
        before = bench.work()
        took = seconds(lambda: book_clean(bench.redis))
        turn["pass"] = (bench.work().commands - before.commands, took)
    return turn


def middleware() -> float:
    """Return the median microseconds that the middleware adds to a request."""
    response = HttpResponse()
    request: Any = SimpleNamespace(resolver_match=SimpleNamespace(view_name="shop:item"))
    answer: Callable[[Any], HttpResponse] = lambda request: response  # noqa: E731
    counting = CountRequestsMiddleware(answer)
    with_it = milliseconds(lambda: counting(request), 20_000)
    return (with_it - milliseconds(lambda: answer(request), 20_000)) * 1e3


def milliseconds(call: Call, repeated: int = 300) -> float:
    return median(seconds(call) for _ in range(repeated)) * 1e3


def book_update(redis: Redis, name: str) -> None:
    now = time.time()
    with redis.pipeline(transaction=True) as pipe:
        for precision in PRECISIONS:
            slice_ = int(now / precision) * precision
            member = f"{precision}:{name}"
            pipe.zadd("known:", {member: 0})
            pipe.hincrby(f"count:{member}", str(slice_), 1)
        pipe.execute()


def book_clean(redis: Redis) -> None:
    """Run the cleaner once, in the first minute, when each counter is due."""
    index = 0
    while index < redis.zcard("known:"):  # type: ignore[operator]
        [member] = redis.zrange("known:", index, index)  # type: ignore[misc]
        index += 1
        precision = int(member.partition(b":")[0])
        key = b"count:" + member
        cutoff = time.time() - 100 * precision
        samples = sorted(map(int, redis.hkeys(key)))  # type: ignore[arg-type]
        too_old = bisect_right(samples, cutoff)
        if too_old:
            redis.hdel(key, *map(str, samples[:too_old]))
            if too_old == len(samples):
                redis.zrem("known:", member)
                index -= 1


def print_curve(curve: list[Turn]) -> None:
    head = ["names", "commands of a minute in which nobody counts", "one pass of the book's cleaner"]
    print_table(
        [*head, "bytes a name", "sent in ms"],
        (
            [
                f"{each['names']:,}",
                f"{each['commands']:,.0f}",
                "{:,} commands, {:.1f} s".format(*each["pass"]) if each["pass"] else "not waited for",
                f"{each['size']:,.0f}",
                f"{each['flush']:,.0f}",
            ]
            for each in curve
        ),
    )


def bars(rates: Rounds, slowest: float, curve: list[Turn], added: float) -> Iterator[Bar]:
    yield at_least("updates at once, times the book's", 3, times(rates, OURS, BOOK), ".1f")
    yield at_least("updates in memory", 1_000_000, middle(rates[BUFFERED], "rate"), ",.0f", "/s")
    yield none("of these lost", max(turn["lost"] for name in (OURS, BUFFERED) for turn in rates[name]), ".1%")
    yield at_most("reading 120 samples beyond a PING", 1, slowest, ".2f", " ms")
    yield none("commands while nobody counts", max(each["commands"] for each in curve))
    yield at_most("middleware for each request", 20, added, ".1f", " µs")
