"""Bad input: each its own clear error, before anything is sent, and the state as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.services.autocomplete import AddressBook, Entry
from tests.support.snapshots import snapshot


@pytest.fixture
def book(redis: Redis) -> AddressBook:
    book = AddressBook("guild:7")
    book.add("ann", id=1)
    book.select(1)
    return book


def refuse(redis: Redis, error: type[Exception], *acts: Callable[[], object]) -> None:
    """Assert that each of these raises *error*, and changes nothing."""
    before = snapshot(redis)
    for act in acts:
        with pytest.raises(error):
            act()
    assert snapshot(redis) == before


@pytest.mark.parametrize("name", ["", "x" * 501, b"guild", None, 7, "\ud800"])
def test_names_are_texts_of_1_to_500_characters(redis: Redis, name: Any) -> None:
    refuse(redis, InvalidName, lambda: AddressBook(name))


@pytest.mark.parametrize(
    "prefix",
    ["", " \u00a0", "\u0301\u200d", "x" * 201, "a\0", "a\nb", "ab\x85", "\ud800", b"a", None],
)
def test_a_prefix_is_text_that_can_be_seen(book: AddressBook, redis: Redis, prefix: Any) -> None:
    refuse(redis, InvalidValue, lambda: book.complete(prefix), lambda: book.called(prefix))


@pytest.mark.parametrize(
    "label", ["", " ", "\u200b\u0301", "x" * 201, "a\0", "a\1", "a\tb", "a\udfff", b"ann", None]
)
def test_a_label_is_text_that_can_be_seen(book: AddressBook, redis: Redis, label: Any) -> None:
    refuse(
        redis,
        InvalidValue,
        lambda: book.add(label, id=2),
        lambda: book.rename(1, label),
        lambda: book.load([(2, "bob"), (3, label)]),
    )


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "x" * 101,
        "a\0",
        "a\1",
        "a\2",
        "\ud800",
        b"1",
        None,
        1.0,
        True,
        10**99,
        -(10**99),
        pytest.param(10**5_000, id="huge"),
    ],
)
def test_an_id_is_short_text_or_a_number(book: AddressBook, redis: Redis, entry: Any) -> None:
    refuse(
        redis,
        InvalidValue,
        lambda: book.add("bob", id=entry),
        lambda: book.remove(entry),
        lambda: book.rename(entry, "bob"),
        lambda: book.get(entry),
        lambda: book.select(entry),
        lambda: book.load([(entry, "bob")]),
    )


@pytest.mark.parametrize("limit", [0, -1, 1.0, True, "3", 1_001])
def test_limits_are_whole_numbers_from_1_on(book: AddressBook, redis: Redis, limit: Any) -> None:
    refuse(redis, InvalidValue, lambda: book.complete("a", limit=limit), lambda: book.top(limit))


def test_the_longest_that_is_allowed_is_found(book: AddressBook, redis: Redis) -> None:
    """Of everything: names, ids, labels, prefixes, limits."""
    AddressBook("x" * 500).add("x" * 200, id=10**99 - 1)
    assert AddressBook("x" * 500).complete("x" * 200, limit=100) == [Entry("9" * 99, "x" * 200)]
    refuse(redis, InvalidValue, lambda: book.complete("a", limit=101))
    assert book.add("bob", id="x" * 100)
    assert len(book.top(1_000)) == 1


def test_the_longest_label_of_many_words_is_found(book: AddressBook) -> None:
    for label in ("ﷺ" * 200, "a " * 99 + "ab", "\U0001f468" * 200, "{" * 200):
        book.add(label, id=2)
        entry = book.get(2)
        assert entry is not None
        assert entry.label == label
        assert "2" in [found.id for found in book.complete(label)]
        assert book.count() == 2
