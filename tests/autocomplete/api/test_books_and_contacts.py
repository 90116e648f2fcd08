"""
Address books over HTTP: permission, matches, caching and throttling. Writing to somebody makes them the latest
contact, by the API and by the page. No message depends on it.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from redis import Redis

from components.people import Users
from components.services.autocomplete import AddressBook, RecentContacts, keys
from components.services.chat import Chat, Inbox
from tests.fixtures.api import Asker, problem, user

pytestmark = pytest.mark.usefixtures("redis")

BOOK = "friends"


class Friends(Users):
    """Nobody may write to eve, and everybody has the book of friends."""

    def refused(self, by: str, ids: Iterable[str]) -> set[str]:
        return {str(each.pk) for each in User.objects.filter(username="eve", pk__in=ids)}

    def book(self, by: str) -> str | None:
        return BOOK


class Strange(Users):
    """People whose names cannot be labels."""

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        return {id: f"\0{id}" for id in ids}


class Broken(Users):
    def names(self, ids: Iterable[str]) -> dict[str, str]:
        raise OSError("the book of names is burning")


class Everybody:
    def may_search(self, user: str, book: str) -> bool:
        return book == BOOK


def known(name: str) -> dict[str, str]:
    return {
        "PEOPLE": f"tests.autocomplete.api.test_books_and_contacts.{name}",
        "BOOKS": "tests.autocomplete.api.test_books_and_contacts.Everybody",
    }


@pytest.fixture
def friends(db: None) -> Iterator[AddressBook]:
    with override_settings(COMPONENTS=known("Friends")):
        yield AddressBook(BOOK)


def contacts(of: Asker) -> list[tuple[str, str]]:
    return [(each.id, each.label) for each in RecentContacts(of.id).list()]


def page(of: Asker) -> Client:
    client = Client()
    client.force_login(User.objects.get(pk=of.id))
    return client


def begin(of: Asker, members: str) -> Any:
    return page(of).post("/chat/-/new/", {"members": members, "key": "0123456789"})


def test_writing_in_a_chat_of_two_makes_the_other_the_latest_contact(joe: Asker, jill: Asker) -> None:
    chat = Chat.create(joe.id, members=[jill.id])
    RecentContacts(joe.id).touch("x9", label="Bruce")

    assert joe("POST", f"chats/{chat.id}/messages", {"text": "hi"}).status_code == 201

    assert contacts(joe) == [(jill.id, "jill"), ("x9", "Bruce")]
    assert contacts(jill) == []
    page(jill).post(f"/chat/{chat.id}/", {"text": "hello"})
    assert contacts(jill) == [(joe.id, "joe")]


def test_in_larger_chats_only_the_mentioned_become_contacts(joe: Asker, jill: Asker, stranger: Asker) -> None:
    jack = Asker(user("jack"))
    chat = Chat.create(joe.id, members=[jill.id, jack.id])
    joe("POST", f"chats/{chat.id}/messages", {"text": "all of you"})
    assert contacts(joe) == []

    joe("POST", f"chats/{chat.id}/messages", {"text": "@jill", "mentions": [jill.id, stranger.id, joe.id]})
    assert contacts(joe) == [(jill.id, "jill")]
    page(joe).post(f"/chat/{chat.id}/", {"text": "@jack @stranger"})

    assert contacts(joe) == [(jack.id, "jack"), (jill.id, "jill")]


def test_who_got_mail_or_an_invitation_becomes_a_contact(joe: Asker, jill: Asker, stranger: Asker) -> None:
    crowd = [user(f"one of {number}") for number in range(12)]
    assert joe("POST", f"mailboxes/{stranger.id}", {"text": "hi"}).status_code == 201
    assert contacts(joe) == [(stranger.id, "stranger")]
    made = joe("POST", "chats", {"members": [joe.id, jill.id, stranger.id], "text": "hi"}).json()["id"]
    assert contacts(joe) == [(jill.id, "jill"), (stranger.id, "stranger")]

    joe("POST", f"chats/{made}/members", {"users": [str(each.pk) for each in crowd]})

    assert [label for _id, label in contacts(joe)] == [
        *(each.username for each in crowd[:10]),
        "jill",
        "stranger",
    ]


def test_a_refused_or_repeated_message_makes_no_contact(joe: Asker, jill: Asker) -> None:
    chat = Chat.create(joe.id, members=[jill.id])
    joe("POST", f"chats/{chat.id}/messages", {"text": "x" * 5_000})
    assert contacts(joe) == []

    for _ in range(2):
        joe("POST", f"chats/{chat.id}/messages", {"text": "hi"}, Idempotency_Key="a")
        RecentContacts(joe.id).touch("x9", label="Bruce")

    assert [label for _id, label in contacts(joe)] == ["Bruce", "jill"]


def test_a_name_is_asked_for_once(joe: Asker, jill: Asker) -> None:
    chat = Chat.create(joe.id, members=[jill.id])

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert joe("POST", f"chats/{chat.id}/messages", {"text": "hi"}).status_code == 201
        return sum("username" in each["sql"] and " IN (" in each["sql"] for each in asked)

    assert [queries(), queries()] == [1, 0]


@pytest.mark.parametrize("people", ["Strange", "Broken"])
def test_a_message_needs_no_names(
    joe: Asker, jill: Asker, people: str, caplog: pytest.LogCaptureFixture
) -> None:
    chat = Chat.create(joe.id, members=[jill.id])

    with override_settings(COMPONENTS=known(people)), caplog.at_level(logging.WARNING):
        sent = joe("POST", f"chats/{chat.id}/messages", {"text": "hi"})

    assert sent.status_code == 201
    assert contacts(joe) == [(jill.id, jill.id)]
    assert ("burning" in caplog.text) == (people == "Broken")


def test_a_message_needs_no_contacts(
    joe: Asker, jill: Asker, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """The key of the contacts holds another type, so Redis refuses the command."""
    chat = Chat.create(joe.id, members=[jill.id])
    redis.set(keys.ContactsKeys(joe.id).contacts, "no list")

    assert joe("POST", f"chats/{chat.id}/messages", {"text": "hi"}).status_code == 201
    assert page(joe).post(f"/chat/{chat.id}/", {"text": "hello"}).status_code == 302

    told = [each.getMessage() for each in caplog.records if each.name.endswith("autocomplete.used_contacts")]
    assert [joe.id in each and "WRONGTYPE" in each for each in told] == [True, True]


# Offered names, and the people that names stand for


def test_contacts_have_present_names_and_may_be_written_to(
    joe: Asker, jill: Asker, friends: AddressBook
) -> None:
    eve = user("eve")
    for id, label in ((str(eve.pk), "eve"), (jill.id, "Jill of old"), ("0", "Bruce")):
        RecentContacts(joe.id).touch(id, label=label)

    told = joe("GET", "contacts").json()["contacts"]

    assert [(each["id"], each["label"]) for each in told] == [("0", "Bruce"), (jill.id, "jill")]


def test_names_may_be_in_a_book_only(joe: Asker, jill: Asker, stranger: Asker, friends: AddressBook) -> None:
    ann = user("Ann Smith")
    friends.load([(jill.id, "Jill Éva"), (stranger.id, "Bob"), (ann.pk, "Bob")])

    begin(joe, f"Ann Smith; @jill éva, Bob [{stranger.id}]")

    [made] = Inbox(joe.id).chats()
    assert made.reads.keys() == {joe.id, jill.id, stranger.id, str(ann.pk)}


@pytest.mark.parametrize(
    "members", ["Jill", "stranger eve", "Eva the Evil", "nobody of all", " @ ,;", "x" * 4_001]
)
def test_an_ambiguous_name_is_refused(
    joe: Asker, jill: Asker, stranger: Asker, friends: AddressBook, members: str
) -> None:
    friends.load([(jill.id, "Jill"), (stranger.id, "Jill"), (user("eve").pk, "Eva the Evil")])

    assert begin(joe, members).status_code == 422
    assert Inbox(joe.id).chats() == []


# Members, searched for a mention


def test_members_are_found_by_the_beginnings_of_their_names_words(joe: Asker) -> None:
    names = ("Élodie", "elmo", "Ann Elm", "bob", "zoë el")
    crowd = Chat.create(joe.id, members=[str(user(name).pk) for name in names]).id

    for query, found in {
        "q=EL": ["elmo", "Élodie", "Ann Elm", "zoë el"],
        "q=el&limit=2": ["elmo", "Élodie"],
        "q=ann%20e": ["Ann Elm"],
        "q=x": [],
        "limit=2": ["joe", "Élodie"],
        "": ["joe", *names],
    }.items():
        answer = joe("GET", f"chats/{crowd}/members?{query}")
        assert [each["name"] for each in answer.json()["members"]] == found


GUILD = "guild:7"


class Keepers:
    """Everybody but jill may search the guild's book."""

    def may_search(self, user: str, book: str) -> bool:
        from django.contrib.auth.models import User

        return book == GUILD and User.objects.get(pk=user).username != "jill"


