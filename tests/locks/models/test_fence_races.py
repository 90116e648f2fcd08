"""
Writers at the same time, each with a connection of its own: on a real PostgreSQL and on a file of SQLite.

What the older one may do is held up at its worst moment: the newer has written, and has not committed yet.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.models import F

from components.exceptions import StaleFence
from tests.db.models import Box, Shelf
from tests.fixtures.databases import alone
from tests.support.waiting import eventually

WRITERS = 4
WRITES = 15


def rows(arena: str) -> Any:
    return Box.objects.using(arena)


def put(arena: str, *names: str) -> None:
    shelf = Shelf.objects.using(arena).create(name="top")
    for name in names:
        rows(arena).create(name=name, shelf=shelf)


def facts(arena: str) -> list[tuple[str, int, int]]:
    return list(rows(arena).order_by("name").values_list("name", "content", "fence"))


def bulk_update(boxes: Any) -> None:
    changed = Box.objects.using(boxes.db).get(name="a")
    changed.content = 1
    boxes.bulk_update([changed], ["content"])


def save(boxes: Any) -> None:
    instance = Box.objects.using(boxes.db).get(name="a")
    instance.content = 1
    instance.save(fence=1)


WRITE: dict[str, Callable[[Any], object]] = {
    "update": lambda boxes: boxes.filter(name="a").update(content=1),
    "update by another table": lambda boxes: boxes.filter(shelf__name="top").update(content=1),
    "update by a subquery": lambda boxes: boxes.filter(pk__in=Box.objects.using(boxes.db)).update(content=1),
    "update of all": lambda boxes: boxes.update(content=1),
    "bulk_update": bulk_update,
    "delete": lambda boxes: boxes.filter(name="a").delete(),
    "delete by another table": lambda boxes: boxes.filter(shelf__name="top").delete(),
    "save": save,
}


def somebody_waits(arena: str) -> bool:
    with connections[arena].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def held_up(
    arena: str, older: Callable[[], Any], newer: Callable[[], object], *, gives_up: bool = False
) -> Any:
    """What *older* comes to, which runs into the transaction of *newer* before that is committed, or given up."""
    begun = Event()

    def begin() -> Any:
        begun.set()
        return older()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic(using=arena):
            newer()
            result = pool.submit(alone(begin))
            assert begun.wait(20)
            if connections[arena].vendor == "postgresql":
                assert eventually(lambda: somebody_waits(arena))
            transaction.set_rollback(gives_up, using=arena)
        return result.result(60)


@pytest.mark.parametrize("how", WRITE)
def test_an_older_writer_that_waited_for_a_newer_one_is_refused(arena: str, how: str) -> None:
    put(arena, "a", "b")

    def newer() -> None:
        rows(arena).fenced(2).filter(name="a").update(content=2)

    with pytest.raises(StaleFence):
        held_up(arena, lambda: WRITE[how](rows(arena).fenced(1)), newer)

    assert facts(arena) == [("a", 2, 2), ("b", 0, 0)]


@pytest.mark.parametrize(
    ("waits", "first", "gives_up", "written"),
    [
        (2, lambda rows: rows.fenced(1).update(content=1), False, [("a", 2, 2)]),
        (1, lambda rows: rows.fenced(2).update(content=2), True, [("a", 1, 1)]),
        (1, lambda rows: rows.fenced(2).delete(), False, []),
    ],
    ids=["newer", "older, and the newer gave up", "older, and the newer deleted"],
)
def test_a_writer_that_waited_for_another_is_accepted(
    arena: str, waits: int, first: Callable[[Any], Any], gives_up: bool, written: list[tuple[str, int, int]]
) -> None:
    put(arena, "a")

    count = held_up(
        arena,
        lambda: rows(arena).fenced(waits).update(content=waits),
        lambda: first(rows(arena)),
        gives_up=gives_up,
    )

    assert count == len(written)
    assert facts(arena) == written


def test_among_many_writers_no_accepted_write_has_a_lower_fence_than_one_before(arena: str) -> None:
    """Each accepted write counts the row up, and notes the count that it made with its fence."""
    put(arena, "a")
    barrier = Barrier(WRITERS)
    accepted: list[tuple[int, int]] = []
    refused: list[int] = []

    def write(number: int) -> None:
        dice = random.Random(number)
        barrier.wait(20)
        for turn in range(WRITES):
            fence = turn + dice.randint(1, 8)
            try:
                with transaction.atomic(using=arena):
                    rows(arena).fenced(fence).filter(shelf__name="top").update(content=F("content") + 1)
                    made = rows(arena).get().content
            except StaleFence:
                refused.append(fence)
            else:
                accepted.append((made, fence))

    connections[arena].close()
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda number: alone(lambda: write(number))(), range(WRITERS)))

    accepted.sort()
    fences = [fence for _, fence in accepted]
    assert [count for count, _ in accepted] == list(range(1, len(accepted) + 1))
    assert fences == sorted(fences)
    assert len(accepted) + len(refused) == WRITERS * WRITES
    assert facts(arena) == [("a", len(accepted), fences[-1])]
