"""The erasure of a person beside processes that add them to chats all the time: a repeated one finds all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from components.embedded import EmbeddedServer
from components.kit.client import get_client
from components.services.chat import Chat, ChatReader, Inbox
from components.services.chat.chat import ENTER
from components.testing import empty
from tests.chaos import adders
from tests.commands.processes import Command
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

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


def test_an_erasure_that_is_repeated_finds_everybody(url: str) -> None:
    with ExitStack() as stack:
        for place in range(PLACES):
            program = ("-m", "tests.chaos.adders")
            stack.enter_context(
                Command(
                    url, str(place), "jack", program=program, DJANGO_SETTINGS_MODULE="tests.commands.settings"
                )
            )
        assert eventually(lambda: len(words_of("jack")) > PLACES)
        for _ in range(ERASURES):  # each beside additions, however slow these are
            assert eventually(lambda: words_of("jack"), within=60)
            Inbox("jack").erase()

    Inbox("jack").erase()

    assert words_of("jack") == {}


def test_an_addition_beside_an_erasure_is_found_by_the_next_erasure(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two add the same person at once. They are erased in between, and the second dies as soon as they are in."""
    chat = Chat.create("joe")
    enter, seen = ENTER.run, []

    async def late(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(ENTER, "run", enter)
        before = await enter(
            *args, **options
        )  # the first look, before which the other has written a hint, too
        monkeypatch.setattr(ENTER, "run", once)
        return before

    async def once(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(ENTER, "run", enter)
        chat.add(["jack"])
        Inbox("jack").erase()
        seen.append(await enter(*args, **options))
        raise SystemExit("It was killed.")

    monkeypatch.setattr(ENTER, "run", late)
    with pytest.raises(SystemExit):
        chat.add(["jack"])
    Inbox("jack").erase()

    assert seen
    assert words_of("jack") == {}


def test_a_call_that_adds_a_person_beside_an_erasure_notes_it_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was noted before the erasure is gone, so it is noted again, and they are in."""
    chat = Chat.create("joe")
    enter, looks = ENTER.run, []

    async def beside(*args: Any, **options: Any) -> Any:
        looks.append(options)
        if len(looks) == 2:
            Inbox("jack").erase()
        return await enter(*args, **options)

    monkeypatch.setattr(ENTER, "run", beside)
    assert chat.add(["jack"]) == ["jack"]

    assert len(looks) == 4
    assert [each.chat_id for each in Inbox("jack").chats()] == [chat.id]


def test_a_cancelled_join_leaves_nothing_in_the_inbox(url: str) -> None:
    for number in range(3):
        Chat.create("joe", members=["jack"], id=f"chat:{number}")
    Chat("chat:0").leave("jack")
    Chat("chat:1").kick("jack")

    Inbox("jack").erase()

    assert [key for key in get_client().keys("*") if b"jack" in key] == []
