"""Address books and contacts over HTTP: permission, matches, caching and throttling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.api.throttle import Throttle
from components.services.autocomplete import AddressBook, RecentContacts, api
from tests.fixtures.api import Asker, problem

BOOK = "guild:7"


class Keepers:
    """Everybody but jill may search the guild's book."""

    def may_search(self, user: str, book: str) -> bool:
        from django.contrib.auth.models import User

        return book == BOOK and User.objects.get(pk=user).username != "jill"


@pytest.fixture(autouse=True)
def book(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> Iterator[AddressBook]:
    monkeypatch.setattr(api, "_throttle", Throttle(rate=10, burst=30))
    book = AddressBook(BOOK)
    for id, label in (("1", "Jeff"), ("2", "Jenny"), ("3", "Ann Jensen"), ("4", "Élodie"), ("5", "李小龙")):
        book.add(label, id=id)
    with override_settings(COMPONENTS={"BOOKS": "tests.autocomplete.api.test_books.Keepers"}):
        yield book


def labels(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [each["label"] for each in answer.json()["entries"]]


def test_names_are_found_by_their_words_and_a_selected_one_comes_first(joe: Asker) -> None:
    for prefix, found in (("je", ["Jeff", "Jenny", "Ann Jensen"]), ("%E6%9D%8E", ["李小龙"]), ("x", [])):
        answer = joe("GET", f"books/{BOOK}?q={prefix}")
        assert (labels(answer), answer.json()["is_complete"]) == (found, True)
    assert joe("POST", f"books/{BOOK}/select", {"id": "2"}).status_code == 204

    answer = joe("GET", f"books/{BOOK}?q=je&limit=2")

    assert (labels(answer), answer.json()["is_complete"]) == (["Jenny", "Jeff"], False)


def test_a_book_that_may_not_be_searched_looks_like_one_that_does_not_exist(joe: Asker, jill: Asker) -> None:
    refused = problem(jill("GET", f"books/{BOOK}?q=je"), 404, "book-not-found")
    missing = problem(joe("GET", "books/guild:8?q=je"), 404, "book-not-found")

    assert refused == missing
    problem(jill("POST", f"books/{BOOK}/select", {"id": "2"}), 404, "book-not-found")


def test_a_browser_that_asks_again_gets_304_until_something_changes(joe: Asker, book: AddressBook) -> None:
    first = joe("GET", f"books/{BOOK}?q=je")
    again = joe("GET", f"books/{BOOK}?q=je", If_None_Match=first["ETag"])
    book.add("Jeremy", id="6")
    changed = joe("GET", f"books/{BOOK}?q=je", If_None_Match=first["ETag"])

    assert first["Cache-Control"] == "private, max-age=15"
    assert {"Authorization", "Cookie"} <= set(first["Vary"].split(", "))
    assert (again.status_code, again.content) == (304, b"")
    assert again["Cache-Control"] == first["Cache-Control"]
    assert again["ETag"] == first["ETag"]
    assert "Jeremy" in labels(changed)


def test_contacts_are_the_callers_own_with_the_latest_first_and_asked_for_again_each_time(
    joe: Asker, jill: Asker
) -> None:
    first = joe("GET", "contacts")
    assert first["Cache-Control"] == "private, max-age=0"
    assert joe("GET", "contacts", If_None_Match=first["ETag"]).status_code == 304
    for id, label in (("x5", "Bruce"), ("x9", "Ann"), ("x5", "Bruce")):
        RecentContacts(joe.id).touch(id, label=label)

    told = joe("GET", "contacts", If_None_Match=first["ETag"]).json()["contacts"]

    assert [(each["id"], each["label"]) for each in told] == [("x5", "Bruce"), ("x9", "Ann")]
    assert told[0]["touched_at"].endswith("Z")
    assert jill("GET", "contacts").json() == {"contacts": []}
