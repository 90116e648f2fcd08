"""Clients that have a chat already learn that the messages of a person were erased."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis import Redis

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.services.chat import Chat, EventKind, Inbox, Position, erasure
from components.services.chat.keys import ChatKeys
from tests.support.chats import FREE, let_pass, texts


@pytest.fixture
def chat(redis: Redis) -> Chat:
    """jill has said much in it, joe and jack little."""
    chat = Chat.create("joe", members=["jack", "jill"], settings=FREE)
    for number in range(3):
        chat.send("jill", f"secret {number}", mentions=["jack"])
        chat.send("joe", f"{number}", mentions=["jack"])
    return chat


def test_an_erasure_is_an_event_after_which_counts_are_right(chat: Chat) -> None:
    inbox = Inbox("jack")
    before = inbox.changes({})
    assert (before.chats[0].unread, before.chats[0].mentions) == (6, 6)
    Inbox("jill").erase()

    changes = inbox.changes(before.positions)

    [news] = changes.chats
    assert texts(news.messages) == ["left", "erased"]
    event = news.messages[-1].event
    assert event
    assert (event.kind, event.by, event.user, event.detail) == (EventKind.ERASED, "", "jill", "")
    assert (news.unread, news.mentions, news.last_seq) == (3, 3, news.messages[-1].seq)
    assert inbox.changes(changes.positions).chats == []
    assert texts(chat.history("jack").messages) == ["created", "0", "1", "2", "left", "erased"]


def test_all_parts_of_an_erasure_are_reported(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event comes with the first part; a client that syncs between two parts still counts right at the end."""
    monkeypatch.setattr(erasure, "_LOOKED_AT", 2)
    seen: list[tuple[Position, int]] = []
    calls = erasure.ERASE.run
    positions = dict(Inbox("jack").changes({}).positions)

    async def between(*args: object, **options: object) -> object:
        answer = await calls(*args, **options)
        changes = Inbox("jack").changes(positions)
        positions.update(changes.positions)
        seen.extend((positions[chat.id], news.unread) for news in changes.chats)
        return answer

    monkeypatch.setattr(erasure.ERASE, "run", between)
    assert Inbox("jill").erase().messages == 3

    assert texts(chat.history("jack").messages).count("erased") == 1
    assert [unread for _position, unread in seen] == [5, 4, 3]
    assert len({position for position, _unread in seen}) == 3


@pytest.mark.parametrize("has_left", [False, True])
def test_an_erasure_leaves_bytes_and_life_of_a_chat_right(redis: Redis, has_left: bool) -> None:
    chat = Chat.create("joe", members=["jill"], settings=replace(FREE, max_age=1000))
    chat.send("jill", "secret" * 100, mentions=["joe"])
    chat.send("jill", "", data={"key": "secret"})
    if has_left:
        chat.leave("jill")
    let_pass(redis, chat.id, 900)
    Inbox("jill").erase()

    entries = redis.xrange(ChatKeys(chat.id).messages)
    assert chat.info().bytes == sum(
        len(fields[name]) for _id, fields in entries for name in (b"s", b"c", b"m", b"b")
    )
    let_pass(redis, chat.id, 900)
    assert texts(chat.history("joe").messages) == (["erased"] if has_left else ["left", "erased"])
    let_pass(redis, chat.id, 200)
    assert texts(chat.history("joe").messages) == []


def test_an_erasure_may_take_as_many_bytes_as_its_event_brings(redis: Redis) -> None:
    """A difference of nought was written as -0, which Redis refuses: then the rest of the erasure was not done."""
    chats = [Chat.create("joe", members=["jill"], settings=FREE) for _ in range(40)]
    for length, chat in enumerate(chats, 1):
        chat.send("jill", "x" * length)

    erased = Inbox("jill").erase()

    assert (erased.chats, erased.messages) == (40, 40)
    for chat in chats:
        entries = redis.xrange(ChatKeys(chat.id).messages)
        assert chat.info().bytes == sum(
            len(entry[field]) for _id, entry in entries for field in map(str.encode, "scmb")
        )


@pytest.mark.parametrize("kept", [10_000, 5])
def test_counts_that_change_since_the_history_lets_go_are_told_as_well(redis: Redis, kept: int) -> None:
    """A client that syncs between a message and what its sender lets go then, or before an administrator trims."""
    chat = Chat.create("joe", members=["jack"], settings=replace(FREE, max_messages=kept))
    for number in range(5):
        chat.send("joe", f"{number}", mentions=["jack"])
    changes = Inbox("jack").changes({})
    before = changes.chats[0].last_seq - 1
    if kept < 10_000:
        redis.hset(ChatKeys(chat.id).chat, "max_messages", 2)
        at_once(chat._trim_all(get_client()))
    else:
        assert chat.trim(before=before) == before - 1

    [news] = Inbox("jack").changes(changes.positions).chats

    assert (changes.chats[0].unread, news.unread, news.mentions) == (5, 2, 2)
    assert Inbox("jack").changes({chat.id: news.position}).chats == []
