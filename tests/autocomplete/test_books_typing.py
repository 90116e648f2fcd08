"""What is typed on phones finds names that are written otherwise: in books, and among recent contacts."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.autocomplete import AddressBook, AddressBookReader, RecentContacts, keys
from tests.support.names import NOT_OTHERWISE, OTHERWISE


def test_a_name_is_found_however_it_is_typed(redis: Redis) -> None:
    book = AddressBook("guild")
    book.load({label: label for label, _typed in OTHERWISE}.items())

    found = {
        (label, typed): label in [each.id for each in book.complete(typed)] for label, typed in OTHERWISE
    }

    assert [pair for pair, is_found in found.items() if not is_found] == []


@pytest.mark.parametrize(("label", "typed"), NOT_OTHERWISE)
def test_another_name_finds_nobody(redis: Redis, label: str, typed: str) -> None:
    book = AddressBook("guild")
    book.add(label, id=1)

    assert book.complete(typed) == []


def test_recent_contacts_are_found_likewise(redis: Redis) -> None:
    for label, typed in OTHERWISE:
        recent = RecentContacts(f"{label} {typed}")
        recent.touch("1", label=label)
        assert recent.complete(typed), (label, typed)


def test_an_entry_that_is_renamed_or_leaves_takes_all_ways_to_write_it_along(redis: Redis) -> None:
    book = AddressBook("guild")
    book.add("Jean-Paul", id=1)
    book.select(1)

    book.rename(1, "Bob")
    assert book.complete("jeanpaul") == book.complete("paul jean") == []
    book.remove(1)

    assert not redis.exists(keys.BookKeys("guild").entries, keys.BookKeys("guild").selected)


def test_words_in_another_order_come_behind_those_in_order_and_the_best_selected_first(redis: Redis) -> None:
    book = AddressBook("guild")
    book.load([(1, "Ann Smith"), (2, "Smith Anna"), (3, "Anna Smithson"), (4, "Ann Bob Smith"), (5, "Smith")])
    book.select(4)

    found = book.complete("smith ann")

    assert [each.id for each in found] == ["2", "4", "1", "3"]
    assert found.is_whole
    assert not book.complete("smith ann", limit=3).is_whole


def test_a_search_looks_at_a_thousand_candidates_of_the_rarest_word(redis: Redis) -> None:
    """The answer says that it need not be all; who was selected is found beyond them."""
    book = AddressBook("guild")
    book.load((number, f"Ann{number:04} Smith{number:04}") for number in range(1_500))
    book.select(1_400)

    found = book.complete("smith ann", limit=100)

    assert found[0].id == "1400"
    assert len(found) == 100
    assert not found.is_whole
    assert [each.id for each in book.complete("smith ann1499")] == ["1499"]


def test_a_book_of_an_older_release_says_that_it_must_be_loaded_again(redis: Redis) -> None:
    book = AddressBook("guild")
    book.add("Ann", id=1)
    assert not book.info().is_outdated

    redis.hdel(keys.BookKeys("guild").book, "folding")
    book.add("Bob", id=2)
    assert book.info().is_outdated
    [info] = AddressBookReader().page()
    assert info.is_outdated

    book.load([(1, "Ann")], replace=True)
    assert not book.info().is_outdated
