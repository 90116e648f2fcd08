"""
Cached rows on PostgreSQL: no read is older than it may be, than an earlier read, or than what was invalidated.

Half of the writes are told to the cache by signals, half are not: update(), which it must notice by itself.
"""

import heapq
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.backends.signals import connection_created

from components.exceptions import RedisUnavailable, RowNotLoaded
from components.kit.leases import clock
from components.services.rows import LEASE
from tests.chaos.models import DELAY, Stock
from tests.chaos.players import Notes, Player, Role, insist, note

ROWS = range(1, 31)
#: By row: seconds between two loads. The others are never put on the schedule.
DELAYS = {row: (0.1, 0.3, 0.6)[row % 3] for row in range(1, 21)}
MAX_AGE = 0.2  # seconds, where a reader asks for that


def prepare(folder: Path) -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Stock)
    Stock.objects.bulk_create(Stock(pk=row, number=0) for row in ROWS)
    for row, delay in DELAYS.items():
        Stock.cached.schedule(row, delay)
    connections.close_all()


def be_slow(player: Player) -> None:
    """From now on, some queries of this process come back late, with what was so when they were asked."""

    def slow(execute: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return execute(*arguments)
        finally:
            if player.random.random() < 0.1:
                player.nap(1.5 if player.random.random() < 0.1 else 0.3)

    def add(sender: object, connection: Any, **kwargs: Any) -> None:
        connection.execute_wrappers.append(slow)

    connection_created.connect(add, weak=False)


def pick(player: Player, number: int = 1) -> list[int]:
    """Return so many rows, the first ones far more often than the last."""
    return list(dict.fromkeys(ROWS[int(len(ROWS) * player.random.random() ** 3)] for _ in range(number)))


def write(player: Player) -> None:
    while not player.is_over:
        [row] = pick(player)
        if player.random.random() < 0.2:
            began = clock()
            insist(lambda row=row: Stock.cached.invalidate(row))
            note("invalidated", row=row, began=began)
        with transaction.atomic():
            stock = Stock.objects.select_for_update().get(pk=row)
            # Whoever wrote before has committed.
            note("committed", row=row, number=stock.number)
            stock.number += 1
            if player.random.random() < 0.5:
                stock.save()
            else:
                Stock.objects.filter(pk=row).update(number=stock.number)
            note("committing", row=row, number=stock.number)
        note("committed", row=row, number=stock.number)
        player.nap(0.02)


def view(player: Player) -> None:
    be_slow(player)
    while not player.is_over:
        rows = pick(player, player.random.choice([1, 1, 3, 8]))
        options = player.random.choices([{}, {"max_age": MAX_AGE}, {"stale": True}], [8, 1, 2])[0]
        began = clock()
        try:
            found = Stock.cached.get_many(rows, **options)
        except (RedisUnavailable, RowNotLoaded):
            continue
        numbers = {row: found[row].number for row in rows if found.get(row)}
        note(
            "viewed",
            began=began,
            at=clock(),
            way=[*options, "fresh"][0],
            numbers=numbers,
            asked=len(rows),
        )
        player.nap(0.02)


def load(player: Player) -> None:
    be_slow(player)
    call_command("cacherows", "--lease", "1", "--batch", "64", verbosity=0)


ROLES = {"writer": Role(2, write), "viewer": Role(3, view), "loader": Role(2, load, is_daemon=True)}


def is_settled() -> bool:
    there = dict(Stock.objects.values_list("pk", "number"))
    return there == {pk: row.number for pk, row in Stock.cached.get_many(ROWS).items() if row}


class History:
    """The committed writes of a row by their numbers: from when on each may be read, and when it surely was there."""

    def __init__(self, notes: Notes, row: int) -> None:
        self.begun, self.done = (
            defaultdict[int, float](lambda: math.inf),
            defaultdict[int, float](lambda: math.inf),
        )
        for kind, instants in (("committing", self.begun), ("committed", self.done)):
            for each in notes[kind]:
                if each["row"] == row:
                    instants[each["number"]] = min(instants[each["number"]], each["at"])
        self.begun[0] = self.done[0] = -math.inf
        self._done = [self.done[number] for number in range(max(self.done) + 1)]

    def committed(self, at: float) -> int:
        """Return the number of the last write that surely was there at that time."""
        return bisect_right(self._done, at) - 1


def judge(notes: Notes) -> Iterator[str]:
    if len(notes["viewed"]) < 50 or len(notes["committing"]) < 40:
        yield f"{len(notes['viewed'])} reads and {len(notes['committing'])} writes only: nothing was tested."
    for row in ROWS:
        told_at = sorted((each["at"], each["began"]) for each in notes["invalidated"] if each["row"] == row)
        views = sorted(
            (each["began"], each["at"], each["way"], each["numbers"][str(row)])
            for each in notes["viewed"]
            if str(row) in each["numbers"]
        )
        yield from judge_row(row, History(notes, row), views, told_at)
    if any(len(each["numbers"]) != each["asked"] for each in notes["viewed"] if each["way"] != "stale"):
        yield "A row that is there was not found."
    if not is_settled():
        yield "What is read has not come to be what is there."


def judge_row(
    row: int, history: History, views: list[Any], invalidated: list[tuple[float, float]]
) -> Iterator[str]:
    ended: list[tuple[float, int]] = []  # of reads: when, and what was seen
    seen = told = 0
    for began, at, way, number in views:
        while ended and ended[0][0] < began:
            seen = max(seen, heapq.heappop(ended)[1])
        while invalidated and invalidated[0][0] < began:
            told = max(told, history.committed(invalidated.pop(0)[1]))
        aged = history.committed(began - oldest(row, way))
        heapq.heappush(ended, (at, number))
        if history.begun[number] >= at:
            yield f"The row {row} was read as {number}, which nobody had committed."
        for least, why in (
            (seen, "had been seen"),
            (told, "had been told"),
            (aged, "was committed too long ago"),
        ):
            if number < least:
                yield f"The row {row} was read as {number} ({way}), though {least} {why}."


def oldest(row: int, way: str) -> float:
    """Return the seconds for which a row may have been replaced when it is read that way."""
    if way == "stale":
        return math.inf
    if way == "max_age":
        return MAX_AGE
    return DELAYS[row] + LEASE if row in DELAYS else DELAY


def figures(notes: Notes) -> str:
    reads, writes, told = (len(notes[kind]) for kind in ("viewed", "committing", "invalidated"))
    return f"{reads} reads, {writes} writes, {told} invalidations"
