"""The erasure of a person beside calls that add them: it finds them, or the next one does."""

from typing import Any

import pytest
from redis import Redis

from components.services.chat import Chat, ChatReader, Inbox
from components.services.chat.chat import ENTER
from components.services.chat.inbox_index import DROP


def words_of(person: str) -> dict[str, int]:
    """In which chats they still are, or something that they said is, and how many messages."""
    found = {}
    for info in ChatReader().page():
        said = [each for each in ChatReader().messages(info.id, limit=200).messages if each.sender == person]
        if said or person in [member.user for member in Chat(info.id).members()]:
            found[info.id] = len(said)
    return found


def test_a_person_who_is_added_while_they_are_erased_is_erased_again(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, drop = Chat.create("joe", members=["jack"]), DROP.run

    async def late(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(DROP, "run", drop)
        chat.add(["jack"])
        return await drop(*args, **options)

    monkeypatch.setattr(DROP, "run", late)
    Inbox("jack").erase()

    assert words_of("jack") == {}


def test_an_addition_beside_an_erasure_is_found_by_the_next_erasure(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
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
    redis: Redis, monkeypatch: pytest.MonkeyPatch
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


def test_a_cancelled_join_leaves_nothing_in_the_inbox(redis: Redis) -> None:
    for number in range(3):
        Chat.create("joe", members=["jack"], id=f"chat:{number}")
    Chat("chat:0").leave("jack")
    Chat("chat:1").kick("jack")

    Inbox("jack").erase()

    assert [key for key in redis.keys("*") if b"jack" in key] == []
