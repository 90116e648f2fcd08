"""
`manage.py cacherows`, one or several: how many rows a second they load anew, and what they cost while nothing is due.

Its boot is in no figure. It has loaded all rows once when it is stopped (SIGSTOP), all rows are let be due, and it
goes on: from then the time runs until the last of them is stored.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.bench import Bench, Worker, running
from benchmarks.caching.models import Item
from components.kit.buckets import BUCKETS
from components.services.rows.keys import RowKeys

_LONG = (
    50 * 365 * 86_400.0
)  # seconds between two loads: wherever in there a row is due again, it is in no turn
_SOON = (
    10e6  # microseconds: a row that is claimed is due again when the lease of the claim ends, in half of this
)
_IDLE = 6.0  # seconds in which nothing is due
_GLANCE = 0.005  # seconds between two looks whether all is stored, each of them 32 short commands
_PATIENCE = 120.0  # seconds that a turn may take


@dataclass(frozen=True)
class Refresh:
    """A turn in which rows were loaded anew."""

    #: Rows a second, of all daemons together.
    rate: float
    #: Microseconds for each row: of the daemons' processors, if there is a /proc to tell, and of the server's.
    daemon_cpu: float | None
    server_cpu: float


@dataclass(frozen=True)
class Idling:
    """What a daemon does while nothing is due."""

    #: Part of one processor at most, of the daemon and of the server.
    daemon_cpu: float | None
    server_cpu: float
    #: Commands a second, those in scripts included.
    commands: float


@contextmanager
def daemons(count: int) -> Iterator[list[Worker]]:
    """So many of them, with their defaults."""
    command = ["manage.py", "cacherows", "--verbosity", "0"]
    with ExitStack() as stack:
        yield [stack.enter_context(running(command)) for _ in range(count)]


def refresh(bench: Bench, count: int, how_many: int) -> Refresh:
    """*how_many* daemons load *count* rows, all of which are due. Raises Stuck."""
    bench.clear()
    Item.cached.schedule_many(range(1, count + 1), _LONG)
    with daemons(how_many) as workers:
        _wait_until_stored(bench, workers[0])
        _signal(workers, signal.SIGSTOP)
        _let_be_due(bench)
        before, cpu, began = bench.work(), cpu_of(workers), time.monotonic()
        _signal(workers, signal.SIGCONT)
        took = _wait_until_stored(bench, workers[0]) - began
        work, spent = bench.work() - before, cpu_of(workers)
    used = (spent - cpu) / count * 1e6 if spent is not None and cpu is not None else None
    return Refresh(count / took, used, work.cpu / count)


def idle(bench: Bench, count: int) -> Idling:
    """A daemon that has loaded *count* rows, of which none is due. Raises Stuck."""
    bench.clear()
    Item.cached.schedule_many(range(1, count + 1), _LONG)
    with daemons(1) as workers:
        _wait_until_stored(bench, workers[0])
        time.sleep(1)
        before, cpu = bench.work(), cpu_of(workers)
        time.sleep(_IDLE)
        work, spent = bench.work() - before, cpu_of(workers)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    used = (spent - cpu + tick) / _IDLE if spent is not None and cpu is not None else None
    # The first look is among what the second sees.
    return Idling(used, work.cpu / 1e6 / _IDLE, (work.commands - 1) / _IDLE)


def is_all_stored(bench: Bench) -> bool:
    """No row is due or claimed: of one that is stored the next load is far away."""
    soon = time.time() * 1e6 + _SOON
    return not any(_of_each(bench, lambda pipe, schedule: pipe.zcount(schedule, "-inf", soon)))


def _wait_until_stored(bench: Bench, worker: Worker) -> float:
    return worker.wait_for(lambda: is_all_stored(bench), patience=_PATIENCE, glance=_GLANCE)


def _let_be_due(bench: Bench) -> None:
    """As if the delays of all rows were over."""
    listed = _of_each(bench, lambda pipe, schedule: pipe.zrange(schedule, 0, -1))
    pipe = bench.redis.pipeline(transaction=False)
    for tag, members in zip(BUCKETS, listed, strict=True):
        if members:
            pipe.zadd(RowKeys(tag).schedule, dict.fromkeys(members, 1))
    pipe.execute()


def _of_each(bench: Bench, add: Any) -> list[Any]:
    pipe = bench.redis.pipeline(transaction=False)
    for tag in BUCKETS:
        add(pipe, RowKeys(tag).schedule)
    return pipe.execute()


def _signal(workers: list[Worker], number: signal.Signals) -> None:
    for worker in workers:
        os.killpg(worker.process.pid, number)


def cpu_of(workers: list[Worker]) -> float | None:
    """Seconds of processor time of all of them, if there is a /proc to tell."""
    each = [worker.cpu() for worker in workers]
    return sum(cpu for cpu in each if cpu is not None) if None not in each else None
