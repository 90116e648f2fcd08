"""
One turn of one system: alone, against others for the same name, and the way from one hand to the next.

The name is always free when a turn begins. Waits are seen by who waits: from the call until the thing is held. That
two never hold it is counted by what they do meanwhile: a counter that is read, and written after the hold, loses
what a second holder adds; a gauge of holders rises above a semaphore's limit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.bench import Bench
from benchmarks.crew import Crew, Task, client
from benchmarks.locking import find
from benchmarks.locking.base import LIMIT, System

HOLD = 0.002  # seconds
_WARM_UP = 50  # pairs: scripts are loaded, connections open, and Python has seen its code
_NAME, _COUNTER, _GAUGE = "contended", "counter", "gauge"
_GO, _DONE = "go", "done"  # lists by which the two of a hand-over know how far the other is
_PAUSE = 0.02  # seconds: who waits has gone to sleep by then
_PHASE = 0.1  # seconds, redis-py's default between two tries: the release comes at any moment within it


@dataclass(frozen=True)
class Alone:
    """A pair is acquire and release; all but the rate is per pair, times in microseconds."""

    rate: float
    #: Processor time of this process, and of all threads of the server.
    client_cpu: float
    server_cpu: float
    #: Commands, those in scripts included; and reads from sockets, which are round trips.
    commands: float
    reads: float


def alone(bench: Bench, hold: Callable[[], object], count: int) -> Alone:
    """What *hold* costs, called again and again by one process."""
    for _ in range(_WARM_UP):
        hold()
    before, cpu, began = bench.work(), time.process_time(), time.monotonic()
    for _ in range(count):
        hold()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    work = bench.work() - before
    return Alone(count / took, cpu / count * 1e6, work.cpu / count, work.commands / count, work.reads / count)


def pairs(bench: Bench, system: System, count: int) -> Alone:
    """Acquire and release what nobody else wants."""
    bench.clear()

    def hold() -> None:
        with system.hold("alone"):
            pass

    return alone(bench, hold, count)


def floor(bench: Bench, count: int) -> Alone:
    """The least that a lock with a lease takes: SET NX PX, and a script that compares and deletes."""
    bench.clear()
    release = client().register_script(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
    )

    def hold() -> None:
        client().set("alone", "token", nx=True, px=4_000)
        release(keys=["alone"], args=["token"])

    return alone(bench, hold, count)


@dataclass(frozen=True)
class Crowd:
    """Several processes that want the same."""

    rate: float
    #: Seconds.
    waits: list[float]
    #: Updates that a second holder made undone, or moments with more holders than the limit.
    wrong: int


def crowd(bench: Bench, crew: Crew, name: str, processes: int, count: int) -> Crowd:
    """*count* acquisitions by each process, held for 2 ms. Raises Stuck."""
    bench.clear()
    results = crew.do([Task(_want_lock, (name, count))] * processes)
    lost = processes * count - int(bench.redis.get(_COUNTER) or 0)
    return _crowd(results, lost)


def permits(bench: Bench, crew: Crew, name: str, processes: int, count: int) -> Crowd:
    """The same with a semaphore."""
    bench.clear()
    results = crew.do([Task(_want_permit, (name, count))] * processes)
    return _crowd(results, sum(result[3] for result in results))


def _crowd(results: list[Any], wrong: int) -> Crowd:
    began, ended = min(result[0] for result in results), max(result[1] for result in results)
    waits = [wait for result in results for wait in result[2]]
    return Crowd(len(waits) / (ended - began), waits, wrong)


def _want_lock(name: str, count: int) -> Generator[None, None, tuple[float, float, list[float]]]:
    system, redis, waits = _ready(name), client(), []
    yield
    began = time.monotonic()
    for _ in range(count):
        asked = time.monotonic()
        with system.hold(_NAME):
            waits.append(time.monotonic() - asked)
            seen = int(redis.get(_COUNTER) or 0)
            time.sleep(HOLD)
            redis.set(_COUNTER, seen + 1)
    return began, time.monotonic(), waits


def _want_permit(name: str, count: int) -> Generator[None, None, tuple[float, float, list[float], int]]:
    system, redis, waits, over = _ready(name), client(), [], 0
    yield
    began = time.monotonic()
    for _ in range(count):
        asked = time.monotonic()
        with system.hold(_NAME):
            waits.append(time.monotonic() - asked)
            over += redis.incr(_GAUGE) > LIMIT
            time.sleep(HOLD)
            redis.decr(_GAUGE)
    return began, time.monotonic(), waits, over


def _ready(name: str) -> System:
    """The system, after a first use in this process of something that nobody else wants."""
    system = find(name)
    if system is None:
        raise LookupError(f"{name} is not installed")
    with system.hold(f"warm-up:{random.random()}"):
        pass
    return system


@dataclass(frozen=True)
class HandOver:
    """Seconds from the call of release in one process until the lock is held in another; and of PINGs between."""

    times: list[float]
    pings: list[float]

    @property
    def round_trips(self) -> float:
        return median(self.times) / median(self.pings)


def hand_over(bench: Bench, crew: Crew, name: str, count: int) -> HandOver:
    """One process holds, another waits, and neither has done anything for a while. Raises Stuck."""
    bench.clear()
    (released, pings), held = crew.do([Task(_hand, (name, count)), Task(_take, (name, count))])
    return HandOver([end - start for start, end in zip(released, held, strict=True)], pings)


def _hand(name: str, count: int) -> Generator[None, None, tuple[list[float], list[float]]]:
    system, redis, released, pings = _ready(name), client(), [], []
    yield
    for _ in range(count):
        with system.hold(_NAME):
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
    system, redis, held = _ready(name), client(), []
    yield
    for _ in range(count):
        redis.blpop([_GO], timeout=4)
        with system.hold(_NAME):
            held.append(time.monotonic())
        redis.rpush(_DONE, 1)
    return held
