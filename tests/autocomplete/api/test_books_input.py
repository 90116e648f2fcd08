"""What is no search and no choice: a clear answer to each, and the state as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.api.throttle import Throttle
from components.services.autocomplete import AddressBook, api
from tests.fixtures.api import Asker, problem
from tests.support.snapshots import snapshot

BOOK = "guild:7"
#: As they come in an address: the text, and what the answer must say of it.
PREFIXES = [
    ("", "is empty"),
    ("%20%C2%A0", "is empty"),
    ("%CC%81", "is empty"),
    ("a" * 201, "has 201 characters; it must have 1 to 200"),
    ("a" * 501, "at most 500 characters"),
    ("a" * 10_000, "at most 500 characters"),
    ("%00", "a control character, at position 0"),
    ("a%00b", "a control character, at position 1"),
    ("a%0A", "a control character, at position 1"),
    ("a%C2%85", "a control character, at position 1"),
    ("%01", "a control character, at position 0"),
]
NAMES = ["nobody", "x" * 500, "{guild:7}", "guild:7 ", "\0", "\n", "\u202e", "*"]


class Anything:
    """Whoever asks may search every book, there or not."""

    def may_search(self, user: str, book: str) -> bool:
        return True


@pytest.fixture(autouse=True)
def before(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[bytes, Any]]:
    """What there is; all of it is there afterwards, and nothing else."""
    monkeypatch.setattr(api, "_throttle", Throttle(rate=1_000, burst=1_000))
    AddressBook(BOOK).add("Jeff", id=1)
    stored = snapshot(redis)
    with override_settings(COMPONENTS={"BOOKS": "tests.autocomplete.api.test_books_input.Anything"}):
        yield stored
    assert snapshot(redis) == stored


@pytest.mark.parametrize(("prefix", "says"), PREFIXES)
def test_what_is_no_prefix_is_refused_with_the_reason(joe: Asker, prefix: str, says: str) -> None:
    told = problem(joe("GET", f"books/{BOOK}?q={prefix}"), 422, "invalid-value")

    assert says in told["detail"]


@pytest.mark.parametrize("prefix", ["%ED%A0%80", "%FF", "%C3", "%F4%90%80%80"])
def test_bytes_that_are_no_text_are_found_nowhere(joe: Asker, prefix: str) -> None:
    answer = joe("GET", f"books/{BOOK}?q={prefix}")

    assert (answer.status_code, answer.json()) == (200, {"entries": [], "is_complete": True})


@pytest.mark.parametrize("name", NAMES)
def test_a_book_that_is_not_there_is_not_found_and_not_made(joe: Asker, name: str) -> None:
    for method, path, content in (("GET", "?q=a", None), ("POST", "/select", {"id": "1"})):
        problem(joe(method, f"books/{quote(name, safe='')}{path}", content), 404, "book-not-found")


@pytest.mark.parametrize("length", [501, 10_000])
def test_a_name_that_no_book_can_have_is_refused(joe: Asker, length: int) -> None:
    told = problem(joe("GET", f"books/{'x' * length}?q=a"), 422, "invalid-value")

    assert f"({length:,} characters): a name is text of 1 to 500 characters" in told["detail"]


@pytest.mark.parametrize(
    "raw",
    [b'{"id": "\\ud800"}', b'{"id": "a\\u0000"}', b'{"id": "a\\u0001"}', b'{"id": "%s"}' % (b"a" * 101)],
)
def test_an_id_that_is_none_is_refused(joe: Asker, raw: bytes) -> None:
    problem(joe("POST", f"books/{BOOK}/select", raw=raw), 422, "invalid-value")


def test_a_choice_of_nobody_or_without_the_right_changes_nothing(joe: Asker, nobody: Asker) -> None:
    with override_settings(COMPONENTS={}):
        problem(joe("GET", f"books/{BOOK}?q=a"), 404, "book-not-found")
        problem(joe("POST", f"books/{BOOK}/select", {"id": "1"}), 404, "book-not-found")
    problem(nobody("POST", f"books/{BOOK}/select", {"id": "1"}), 401, "not-authenticated")
