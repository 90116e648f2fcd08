"""
The jobs of the processes of row_readers.py: read rows with one system, act as the book's daemon, count a batch's
queries.

The book's rows are those of chapter 2.4 of "Redis in Action", rebuilt from their description with the same commands
and round trips. One sorted set has the rows by the time when they are due, another has their delays. The daemon looks
at the first row of the schedule: if it is due, it reads the row's delay, loads the row, schedules it again, and
writes its JSON, with all values as text.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from statistics import median
from typing import Any

from django.core.cache import caches
from django.db import connection
from redis import Redis

from benchmarks.harness import client, seconds
from benchmarks.shop.models import Item, Offer
from components.services.rows.models import cached_rows
from components.services.rows.worker import RowWorker

LONG = 3_600.0  # seconds for which rows are valid, so that none is loaded in a turn
NAMES = [field.attname for field in Item._meta.concrete_fields]
WARM_UP = 20  # calls


class Orm:
    """A way to read rows: Django's ORM, without a cache."""

    #: The number of queries for one row and for one list, when everything is cached.
    queries = 2

    def begin(self, lists: list[list[int]]) -> None:
        """Cache all rows of these lists."""

    def one(self, pk: int) -> Any:
        return Item.objects.get(pk=pk)

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return Item.objects.in_bulk(pks).values()

    def value(self, row: Any, name: str) -> Any:
        return getattr(row, name)


class Ours(Orm):
    queries = 0

    def begin(self, lists: list[list[int]]) -> None:
        pks = {pk for pks in lists for pk in pks}
        Item.cached.schedule_many(pks, LONG)
        Item.cached.get_many(pks)

    def one(self, pk: int) -> Any:
        return Item.cached.get(pk)

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return Item.cached.get_many(pks).values()


class Cacheops(Orm):
    queries = 0

    def begin(self, lists: list[list[int]]) -> None:
        for pks in lists:
            for row in self.many(pks):
                self.one(row.pk)

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return list(Item.objects.filter(pk__in=pks))


class DjangoCache(Orm):
    queries = 0

    def begin(self, lists: list[list[int]]) -> None:
        for pks in lists:
            rows = Item.objects.filter(pk__in=pks).values()
            caches["rows"].set_many({f"item:{row['id']}": row for row in rows})

    def one(self, pk: int) -> Any:
        return caches["rows"].get(f"item:{pk}")

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        return caches["rows"].get_many([f"item:{pk}" for pk in pks]).values()

    def value(self, row: Any, name: str) -> Any:
        return row[name]


class Book(DjangoCache):
    def begin(self, lists: list[list[int]]) -> None:
        for pk in {pk for pks in lists for pk in pks}:
            book_schedule(client(), pk, LONG)
        while book_load_next(client()):
            pass

    def one(self, pk: int) -> Any:
        found: Any = client().get(f"inv:{pk}")
        return json.loads(found) if found else None

    def many(self, pks: Sequence[int]) -> Collection[Any]:
        found: Any = client().mget([f"inv:{pk}" for pk in pks])
        return {pk: json.loads(text) for pk, text in zip(pks, found, strict=True) if text}.values()


def book_schedule(redis: Redis, pk: int, delay: float) -> None:
    redis.zadd("delay:", {str(pk): delay})
    redis.zadd("schedule:", {str(pk): time.time()})


def book_load_next(redis: Redis) -> bool:
    """Run one turn of the daemon's loop; return False if nothing is due."""
    found: Any = redis.zrange("schedule:", 0, 0, withscores=True)
    now = time.time()
    if not found or found[0][1] > now:
        return False
    member = found[0][0]
    delay: Any = redis.zscore("delay:", member)
    if delay is None or delay <= 0:
        for key in ("delay:", "schedule:"):
            redis.zrem(key, member)
        redis.delete(f"inv:{int(member)}")
        return True
    row = Item.objects.get(pk=int(member))
    redis.zadd("schedule:", {member: now + delay})
    redis.set(f"inv:{row.pk}", json.dumps({name: str(getattr(row, name)) for name in NAMES}))
    return True


# The jobs; each takes the system of its process


def begin(system: Orm, lists: list[list[int]]) -> None:
    system.begin(lists)


def read(system: Orm, lists: list[list[int]], calls: int) -> dict[str, float]:
    """
    Return the median microseconds of reading one row, a list, and a list with one or with all values of each row.
    """
    ones = [each for pks in lists for each in pks]
    _check(system, lists[0])

    def one(at: int) -> list[Any]:
        return [system.one(ones[at * 7919 % len(ones)])]

    def many(at: int) -> Collection[Any]:
        return system.many(lists[at % len(lists)])

    found = {}
    for size, rows in (("one", one), ("many", many)):
        repeated = calls if size == "one" else max(WARM_UP, calls // 5)
        found[size] = _microseconds(rows, repeated)
        for what, names in (("a value", ["stock"]), ("all values", NAMES)):

            def with_values(at: int) -> None:
                for row in rows(at):  # noqa: B023  called at once
                    for name in names:  # noqa: B023
                        system.value(row, name)

            found[f"{size}, {what}"] = _microseconds(with_values, repeated)
    return found


def _microseconds(call: Callable[[int], object], repeated: int) -> float:
    for at in range(WARM_UP):
        call(at)
    return median(seconds(lambda at=at: call(at)) for at in range(repeated)) * 1e6  # type: ignore[misc]


def _check(system: Orm, pks: list[int]) -> None:
    """
    Check that the system finds all rows with the declared number of queries, which shows that the rows are cached.
    """
    queries: list[str] = []
    with connection.execute_wrapper(_noting(queries)):
        found, one = system.many(pks), system.one(pks[0])
    if len(found) != len(pks) or one is None or len(queries) != system.queries:
        raise RuntimeError(
            f"{type(system).__name__}: {len(found)} of {len(pks)} rows, and {len(queries)} queries."
        )


def _noting(queries: list[str]) -> Callable[..., Any]:
    """Return a function that Django calls for each query; it adds the query's table to *queries*."""

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        queries.append(sql.partition(" FROM ")[2].partition(" ")[0])
        return execute(sql, *rest)

    return note


def refresh_book(_system: Orm, count: int) -> float:
    """Return the rows per second that the book's daemon loads when all of them are due."""
    redis = client()
    redis.flushall()
    for pk in range(1, count + 1):
        book_schedule(redis, pk, 3_600)
    book_load_next(redis)
    began = time.perf_counter()
    while book_load_next(redis):
        pass
    return (count - 1) / (time.perf_counter() - began)


def connect(_system: Orm) -> None:
    """Open all connections, and load all scripts into the server."""
    client().flushall()
    Item.cached.schedule(1)
    Offer.cached.schedule(1)
    RowWorker(cached_rows()).tick()
    client().flushall()


def batches(_system: Orm, count: int) -> int:
    """
    Run *count* batches of the daemon, with rows of two models due in each. Return the most queries for one model.
    """
    worker, most = RowWorker(cached_rows()), 0
    for _ in range(count):
        queries: list[str] = []
        with connection.execute_wrapper(_noting(queries)):
            worker.tick()
        tables = Counter(queries)
        if len(tables) != 2:
            raise RuntimeError(f"A batch of two models queried the tables {list(tables)}.")
        most = max(most, *tables.values())
    return most


def book_row(_system: Orm) -> int:
    """Let the book's daemon load one row; return the number of queries."""
    queries: list[str] = []
    with connection.execute_wrapper(_noting(queries)):
        if not book_load_next(client()):
            raise RuntimeError("No row of the book's was due.")
    return len(queries)
