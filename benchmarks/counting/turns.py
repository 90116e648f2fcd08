"""The turns of counters.py: each begins with an empty server."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from types import SimpleNamespace
from typing import Any

from benchmarks.bench import Bench
from benchmarks.counting import book
from benchmarks.counting.base import System

NAMES = 10  # counted in turn
PRECISIONS = (1, 5, 60, 300, 3_600, 18_000, 86_400)
_READS = 300
_REQUESTS = 20_000
_IDLE = 3.0  # seconds that nobody counts


@dataclass(frozen=True)
class Rate:
    """A turn of updates."""

    #: Events a second, all of them where they can be read.
    events: float
    #: Microseconds of the server's processor for each.
    cpu: float
    #: Part of the events that did not arrive; None if that cannot be told.
    lost: float | None


@dataclass(frozen=True)
class Standing:
    """What so many names cost while nobody counts."""

    names: int
    #: Commands that the server did in a minute of that.
    ours: float
    #: Commands and seconds of one pass of the book's cleaner; None if that is not waited for.
    passes: tuple[int, float] | None
    #: Bytes of each name, counted once, and milliseconds in which all of them are sent.
    size: float
    flush: float


def rate(bench: Bench, system: System, count: int) -> Rate:
    bench.clear()
    names = [f"hits:/{number}" for number in range(NAMES)]
    system.begin()
    counting = [system.counting(name) for name in names]
    for each in counting:
        each()
    before, began = bench.work(), time.perf_counter()
    for _ in range(count // NAMES):
        for each in counting:
            each()
    system.finish()
    seconds, work = time.perf_counter() - began, bench.work() - before
    found, made = [system.total(name) for name in names], count // NAMES * NAMES
    arrived = [each for each in found if each is not None]
    lost = 1 - (sum(arrived) - NAMES) / made if arrived else None
    return Rate(made / seconds, work.cpu / made, lost)


def reading(bench: Bench, fill: Callable[[Bench], None]) -> dict[int, float]:
    """Milliseconds beyond a PING, by precision, in which 120 samples are read; each of them has counted."""
    from components.services.counters import Counter

    bench.clear()
    fill(bench)
    counter = Counter("hits")
    found = {}
    for precision in PRECISIONS:
        assert len(counter.get(precision)) == 120
        found[precision] = _median(lambda p=precision: counter.get(p)) - _median(bench.redis.ping)  # type: ignore[misc]
    return found


def bytes_per_sample(bench: Bench) -> float:
    """After reading(), when all samples of one counter are there."""
    found: Any = bench.redis.keys("*:samples:*")
    samples = sum(int(bench.redis.hlen(key)) for key in found)  # type: ignore[arg-type]
    return sum(int(bench.redis.memory_usage(key) or 0) for key in found) / samples  # type: ignore[arg-type]


def standing(bench: Bench, names: int, *, largest_pass: int) -> Standing:
    from components.services.counters import count, flush

    bench.clear()
    empty = bench.memory()
    for number in range(names):
        count(f"hits:{number}")
    began = time.perf_counter()
    flush()
    flushed = time.perf_counter() - began
    size = (bench.memory() - empty) / names
    before = bench.work()
    time.sleep(_IDLE)
    # The first look is among what the second sees.
    idle = (bench.work() - before).commands - 1
    passes = _clean(bench, names) if names <= largest_pass else None
    return Standing(names, idle * 60 / _IDLE, passes, size, flushed * 1e3)


def _clean(bench: Bench, names: int) -> tuple[int, float]:
    bench.clear()
    for number in range(names):
        book.update(bench.redis, f"hits:{number}")
    before, began = bench.work(), time.perf_counter()
    book.clean_all(bench.redis)
    return (bench.work() - before).commands, time.perf_counter() - began


def middleware() -> float:
    """Microseconds that it adds to a request, at the median."""
    from django.http import HttpResponse

    from components.middleware import CountRequestsMiddleware

    response = HttpResponse()
    request: Any = SimpleNamespace(resolver_match=SimpleNamespace(view_name="shop:item"))

    def answer(request: Any) -> HttpResponse:
        return response

    counting = CountRequestsMiddleware(answer)
    with_it = _median(lambda: counting(request), _REQUESTS)
    return (with_it - _median(lambda: answer(request), _REQUESTS)) * 1e3


def _median(act: Callable[[], object], times: int = _READS) -> float:
    """Milliseconds."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        spent.append(time.perf_counter() - began)
    return median(spent) * 1e3
