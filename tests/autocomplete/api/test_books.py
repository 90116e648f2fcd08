"""Address books and contacts over HTTP: permission, matches, caching and throttling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.api.throttle import Throttle
from components.services.autocomplete import AddressBook, RecentContacts, api
from tests.fixtures.api import Asker, problem
from tests.support.snapshots import snapshot

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


@pytest.mark.parametrize(
    ("prefix", "found"),
    [("je", ["Jeff", "Jenny", "Ann Jensen"]), ("ELO", ["Élodie"]), ("%E6%9D%8E", ["李小龙"]), ("x", [])],
)
def test_names_are_found_by_their_words(joe: Asker, prefix: str, found: list[str]) -> None:
    answer = joe("GET", f"books/{BOOK}?q={prefix}")

    assert labels(answer) == found
    assert answer.json()["is_complete"] is True


def test_the_answer_says_if_there_are_more_names(joe: Asker) -> None:
    answer = joe("GET", f"books/{BOOK}?q=je&limit=2")

    assert len(labels(answer)) == 2
    assert answer.json()["is_complete"] is False


def test_a_selected_name_comes_first(joe: Asker) -> None:
    assert joe("POST", f"books/{BOOK}/select", {"id": "2"}).status_code == 204

    assert labels(joe("GET", f"books/{BOOK}?q=je"))[0] == "Jenny"


def test_a_book_that_may_not_be_searched_looks_like_one_that_does_not_exist(
    joe: Asker, jill: Asker, nobody: Asker
) -> None:
    refused = problem(jill("GET", f"books/{BOOK}?q=je"), 404, "book-not-found")
    missing = problem(joe("GET", "books/guild:8?q=je"), 404, "book-not-found")

    assert refused == missing
    problem(jill("POST", f"books/{BOOK}/select", {"id": "2"}), 404, "book-not-found")
    problem(nobody("GET", f"books/{BOOK}?q=je"), 401, "not-authenticated")


# Refused requests, which change nothing


class Anything:
    """Everybody may search every book, whether it exists or not."""

    def may_search(self, user: str, book: str) -> bool:
        return True


@pytest.fixture
def unchanged(redis: Redis, book: AddressBook) -> Iterator[None]:
    """Let everybody search every book; at the end, Redis holds what it held before."""
    stored = snapshot(redis)
    with override_settings(COMPONENTS={"BOOKS": "tests.autocomplete.api.test_books.Anything"}):
        yield
    assert snapshot(redis) == stored


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    "query",
    ["", "q=%20%C2%A0", "q=" + "a" * 201, "q=a%00b", "q=a&limit=0", "q=a&limit=101", "q=a&prefix=b"],
)
def test_an_invalid_search_is_refused(joe: Asker, query: str) -> None:
    problem(joe("GET", f"books/{BOOK}?{query}"), 422, "invalid-value")


@pytest.mark.usefixtures("unchanged")
def test_bytes_that_are_not_text_match_nothing(joe: Asker) -> None:
    answer = joe("GET", f"books/{BOOK}?q=%ED%A0%80")

    assert (answer.status_code, answer.json()) == (200, {"entries": [], "is_complete": True})


@pytest.mark.usefixtures("unchanged")
def test_an_invalid_choice_or_a_book_that_does_not_exist_is_refused(joe: Asker) -> None:
    for raw in (b"{}", b'{"id": 1}', b'{"id": "a\\u0000"}', b'{"id": "%s"}' % (b"a" * 101)):
        problem(joe("POST", f"books/{BOOK}/select", raw=raw), 422, "invalid-value")
    for name in ("nobody", "{guild:7}", "\0"):
        problem(joe("POST", f"books/{quote(name)}/select", {"id": "1"}), 404, "book-not-found")


# Caches and throttles


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


def test_a_person_who_asks_too_fast_must_wait_and_others_need_not(
    joe: Asker, stranger: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "_throttle", Throttle(rate=0.1, burst=3))
    for _ in range(3):
        labels(joe("GET", f"books/{BOOK}?q=je"))

    refused = joe("GET", f"books/{BOOK}?q=je")

    problem(refused, 429, "too-fast")
    assert 8 <= int(refused["Retry-After"]) <= 10
    problem(joe("POST", f"books/{BOOK}/select", {"id": "2"}), 429, "too-fast")
    labels(stranger("GET", f"books/{BOOK}?q=je"))


# Contacts


def test_contacts_are_the_callers_own_with_the_latest_first(joe: Asker, jill: Asker) -> None:
    for id, label in (("x5", "Bruce"), ("x9", "Ann"), ("x5", "Bruce")):
        RecentContacts(joe.id).touch(id, label=label)

    told = joe("GET", "contacts")

    assert [(each["id"], each["label"]) for each in told.json()["contacts"]] == [
        ("x5", "Bruce"),
        ("x9", "Ann"),
    ]
    assert told.json()["contacts"][0]["touched_at"].endswith("Z")
    assert jill("GET", "contacts").json() == {"contacts": []}


def test_contacts_are_asked_for_again_each_time(joe: Asker) -> None:
    first = joe("GET", "contacts")
    again = joe("GET", "contacts", If_None_Match=first["ETag"])
    RecentContacts(joe.id).touch("5", label="Bruce")
    changed = joe("GET", "contacts", If_None_Match=first["ETag"])

    assert first["Cache-Control"] == "private, max-age=0"
    assert again.status_code == 304
    assert changed.status_code == 200
