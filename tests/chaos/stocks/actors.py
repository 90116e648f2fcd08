"""
Writers and readers of stocks, and the daemon; each writes down what it is about to do, and when that was done.

Half of the writers' acts are told to the cache by signals, half are not: update(), raw SQL, which it must notice by
itself. Some queries of readers and daemons are slow, and come back with what was so when they were asked.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from django.core.management import call_command
from django.db import connection, transaction
from django.db.backends.signals import connection_created

from components.exceptions import RedisUnavailable, RowNotLoaded
from components.services.rows import RowCache
from tests.chaos.stocks import plan
from tests.chaos.stocks.models import Change, Count, Stock
from tests.chaos.stocks.notes import Notes, now


class Writer:
    """Changes, deletes and re-creates rows, each in a transaction that counts it; invalidates now and then."""

    def __init__(self, folder: Path, random: Random) -> None:
        self._notes, self._random = Notes(folder, "writer"), random
        self._note_invalidations()

    def act(self) -> None:
        [row] = plan.pick(self._random)
        if self._random.random() < 0.15:
            self._try(lambda: Stock.cached.invalidate(row))
        else:
            self._write(row)

    def _write(self, row: int) -> None:
        attempt = secrets.token_hex(8)
        with transaction.atomic():
            count = Count.objects.select_for_update().get(row=row)
            self._notes.write("locked", attempt=attempt, row=row, at=now())
            count.number += 1
            count.save()
            # Registered first, so it comes before what the signals have asked for.
            transaction.on_commit(lambda: self._notes.write("committed", attempt=attempt, row=row, at=now()))
            is_there = Stock.objects.filter(pk=row).exists()
            is_deletion = is_there and self._random.random() < 0.1
            self._change(row, count.number, is_there, is_deletion)
            Change.objects.create(attempt=attempt, row=row, number=count.number, is_deletion=is_deletion)
            if self._random.random() < 0.1:
                time.sleep(self._random.uniform(0, 0.05))
            self._notes.write("committing", attempt=attempt, row=row, at=now())
        if not is_there and row in plan.DELAYS:
            began = now()
            self._try(lambda: Stock.cached.schedule(row, plan.DELAYS[row]))
            self._notes.write("scheduled", row=row, began=began, at=now())

    def _change(self, row: int, number: int, is_there: bool, is_deletion: bool) -> None:
        is_signalled, stocks = self._random.random() < 0.5, Stock.objects.filter(pk=row)
        if is_deletion:
            if is_signalled:
                stocks.delete()
            else:
                stocks._raw_delete("default")
        elif is_signalled:
            Stock(pk=row, number=number).save()
        elif is_there:
            stocks.update(number=number)
        else:
            Stock.objects.bulk_create([Stock(pk=row, number=number)])

    def _note_invalidations(self) -> None:
        """Those that were done; one after a commit that fails is only logged."""
        invalidate: Callable[..., None] = RowCache.invalidate

        def noted(cache: RowCache, *keys: str | int) -> None:
            began = now()
            invalidate(cache, *keys)
            for key in keys:
                self._notes.write("invalidated", row=int(key), began=began, at=now())

        RowCache.invalidate = noted  # type: ignore[method-assign]

    def _try(self, act: Callable[[], object]) -> None:
        """Until it is done."""
        while True:
            try:
                act()
            except RedisUnavailable:
                time.sleep(0.01)
            else:
                return


class Reader:
    """Reads rows in each way that there is."""

    def __init__(self, folder: Path, random: Random) -> None:
        self._notes, self._random = Notes(folder, "reader"), random

    def act(self) -> None:
        rows = plan.pick(self._random, self._random.choice([1, 1, 3, 8]))
        ways = {
            "fresh": lambda: Stock.cached.get_many(rows),
            "one": lambda: {rows[0]: Stock.cached.get(rows[0])},
            "young": lambda: Stock.cached.get_many(rows, max_age=plan.MAX_AGE),
            "stale": lambda: Stock.cached.get_many(rows, stale=True),
            "together": lambda: asyncio.run(self._read_together(rows)),
        }
        way = self._random.choices(list(ways), [8, 8, 1, 2, 1])[0]
        began = now()
        try:
            found = ways[way]()
        except (RedisUnavailable, RowNotLoaded) as error:
            self._notes.write("refused", began=began, at=now(), error=type(error).__name__)
        else:
            asked = rows[:1] if way == "one" else rows
            numbers = {row: found[row].number if found.get(row) else None for row in asked}
            self._notes.write("read", way=way, began=began, at=now(), rows=numbers)

    async def _read_together(self, rows: list[int]) -> dict[int, Any]:
        found = await asyncio.gather(*(Stock.cached.aget_many(rows) for _ in range(3)))
        return dict(self._random.choice(found))


def run_daemon() -> None:
    call_command("cacherows", "--lease", str(plan.LEASE), "--batch", "64", verbosity=0)


def be_slow(random: Random) -> None:
    """From now on, some queries of this process come back late."""

    def slow(execute: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return execute(*arguments)
        finally:
            if random.random() < plan.SLOW:
                longest = 1.5 * plan.LEASE if random.random() < 0.1 else plan.SLOWEST
                time.sleep(random.uniform(0, longest))

    def add(sender: object, connection: Any, **kwargs: Any) -> None:
        connection.execute_wrappers.append(slow)

    connection_created.connect(add, weak=False)
    connection.close()
