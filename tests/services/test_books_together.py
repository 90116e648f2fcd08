"""Readers while others join, leave, rename and load: nobody is shown twice, or hidden who was there throughout."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from redis import Redis

from components.services.autocomplete import AddressBook

STAYING = [(f"s{number}", f"anna {number:02} smith") for number in range(20)]
MOVING = [f"m{number}" for number in range(10)]
LABELS = ["ann", "anna zz", "smith ann", "an an an", "bob"]


def rename(book: AddressBook, chosen: random.Random) -> None:
    book.rename(chosen.choice(MOVING), chosen.choice(LABELS))


def come_and_go(book: AddressBook, chosen: random.Random) -> None:
    one = chosen.choice(MOVING)
    if not book.remove(one):
        book.add(chosen.choice(LABELS), id=one)


def select(book: AddressBook, chosen: random.Random) -> None:
    book.select(chosen.choice([*MOVING, *dict(STAYING)]))


def load(book: AddressBook, chosen: random.Random) -> None:
    names = [*STAYING, *((one, chosen.choice(LABELS)) for one in MOVING)]
    book.load(names, replace=chosen.random() < 0.5)


@pytest.mark.parametrize("change", [rename, come_and_go, select, load])
def test_readers_see_each_once_and_all_who_stay(
    redis: Redis, change: Callable[[AddressBook, random.Random], None]
) -> None:
    book, stop = AddressBook("guild"), Event()
    book.load([*STAYING, *((one, "ann") for one in MOVING)])

    def keep_changing(seed: int) -> int:
        chosen, changes = random.Random(seed), 0
        while not stop.is_set():
            change(book, chosen)
            changes += 1
        return changes

    with ThreadPoolExecutor(2) as pool:
        changing = pool.submit(keep_changing, 1)
        try:
            for _ in range(300):
                for prefix in ("an", "smi"):
                    found = [entry.id for entry in book.complete(prefix, limit=100)]
                    assert len(found) == len(set(found))
                    assert {one for one in found if one.startswith("s")} == dict(STAYING).keys()
        finally:
            stop.set()
        assert changing.result() > 0


def test_who_is_renamed_is_shown_under_one_name_at_any_time(redis: Redis) -> None:
    """Both names begin alike, so one script finds exactly one of them."""
    book, stop = AddressBook("guild"), Event()
    book.add("ann old", id=1)

    def rename_to_and_fro() -> None:
        while not stop.is_set():
            book.rename(1, "anna new")
            book.rename(1, "ann old")

    with ThreadPoolExecutor(1) as pool:
        renaming = pool.submit(rename_to_and_fro)
        try:
            seen = [[entry.label for entry in book.complete("ann")] for _ in range(500)]
        finally:
            stop.set()
        renaming.result()
    assert {label for (label,) in seen} <= {"ann old", "anna new"}
