"""Bad input: each its own clear error, before anything is sent, and the state as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.services.autocomplete import AddressBook
from tests.support.snapshots import snapshot


@pytest.fixture
def book(redis: Redis) -> AddressBook:
    book = AddressBook("guild:7")
    book.add("ann", id=1)
    book.select(1)
    return book


def refuse(redis: Redis, error: type[Exception], say: str, act: Callable[[], object]) -> None:
    before = snapshot(redis)
    with pytest.raises(error, match=say):
        act()
    assert snapshot(redis) == before


@pytest.mark.parametrize("name", ["", "x" * 501, b"guild", None, 7, "\ud800"])
def test_names_are_texts_of_1_to_500_characters(redis: Redis, name: Any) -> None:
    refuse(redis, InvalidName, "book cannot be called", lambda: AddressBook(name))


@pytest.mark.parametrize(
    ("prefix", "why"),
    [
        ("", "is empty"),
        (" \u00a0", "is empty"),
        ("\u0301\u200d", "is empty"),
        ("x" * 10_000, "has 10,000 characters; it must have 1 to 200"),
        ("a\0", "a control character, at position 1"),
        ("a\nb", "a control character, at position 1"),
        ("ab\x85", "a control character, at position 2"),
        ("\ud800", "half of a character, at position 0"),
        (b"a", "is bytes"),
        (None, "is NoneType"),
    ],
)
def test_a_prefix_is_text_that_can_be_seen(book: AddressBook, redis: Redis, prefix: Any, why: str) -> None:
    refuse(redis, InvalidValue, why, lambda: book.complete(prefix))


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("", "has 0 characters"),
        (" ", "is empty"),
        ("\u200b\u0301", "is empty"),
        ("x" * 201, "has 201 characters; it must have 1 to 200"),
        ("a\0", "a control character, at position 1"),
        ("a\1", "a control character, at position 1"),
        ("a\tb", "a control character, at position 1"),
        ("a\udfff", "half of a character, at position 1"),
        (b"ann", "is bytes"),
        (None, "is NoneType"),
    ],
)
def test_a_label_is_text_that_can_be_seen(book: AddressBook, redis: Redis, label: Any, why: str) -> None:
    for act in (
        lambda: book.add(label, id=2),
        lambda: book.rename(1, label),
        lambda: book.load([(2, "bob"), (3, label)]),
    ):
        refuse(redis, InvalidValue, f"label of an entry.*{why}", act)


@pytest.mark.parametrize("entry", ["", "x" * 101, "a\0", "a\1", "a\2", "\ud800", b"1", None, 1.0, True])
def test_an_id_is_short_text_or_a_number(book: AddressBook, redis: Redis, entry: Any) -> None:
    for act in (
        lambda: book.add("bob", id=entry),
        lambda: book.remove(entry),
        lambda: book.rename(entry, "bob"),
        lambda: book.get(entry),
        lambda: book.select(entry),
        lambda: book.load([(entry, "bob")]),
    ):
        refuse(redis, InvalidValue, "The id of an entry", act)


@pytest.mark.parametrize("limit", [0, -1, 1.0, True, "3", 1_001])
def test_limits_are_whole_numbers_from_1_on(book: AddressBook, redis: Redis, limit: Any) -> None:
    for act in (lambda: book.complete("a", limit=limit), lambda: book.top(limit)):
        refuse(redis, InvalidValue, "The limit is", act)


def test_looking_changes_nothing(book: AddressBook, redis: Redis) -> None:
    before = snapshot(redis)

    book.complete("a")
    book.get(1)
    book.top()
    book.info()
    book.count()

    assert snapshot(redis) == before


def test_the_longest_label_of_many_words_is_found(book: AddressBook) -> None:
    for label in ("ﷺ" * 200, "a " * 99 + "ab", "\U0001f468" * 200, "{" * 200):
        book.add(label, id=2)
        entry = book.get(2)
        assert entry is not None
        assert entry.label == label
        assert "2" in [found.id for found in book.complete(label)]
        assert book.count() == 2
