"""The erasure of a person beside processes that add them to chats all the time: a repeated one finds all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from components.client import get_client
from components.embedded import EmbeddedServer
from components.services.chat import Chat, ChatReader, Inbox
from components.services.chat.memberships import hint_all
from components.testing import empty
from components.twins import at_once
from tests.chaos.chats import adders
from tests.commands.processes import Command
from tests.support.waiting import eventually

PLACES = 3
ERASURES = 10


@pytest.fixture
def url(redis_server: EmbeddedServer) -> Iterator[str]:
    with empty(redis_server):
        yield redis_server.url


def words_of(person: str) -> dict[str, int]:
    """In which chats they still are, or something that they said is, and how many messages."""
    found = {}
    for info in ChatReader().page(limit=PLACES * adders.CHATS):
        said = [each for each in ChatReader().messages(info.id, limit=200).messages if each.sender == person]
        if said or person in [member.user for member in Chat(info.id).members()]:
            found[info.id] = len(said)
    return found


def test_nobody_is_left_behind_whom_no_repeated_erasure_finds(url: str) -> None:
    with ExitStack() as stack:
        for place in range(PLACES):
            program = ("-m", "tests.chaos.chats.adders")
            stack.enter_context(
                Command(
                    url, str(place), "jack", program=program, DJANGO_SETTINGS_MODULE="tests.commands.settings"
                )
            )
        assert eventually(lambda: len(words_of("jack")) > PLACES)
        erased = [Inbox("jack").erase().messages for _ in range(ERASURES)]
    assert sum(erased) > ERASURES, "the others were too slow for a race"

    Inbox("jack").erase()

    assert words_of("jack") == {}


def test_who_is_about_to_be_added_while_they_are_erased_is_found_by_the_next_erasure(url: str) -> None:
    """The adder dies before it looks at the hint again."""
    chat = Chat.create("joe")
    at_once(hint_all(get_client(), chat.id, ["jack"]))
    Inbox("jack").erase()
    at_once(chat._enter(get_client(), "", ["jack"], "call", is_done=True))
    chat.send("jack", "secret")
    assert words_of("jack") == {chat.id: 1}

    assert Inbox("jack").erase().messages == 1

    assert words_of("jack") == {}


def test_what_nobody_is_about_to_enter_leaves_nothing_in_the_inbox(url: str) -> None:
    for number in range(3):
        Chat.create("joe", members=["jack"], id=f"chat:{number}")
    Chat("chat:0").leave("jack")
    Chat("chat:1").kick("jack")

    Inbox("jack").erase()

    assert [key for key in get_client().keys("*") if b"jack" in key] == []
