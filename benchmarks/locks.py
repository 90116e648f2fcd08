"""
Locks and semaphores: without competition, with several processes that want the same one, and from one holder to the
next.

A counter checks that two processes never hold a lock at once: it is read, and written after the hold, so it loses the
addition of a second holder. A gauge of holders rises above a semaphore's limit.
"""

from __future__ import annotations

import random
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from functools import cache
from statistics import median
from typing import Any

from benchmarks import book_locks
from benchmarks.book_locks import LEASE, LIMIT
from benchmarks.harness import OURS, SLICES, Bench, Call, Crew, Rounds, System, Task, Turn, client, percentile
from benchmarks.report import (
    COST,
    Bar,
    Column,
    at_least,
    at_most,
    compare,
    introduce,
    mid,
    middle,
    none,
    over,
    part,
    print_bars,
    span,
    times,
    total,
)
from components.services.locks import lock
from components.services.semaphores import Semaphore

FAIR, SEMAPHORE = "components, fair", "components, semaphore"
FLOOR = "SET NX PX and a script"
# How many processes want the same lock, and the same semaphore.
PROCESSES, PERMIT_PROCESSES = 8, 16
HOLD = 0.002  # seconds
_NAME, _COUNTER, _GAUGE = "contended", "counter", "gauge"
# Lists by which the two processes of a hand-over signal their progress to each other.
_GO, _DONE = "go", "done"
_PAUSE = 0.02  # seconds after which a waiter is certainly asleep
# Seconds, redis-py's default between two attempts. The release comes at a random moment within them.
_PHASE = 0.1


def redis_py(name: str, sleep: float = 0.1) -> Any:
    return client().lock(name, timeout=LEASE, sleep=sleep)


def python_redis_lock(name: str) -> Any:
    import redis_lock

    return redis_lock.Lock(client(), name, expire=LEASE)


def pottery(name: str) -> Any:
    from pottery import Redlock

    return Redlock(key=name, masters={client()}, auto_release_time=LEASE)


@cache
def _semaphore(name: str) -> Semaphore:
    return Semaphore(name, limit=LIMIT, lease=LEASE)