@pytest.fixture(autouse=True)
def book(redis: Redis) -> Iterator[AddressBook]:
    book = AddressBook(GUILD)
    for id, label in (("1", "Jeff"), ("2", "Jenny"), ("3", "Ann Jensen"), ("4", "Élodie"), ("5", "李小龙")):
        book.add(label, id=id)
    with override_settings(COMPONENTS={"BOOKS": "tests.autocomplete.api.test_books_and_contacts.Keepers"}):
        yield book


def labels(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [each["label"] for each in answer.json()["entries"]]


def test_names_are_found_by_their_words_and_a_selected_one_comes_first(joe: Asker) -> None:
    for prefix, found in (("je", ["Jeff", "Jenny", "Ann Jensen"]), ("%E6%9D%8E", ["李小龙"]), ("x", [])):
        answer = joe("GET", f"books/{GUILD}?q={prefix}")
        assert (labels(answer), answer.json()["is_complete"]) == (found, True)
    assert joe("POST", f"books/{GUILD}/select", {"id": "2"}).status_code == 204

    answer = joe("GET", f"books/{GUILD}?q=je&limit=2")

    assert (labels(answer), answer.json()["is_complete"]) == (["Jenny", "Jeff"], False)


def test_a_book_that_may_not_be_searched_looks_like_one_that_does_not_exist(joe: Asker, jill: Asker) -> None:
    refused = problem(jill("GET", f"books/{GUILD}?q=je"), 404, "book-not-found")
    missing = problem(joe("GET", "books/guild:8?q=je"), 404, "book-not-found")

    assert refused == missing
    problem(jill("POST", f"books/{GUILD}/select", {"id": "2"}), 404, "book-not-found")


def test_a_browser_that_asks_again_gets_304_until_something_changes(joe: Asker, book: AddressBook) -> None:
    first = joe("GET", f"books/{GUILD}?q=je")
    again = joe("GET", f"books/{GUILD}?q=je", If_None_Match=first["ETag"])
    book.add("Jeremy", id="6")
    changed = joe("GET", f"books/{GUILD}?q=je", If_None_Match=first["ETag"])

    assert first["Cache-Control"] == "private, max-age=15"
    assert {"Authorization", "Cookie"} <= set(first["Vary"].split(", "))
    assert (again.status_code, again.content) == (304, b"")
    assert again["Cache-Control"] == first["Cache-Control"]
    assert again["ETag"] == first["ETag"]
    assert "Jeremy" in labels(changed)


def test_contacts_are_the_callers_own_and_asked_for_again_each_time(joe: Asker, jill: Asker) -> None:
    first = joe("GET", "contacts")
    assert first["Cache-Control"] == "private, max-age=0"
    assert joe("GET", "contacts", If_None_Match=first["ETag"]).status_code == 304
    for id, label in (("x5", "Bruce"), ("x9", "Ann"), ("x5", "Bruce")):
        RecentContacts(joe.id).touch(id, label=label)

    told = joe("GET", "contacts", If_None_Match=first["ETag"]).json()["contacts"]

    assert [(each["id"], each["label"]) for each in told] == [("x5", "Bruce"), ("x9", "Ann")]
    assert told[0]["touched_at"].endswith("Z")
    assert jill("GET", "contacts").json() == {"contacts": []}
