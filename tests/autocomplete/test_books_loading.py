"""load(): many at once, and a whole book beside the old one, which readers never see half of."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from redis import Redis

from components.exceptions import InvalidValue, LoadSuperseded
from components.services.autocomplete import AddressBook, AddressBookReader, Completions, Entry, keys
from tests.support.snapshots import snapshot

NAMES = [(number, f"name {number:04}") for number in range(2_100)]


@pytest.fixture
def book(redis: Redis) -> AddressBook:
    return AddressBook("guild:7")


def labels(found: Completions) -> list[str]:
    return [entry.label for entry in found]


def test_many_are_added_and_progress_is_reported(book: AddressBook) -> None:
    book.add("before", id="x")
    told: list[int] = []

    assert book.load(NAMES, progress=told.append) == 2_100

    assert told == [1_000, 2_100]
    assert (book.count(), labels(book.complete("2099"))) == (2_101, ["name 2099"])
    assert labels(book.complete("before")) == ["before"]


def test_the_last_label_of_an_id_counts(book: AddressBook) -> None:
    book.load([(1, "zoe"), (2, "bob"), (1, "ann")])

    assert (labels(book.complete("a")), book.complete("z"), book.count()) == (["ann"], [], 2)


def test_a_replaced_book_has_what_was_loaded_and_nothing_else(book: AddressBook, redis: Redis) -> None:
    book.load(NAMES)
    book.select(2_000)
    book.select(7)

    book.load([(7, "new seven"), (8, "new eight")], replace=True)

    assert [labels(book.complete(prefix)) for prefix in ("name", "new")] == [[], ["new seven", "new eight"]]
    assert ([ranked.id for ranked in book.top()], book.count()) == (["7"], 2)
    assert book.info().selected == 1
    assert redis.ttl(keys.BookKeys(book.name).entries) == redis.ttl(keys.BookKeys(book.name).rows) == -1
    assert not redis.exists(keys.BookKeys(book.name).loading, keys.BookKeys(book.name).changed)


def test_the_old_answers_until_the_new_is_whole(book: AddressBook) -> None:
    book.load([(1, "old one"), (2, "old two")])
    seen: list[object] = []

    def entries() -> Iterator[tuple[int, str]]:
        for number, _label in NAMES:
            if number % 500 == 0:
                seen.append((labels(book.complete("old")), book.complete("new"), book.count()))
                info = book.info()
                assert info.loading is not None
            yield number, f"new {number:04}"

    book.load(entries(), replace=True)

    assert seen == [(["old one", "old two"], [], 2)] * 5
    assert (book.complete("old"), book.count(), book.info().loading) == ([], 2_100, None)


def test_a_second_load_ends_the_first(book: AddressBook) -> None:
    def first() -> Iterator[tuple[int, str]]:
        yield from NAMES
        book.load([(1, "second")], replace=True)
        yield from NAMES

    with pytest.raises(LoadSuperseded, match="Another load of the address book 'guild:7'"):
        book.load(first(), replace=True)

    assert (labels(book.complete("s")), book.count()) == (["second"], 1)


def test_an_interrupted_load_expires_and_does_no_harm(book: AddressBook, redis: Redis) -> None:
    book.load([(1, "ann")])
    before = snapshot(redis)

    with pytest.raises(InvalidValue, match="The label"):
        book.load([*NAMES, (1, "")], replace=True)

    left = {key: value for key, value in snapshot(redis).items() if before.get(key) != value}
    assert left
    assert all(expires for _value, expires in left.values())
    assert labels(book.complete("a")) == ["ann"]


def test_a_load_that_ends_with_an_error_leaves_nothing_on_its_way(book: AddressBook) -> None:
    async def interrupted() -> None:
        with pytest.raises(InvalidValue, match="The label"):
            await book.aload([*NAMES, (1, "")])
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    before = threading.enumerate()
    with pytest.raises(InvalidValue, match="The label"):
        book.load([*NAMES, (1, "")])
    assert book.count() == 1_000
    assert [thread for thread in threading.enumerate() if thread not in before] == []
    book.erase()

    asyncio.run(interrupted())
    assert book.count() == 2_000


def test_entries_are_asked_for_by_the_thread_that_loads(book: AddressBook) -> None:
    def entries() -> Iterator[tuple[int, str]]:
        for number, label in NAMES:
            asked.add(threading.get_ident())
            yield number, label

    asked: set[int] = set()
    book.load(entries())

    assert asked == {threading.get_ident()}


def test_the_twins_do_the_same(book: AddressBook) -> None:
    async def use() -> None:
        assert await book.aload([(1, "ann"), (2, "anna")], replace=True) == 2
        assert await book.aadd("bob", id=3)
        assert await book.arename(3, "annb")
        assert await book.aselect(3)
        assert labels(await book.acomplete("ann")) == ["annb", "ann", "anna"]
        assert await book.acalled("Ann") == [Entry("1", "ann")]
        assert await book.aremove(1)
        assert (await book.aget(1), await book.acount()) == (None, 2)
        assert [ranked.id for ranked in await book.atop()] == ["3"]
        assert (await book.ainfo()).count == 2
        await book.aerase()

    asyncio.run(use())
    assert AddressBookReader().count() == 0


def test_all_books_are_listed_by_page(redis: Redis) -> None:
    for number in range(7):
        AddressBook(f"guild:{number}").add("ann smith", id=1)
    reader = AddressBookReader()

    assert [info.name for info in reader.page(offset=2, limit=3)] == ["guild:2", "guild:3", "guild:4"]
    assert (reader.count(), reader.page(offset=7)) == (7, [])
    AddressBook("guild").add("ann smith", id=1)
    assert [info.name for info in reader.page("guild:", offset=5)] == ["guild:5", "guild:6"]
    assert (reader.count("guild:"), reader.count(), reader.count("é")) == (7, 8, 0)
    AddressBook("guild").erase()
    found = reader.find("guild:3")
    assert found is not None
    assert (found.count, found.members, found.selected, found.bytes > 100) == (1, 2, 0, True)
    assert (found.loaded_at, found.loading) == (None, None)
    assert reader.find("guild:8") is reader.find("") is None

    AddressBook("guild:3").erase()
    assert (reader.count(), reader.find("guild:3")) == (6, None)
    infos = reader.look(["guild:3", "guild:4"])
    assert [info and info.name for info in infos] == [None, "guild:4"]
    assert AddressBook("guild:2").complete("smi") == [Entry("1", "ann smith")]