PROMISES = ["fence", "lease", "right after a lost reply", "wakes waiters", "in order"]
#: A system's way takes a name, and returns a context manager that holds the lock or permit.
LOCKS = [
    System(OURS, ["yes", "yes", "yes", "yes", "no"], lambda name: lock(name, timeout=LEASE)),
    System(FAIR, ["yes", "yes", "yes", "yes", "yes"], lambda name: lock(name, timeout=LEASE, fair=True)),
    System("redis-py", ["no", "yes", "no: held by nobody", "no: polls", "no"], redis_py, "redis"),
    System(
        "redis-py-10ms",
        ["no", "yes", "no: held by nobody", "no: polls", "no"],
        lambda name: redis_py(name, 0.01),
        "redis",
    ),
    System(
        "python-redis-lock",
        ["no", "whole seconds", "no: held by nobody", "yes; a lost signal costs a lease", "no"],
        python_redis_lock,
        "python-redis-lock",
    ),
    System("pottery", ["no", "yes", "tries again; release fails", "no: polls", "no"], pottery, "pottery"),
    System("book", ["no", "no: lost with its holder", "no: stuck", "no: polls", "no"], book_locks.lock),
    System(
        "book-lease",
        ["no", "in a second step", "no: held by nobody", "no: polls", "no"],
        lambda name: book_locks.lock(name, LEASE),
    ),
]
SEMAPHORES = [
    System(SEMAPHORE, ["no", "yes", "yes", "yes", "yes"], lambda name: _semaphore(name).acquire()),
    System(
        "book-basic",
        ["no", "by the client's clock", "a permit less", "no: polls", "no"],
        lambda name: book_locks.permit(
            name, book_locks.take_basic, lambda redis, key, identifier: redis.zrem(key, identifier)
        ),
    ),
    System(
        "book-fair",
        ["no", "by the client's clock", "a permit less", "no: polls", "among those who try at once"],
        lambda name: book_locks.permit(name, book_locks.take_fair),
    ),
    System(
        "book-locked",
        ["no", "by the client's clock", "no: stuck", "no: polls", "among those who try at once"],
        lambda name: book_locks.permit(name, book_locks.take_locked),
    ),
]
WAYS = {system.name: system.way for system in (*LOCKS, *SEMAPHORES)}


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    names = introduce(["lock", *PROMISES], LOCKS, options.only)
    pairs = compare(
        "lock, alone",
        [FLOOR, *names],
        options.rounds * SLICES,
        lambda name: alone(
            bench, floor(bench) if name == FLOOR else pair(bench, name), options.pairs // SLICES
        ),
        *_alone_columns(OURS),
    )
    crowds = compare(
        f"lock, {PROCESSES} processes",
        names,
        options.rounds,
        lambda name: crowd(bench, crew, name, PROCESSES, options.acquisitions),
        *_crowd_columns(OURS, "lost updates"),
    )
    handed = compare(
        "release to acquired",
        names,
        options.rounds,
        lambda name: hand_over(bench, crew, name, options.hand_overs),
        part("p50 ms", "times", 50),
        Column(
            "p99 ms",
            lambda _, turns: f"{percentile([one for turn in turns for one in turn['times']], 99) * 1e3:.2f}",
        ),
        part("PING, p50 ms", "pings", 50),
        mid("p50 in PINGs", "trips", ".1f"),
    )

    names = introduce(["semaphore", *PROMISES], SEMAPHORES, options.only)
    compare(
        "semaphore, alone",
        names,
        options.rounds * SLICES,
        lambda name: alone(bench, pair(bench, name), options.pairs // SLICES),
        *_alone_columns(SEMAPHORE),
    )
    permit_crowds = compare(
        f"semaphore of {LIMIT}, {PERMIT_PROCESSES} processes",
        names,
        options.rounds,
        lambda name: crowd(bench, crew, name, PERMIT_PROCESSES, options.acquisitions),
        *_crowd_columns(SEMAPHORE, "over the limit"),
    )
    print_bars([*bars(pairs, crowds, handed), *bars_of_permits(permit_crowds)])


def alone(bench: Bench, call: Call, count: int) -> Turn:
    """Measure the cost of a call in one process, without competition."""
    # Loads scripts, opens connections, and warms up Python.
    for _ in range(50):
        call()
    with bench.cost(count) as turn:
        for _ in range(count):
            call()
    return turn


def pair(bench: Bench, name: str) -> Call:
    """Return a function that acquires and releases once, in an empty server."""
    bench.clear()
    way = WAYS[name]

    def hold() -> None:
        with way("alone"):
            pass

    return hold


def floor(bench: Bench) -> Call:
    """
    Return a function for the least work that a lock with a lease needs: SET NX PX, and a script that compares and
    deletes.
    """
    bench.clear()
    release = bench.redis.register_script(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
    )

    def hold() -> None:
        bench.redis.set("alone", "token", nx=True, px=4_000)
        release(keys=["alone"], args=["token"])

    return hold


def crowd(bench: Bench, crew: Crew, name: str, processes: int, count: int) -> Turn:
    """Let each process acquire *count* times, and hold for 2 ms. Raises Stuck."""
    bench.clear()
    is_lock = name in {system.name for system in LOCKS}
    results = crew.do(*[Task(_want, (name, count, _read_and_write if is_lock else _go_in))] * processes)
    waits = [wait for result in results for wait in result[2]]
    seconds = max(result[1] for result in results) - min(result[0] for result in results)
    lost = processes * count - int(bench.redis.get(_COUNTER) or 0)  # type: ignore[arg-type]
    return {
        "rate": len(waits) / seconds,
        "waits": waits,
        "wrong": lost if is_lock else sum(result[3] for result in results),
    }


def _want(name: str, count: int, work: Callable[[Any], int]) -> Generator[None, None, Any]:
    way, redis, waits, above = _ready(name), client(), [], 0
    yield
    began = time.monotonic()
    for _ in range(count):
        asked = time.monotonic()
        with way(_NAME):
            waits.append(time.monotonic() - asked)
            above += work(redis)
    return began, time.monotonic(), waits, above


def _read_and_write(redis: Any) -> int:
    seen = int(redis.get(_COUNTER) or 0)
    time.sleep(HOLD)
    redis.set(_COUNTER, seen + 1)
    return 0


def _go_in(redis: Any) -> bool:
    """Return whether more processes were inside than the limit allows."""
    above: bool = redis.incr(_GAUGE) > LIMIT
    time.sleep(HOLD)
    redis.decr(_GAUGE)
    return above


def _ready(name: str) -> Any:
    """Return the system's way, after one use of a name that no other process wants."""
    way = WAYS[name]
    held: AbstractContextManager[Any] = way(f"warm-up:{random.random()}")
    with held:
        return way


def hand_over(bench: Bench, crew: Crew, name: str, count: int) -> Turn:
    """
    Let one process hold and another wait, *count* times. Raises Stuck.

    Seconds count from the call of release in the holder until the waiter holds the lock.
    """
    bench.clear()
    (released, pings), held = crew.do(Task(_hand, (name, count)), Task(_take, (name, count)))
    took = [end - start for start, end in zip(released, held, strict=True)]
    return {"times": took, "pings": pings, "trips": median(took) / median(pings)}


def _hand(name: str, count: int) -> Generator[None, None, Any]:
    way, redis, released, pings = _ready(name), client(), [], []
    yield
    for _ in range(count):
        with way(_NAME):
            redis.rpush(_GO, 1)
            time.sleep(_PAUSE + random.uniform(0, _PHASE))
            began = time.monotonic()
            redis.ping()
            pings.append(time.monotonic() - began)
            time.sleep(_PAUSE)
            released.append(time.monotonic())
        redis.blpop([_DONE], timeout=4)
    return released, pings


def _take(name: str, count: int) -> Generator[None, None, list[float]]:
    way, redis, held = _ready(name), client(), []
    yield
    for _ in range(count):
        redis.blpop([_GO], timeout=4)
        with way(_NAME):
            held.append(time.monotonic())
        redis.rpush(_DONE, 1)
    return held


def _alone_columns(ours: str) -> list[Column]:
    return [mid("pairs/s", "rate"), span(), over(ours), *COST]


def _crowd_columns(ours: str, wrong: str) -> list[Column]:
    columns = [mid("acquired/s", "rate"), span(), over(ours)]
    columns += [
        part(f"{what} ms", "waits", percent, ".1f")
        for what, percent in (("p50", 50), ("p99", 99), ("max", 100))
    ]
    return [*columns, total(wrong, "wrong")]


def bars(pairs: Rounds, crowds: Rounds, handed: Rounds) -> Iterator[Bar]:
    yield at_least("uncontended pairs, times redis-py", 0.8, times(pairs, OURS, "redis-py"))
    peers = [name for name in crowds if not name.startswith(OURS)]
    best = max(peers, key=lambda name: middle(crowds[name], "rate"), default="none here")
    yield at_least(f"contended, times the best peer ({best})", 0.9, times(crowds, OURS, best))
    waits = {
        name: [{"p99": percentile(turn["waits"], 99)} for turn in turns] for name, turns in crowds.items()
    }
    yield at_most("p99 wait when fair, part of redis-py's", 0.2, times(waits, FAIR, "redis-py", "p99"))
    for name in (OURS, FAIR):
        yield at_most(f"hand-over, {name}: PINGs more than one", 2, middle(handed[name], "trips") - 1, ".1f")
        yield none(f"lost updates, {name}", sum(turn["wrong"] for turn in crowds[name]))


def bars_of_permits(crowds: Rounds) -> Iterator[Bar]:
    yield none("more permits than the limit", sum(turn["wrong"] for turn in crowds[SEMAPHORE]))
