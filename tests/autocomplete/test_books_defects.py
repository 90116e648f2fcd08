"""Defects that reading the scripts as a stranger brought to light, each in the way that it was found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from components.exceptions import BookNotFound, InvalidValue
from components.kit.at_once import at_once
from components.kit.client import AnyRedis
from components.services.autocomplete import (
    AddressBook,
    AddressBookReader,
    Completions,
    RankedEntry,
    keys,
)
from components.services.autocomplete.loading import Load, row
from tests.support.books import assert_whole
from tests.support.snapshots import snapshot

LONGEST = "\ufdfa" * 200  # one letter of Arabic that stands for a sentence of eighteen


@pytest.fixture
def book(redis: Redis) -> AddressBook:
    return AddressBook("guild:7")


def ids(found: Completions | list[RankedEntry]) -> list[str]:
    return [entry.id for entry in found]


def test_nothing_is_stored_or_listed_for_a_missing_book(book: AddressBook, redis: Redis) -> None:
    assert not book.remove(1)
    assert not book.rename(1, "ann")
    with pytest.raises(BookNotFound):
        book.select(1)
    with pytest.raises(BookNotFound):
        book.complete("a")

    assert snapshot(redis) == {}
    assert AddressBookReader().count() == 0


def test_a_selection_during_a_load_that_does_not_end_leaves_nothing_for_ever(
    book: AddressBook, redis: Redis
) -> None:
    book.add("ann", id=1)

    def entries() -> Iterator[tuple[int, str]]:
        yield from ((number, f"name {number}") for number in range(1_000))  # a first batch is sent
        yield 1_000, "bob"
        book.select(1)
        yield 1_001, ""

    with pytest.raises(InvalidValue):
        book.load(entries(), replace=True)

    assert redis.exists(keys.BookKeys(book.name).next_selected)
    assert redis.ttl(keys.BookKeys(book.name).next_selected) > 0


def test_a_load_that_begins_while_another_ends_keeps_the_ranks_of_whom_it_has(redis: Redis) -> None:
    """Who is not in the first load leaves; but when his rank is to be forgotten, he is in the second already."""

    second = Load("guild", replaces=True)

    class Overtaken(AddressBook):
        """Between the end of a load and what follows it, a second begins and loads its first batch."""

        async def _ranked(self, client: AnyRedis, first: int, last: int) -> list[bytes]:
            if not redis.exists(keys.BookKeys("guild").loading):
                await second.begin(client)
                rows = [row(one, label, words=True) for one, label in ((1, "ann"), (2, "anna"))]
                await second.write(client, rows)
            return await super()._ranked(client, first, last)

    book = AddressBook("guild")
    book.load([(1, "ann"), (2, "anna")])
    book.select(2)
    Overtaken("guild").load([(1, "ann")], replace=True)

    at_once(second.finish(redis))

    assert ids(book.complete("a")) == ["2", "1"]
    assert_whole(redis, "guild")


def test_the_best_that_are_left_stay_when_too_many_are_selected_to_find_the_best_anew(
    book: AddressBook,
) -> None:
    book.load((number, f"a{number:04}") for number in range(1_200))
    for number in range(1_199):
        book.select(number)
    for number in range(1_071, 1_140):
        book.remove(number)

    book.select(1_199)

    assert ids(book.complete("a")) == ids(book.top())


def test_many_of_one_long_name_cost_no_more_than_of_a_short_one(book: AddressBook, redis: Redis) -> None:
    """A selection looks at the prefixes of an entry that many of the selected match: here at all of them."""
    label = "a" * 190
    book.load((number, label) for number in range(80))
    for number in range(80):
        book.select(number)

    assert {len(prefix) for prefix in redis.hkeys(keys.BookKeys(book.name).tops)} == set(range(1, 25))
    for prefix in (label[:3], label[:24], label[:25], label):
        assert ids(book.complete(prefix, limit=3)) == ["79", "78", "77"]
    for number in range(80):
        book.remove(number)
    assert not redis.exists(keys.BookKeys(book.name).tops, keys.BookKeys(book.name).selected)


def test_the_longest_name_is_no_longer_in_the_index_than_others(book: AddressBook, redis: Redis) -> None:
    book.add(LONGEST, id=1)

    assert max(map(len, redis.zrange(keys.BookKeys(book.name).entries, 0, -1))) <= 2 * 200 + 2
    assert [ids(book.complete(prefix)) for prefix in (LONGEST[0], LONGEST)] == [["1"], ["1"]]
