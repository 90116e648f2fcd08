"""What a reader's process is asked to do: to read rows, to be the book's daemon, to count what a batch asks for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from django.db import connection

from benchmarks.caching import book
from benchmarks.caching.models import Item, Offer
from benchmarks.caching.systems import NAMES, System
from benchmarks.crew import client

_WARM_UP = 20  # calls


def begin(system: System, lists: list[list[int]]) -> None:
    """Let all of them be cached."""
    system.begin(lists)


def read(system: System, lists: list[list[int]], calls: int) -> dict[str, float]:
    """Microseconds, the median of *calls*: one row, a list of them, and with values read of each row."""
    ones = [each for pks in lists for each in pks]
    _check(system, lists[0])

    def values(rows: Any, names: Sequence[str]) -> None:
        for row in rows:
            for name in names:
                system.value(row, name)

    asked: dict[str, Callable[[int], object]] = {
        "one": lambda at: system.one(ones[at * 7919 % len(ones)]),
        "one, a value": lambda at: values([system.one(ones[at * 7919 % len(ones)])], ["stock"]),
        "one, all values": lambda at: values([system.one(ones[at * 7919 % len(ones)])], NAMES),
        "many": lambda at: system.many(lists[at % len(lists)]),
        "many, a value": lambda at: values(system.many(lists[at % len(lists)]), ["stock"]),
        "many, all values": lambda at: values(system.many(lists[at % len(lists)]), NAMES),
    }
    return {
        what: _median(call, calls if what.startswith("one") else max(_WARM_UP, calls // 5))
        for what, call in asked.items()
    }


def _check(system: System, pks: list[int]) -> None:
    """It finds all rows, in as many queries as it says: what is cached is there."""
    queries: list[str] = []
    with connection.execute_wrapper(_noting(queries)):
        found, one = system.many(pks), system.one(pks[0])
    if len(found) != len(pks) or one is None or len(queries) != system.queries:
        raise RuntimeError(
            f"{type(system).__name__}: {len(found)} of {len(pks)} rows, and {len(queries)} queries."
        )


def _noting(queries: list[str]) -> Callable[..., Any]:
    """What Django calls for each query: adds its table to *queries*."""

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        queries.append(sql.partition(" FROM ")[2].partition(" ")[0])
        return execute(sql, *rest)

    return note


def refresh_book(_system: System, count: int) -> float:
    """Rows a second that the book's daemon loads, all of them due."""
    redis = client()
    redis.flushall()
    for pk in range(1, count + 1):
        book.schedule(redis, pk, 3_600)
    book.load_next(redis)
    began = time.perf_counter()
    while book.load_next(redis):
        pass
    return (count - 1) / (time.perf_counter() - began)


def connect(_system: System) -> None:
    """Have all connections, and let the server know all scripts."""
    from components.services.rows.models import cached_rows
    from components.services.rows.worker import RowWorker

    client().flushall()
    Item.cached.schedule(1)
    Offer.cached.schedule(1)
    RowWorker(cached_rows()).tick()
    client().flushall()


def batches(_system: System, count: int) -> tuple[int, int]:
    """*count* batches of the daemon, all of two models being due: that, and the most queries for one of them."""
    from components.services.rows.models import cached_rows
    from components.services.rows.worker import RowWorker

    worker, most = RowWorker(cached_rows()), 0
    for _ in range(count):
        queries: list[str] = []
        with connection.execute_wrapper(_noting(queries)):
            worker.tick()
        tables = Counter(queries)
        if len(tables) != 2:
            raise RuntimeError(f"A batch of two models asked for the tables {list(tables)}.")
        most = max(most, *tables.values())
    return count, most


def book_row(_system: System) -> int:
    """The book's daemon loads one row; the queries of that."""
    queries: list[str] = []
    with connection.execute_wrapper(_noting(queries)):
        if not book.load_next(client()):
            raise RuntimeError("No row of the book's was due.")
    return len(queries)


def _median(call: Callable[[int], object], calls: int) -> float:
    for at in range(_WARM_UP):
        call(at)
    times = []
    for at in range(calls):
        began = time.perf_counter()
        call(at)
        times.append(time.perf_counter() - began)
    return median(times) * 1e6
