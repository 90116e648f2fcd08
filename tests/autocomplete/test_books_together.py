"""Readers while other processes change the book: nobody is shown twice, or hidden who was there throughout."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.autocomplete import AddressBook, Completions
from tests.support.book_changers import LABELS, STAYING, Crew
from tests.support.books import assert_whole


def check(found: Completions, *, staying: set[str]) -> None:
    ids = [entry.id for entry in found]
    assert len(ids) == len(set(ids))
    assert {one for one in ids if one.startswith("s")} == staying
    for entry in found:
        assert entry.label == STAYING[entry.id] if entry.id in STAYING else entry.label in LABELS


@pytest.mark.slow
@pytest.mark.parametrize("redis_mode", ["plain"], indirect=True)
def test_readers_see_each_once_and_all_who_stay_whatever_other_processes_do(
    redis: Redis, server: EmbeddedServer
) -> None:
    """More than the book keeps the best of begin with "an" and "smi"; loads of it end each other."""
    book = AddressBook("guild")
    book.load(STAYING.items())
    for one in STAYING:
        book.select(one)

    with Crew(server.url, book.name, processes=3, changes=30) as crew:
        version, reads = 0, 0
        while crew.is_at_work or not reads:
            for prefix in ("an", "smi"):
                found = book.complete(prefix, limit=100)
                check(found, staying=set(STAYING))
                assert found.version >= version
                version = found.version
            check(book.complete("anna 07"), staying={"s7"})
            reads += 1
        done = crew.done()

    assert min(done[what] for what in ("add", "remove", "rename", "select", "load", "replace")) > 0
    assert book.info().loading is None
    assert_whole(redis, book.name)


def test_a_renamed_person_has_one_name_at_any_time(redis: Redis) -> None:
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
