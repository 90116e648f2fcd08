"""Edits: who may change a message, who gets it again, and what counts stay as they are."""

from __future__ import annotations

import pytest
from redis import Redis

from components.exceptions import (
    ChatClosed,
    ChatNotFound,
    MessageNotFound,
    Muted,
    NotAllowed,
    TooFast,
)
from components.services.chat import Chat, ChatReader, ChatSettings, Inbox, Position, Quote
from components.services.chat.keys import ChatKeys
from tests.support.chats import FREE, let_pass, stored, texts

PAIRS = {b"altered", b"changes"}


def changed(user: str, chat: Chat, position: Position, limit: int = 50) -> list[tuple[int, str]]:
    """What a client of *user* at this position gets again."""
    found = Inbox(user).changes({chat.id: position}, limit=limit)
    return [(message.seq, message.text) for news in found.chats for message in news.changed]


def position(user: str, chat: Chat) -> Position:
    return chat.news(user).position


def test_an_edit_reaches_those_who_have_the_message_and_those_who_were_away(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack", "jill"], text="helo", settings=FREE)
    had = position("jack", chat)

    edited_at = chat.edit("joe", 2, "hello")

    assert changed("jack", chat, had) == [(2, "hello")]
    assert changed("jack", chat, position("jack", chat)) == []
    [news] = Inbox("jill").fetch()
    assert (texts(news.messages), news.changed) == (["created", "hello"], [])
    message = chat.message("jack", 2)
    assert (message.text, message.edited_at) == ("hello", edited_at)
    assert message.sent_at <= edited_at
    assert chat.news("jack").last_message == message
    assert ChatReader().messages(chat.id).messages[1] == message
    assert [chats.last_message for chats in Inbox("jill").chats()] == [message]


def test_edits_count_towards_the_rate_limit_but_not_towards_the_slow_mode(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], settings=ChatSettings(rate_limit=3, rate_period=600))
    chat.configure(slow_mode=100)
    chat.send("jack", "one")

    chat.edit("jack", 3, "two")
    chat.edit("jack", 3, "two")  # the same again is free
    chat.edit("jack", 3, "three")

    with pytest.raises(TooFast):
        chat.edit("jack", 3, "four")
    chat.configure(rate_limit=0)
    chat.edit("jack", 3, "five")
    with pytest.raises(TooFast) as slow:
        chat.send("jack", "still slow")
    assert 0 < slow.value.retry_after <= 100


@pytest.mark.parametrize("way", ["trim", "delete", "erase", "end"])
def test_what_was_changed_goes_with_the_message(redis: Redis, way: str) -> None:
    chat = Chat.create("joe", members=["jack"], text="hello", settings=FREE)
    size = chat.info().bytes
    chat.edit("joe", 2, "a longer text")
    assert chat.info().bytes > size

    if way == "trim":
        chat.trim(before=3)
    elif way == "delete":
        chat.delete_message(2)
    elif way == "erase":
        Inbox("joe").erase()
    else:
        chat.delete()

    assert not {key.encode() for key in stored(redis, chat.id)} & PAIRS
    if way in ("trim", "delete"):
        entries = redis.xrange(ChatKeys(chat.id).messages)
        kept = sum(len(fields[name]) for _id, fields in entries for name in (b"s", b"c", b"m", b"b"))
        assert chat.info().bytes == kept


def test_what_was_changed_expires_with_the_history(redis: Redis) -> None:
    chat = Chat.create("joe", text="hello", settings=ChatSettings(max_age=3600, rate_limit=0))
    chat.edit("joe", 2, "hello again")
    keys = ChatKeys(chat.id)

    assert all(0 < redis.pttl(key) <= 3_600_000 for key in (keys.altered, keys.changes))
    chat.configure(max_age=None)
    assert {redis.pttl(key) for key in (keys.altered, keys.changes)} == {-1}
    chat.configure(max_age=60)
    let_pass(redis, chat.id, 61)
    with pytest.raises(MessageNotFound):
        chat.edit("joe", 2, "too late")


def test_a_chat_of_the_limit_of_bytes_makes_room_for_an_edit(redis: Redis) -> None:
    chat = Chat.create("joe", text="x" * 400, settings=ChatSettings(max_bytes=1_000, rate_limit=0))
    chat.send("joe", "y" * 400)

    chat.edit("joe", 3, "z" * 500)

    assert texts(chat.history("joe").messages) == ["z" * 500]
    assert chat.info().bytes < 1_010


@pytest.mark.parametrize("value", [b"", b"nonsense", b"3:abc", b"5:12345", b"1:10:9:x", b"2:990:2:zz"])
def test_damaged_alterations_make_a_placeholder_and_no_error(redis: Redis, value: bytes) -> None:
    chat = Chat.create("joe", members=["jack"], text="hello", settings=FREE)
    chat.edit("joe", 2, "hello again")
    redis.hset(ChatKeys(chat.id).altered, "2", value)

    message = chat.message("jack", 2)

    assert message.is_unreadable == bool(value)
    assert len(Inbox("jack").fetch()[0].messages) == 2
    chat.edit("joe", 2, "mended")
    assert chat.message("jack", 2).text == "mended"


def test_a_new_mention_counts_for_people_who_have_not_read_the_message(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack", "jill"], text="hello", settings=FREE)

    chat.edit("joe", 2, "hello @jack", mentions=["jack", "joe", "nobody"])
    assert (chat.news("jack").mentions, chat.message("joe", 2).mentions) == (1, ("jack",))

    chat.edit("joe", 2, "hello @jill", mentions=["jill"])
    assert (chat.news("jack").mentions, chat.news("jill").mentions) == (0, 1)

    chat.delete_message(2)
    assert chat.news("jill").mentions == 0


def test_an_edited_reply_still_mentions_whom_it_replies_to(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], text="hello", settings=FREE)
    chat.send("jack", "helo", reply_to=2)

    chat.edit("jack", 3, "hello yourself")

    assert (chat.message("joe", 3).mentions, chat.news("joe").mentions) == (("joe",), 1)
    chat.edit("joe", 2, "hello, Jack")
    assert chat.message("jack", 3).reply_to == Quote(2, "joe", "hello, Jack")


def test_only_the_sender_edits_and_only_while_they_may_send(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], settings=FREE)
    chat.send("jack", "hello")

    with pytest.raises(NotAllowed):
        chat.edit("joe", 2, "by an owner")
    with pytest.raises(ChatNotFound):
        chat.edit("jill", 2, "by a stranger")
    for seq in (1, 3):
        with pytest.raises(MessageNotFound):
            chat.edit("jack", seq, "an event, or nothing")
    chat.mute("jack")
    with pytest.raises(Muted):
        chat.edit("jack", 2, "muted")
    chat.unmute("jack")
    chat.close()
    with pytest.raises(ChatClosed):
        chat.edit("jack", 2, "closed")
    chat.reopen()
    chat.leave("jack")
    with pytest.raises(ChatNotFound):
        chat.edit("jack", 2, "away")

    assert chat.message("joe", 2).text == "hello"
    assert not {key.encode() for key in stored(redis, chat.id)} & PAIRS


def test_several_changes_come_once_each_in_their_last_state(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], text="a", settings=FREE)
    for text in "bcdef":
        chat.send("joe", text)
    had = position("jack", chat)

    for number, seq in enumerate((4, 2, 6, 4, 2)):
        chat.edit("joe", seq, f"edit {number}")

    assert changed("jack", chat, had) == [(6, "edit 2"), (4, "edit 3"), (2, "edit 4")]


def test_changes_are_not_shown_to_those_who_may_not_see_the_message(redis: Redis) -> None:
    chat = Chat.create("joe", text="secret", settings=ChatSettings(history=0, is_open=True, rate_limit=0))
    chat.join("jack")
    had = position("jack", chat)

    chat.edit("joe", 2, "still secret")

    assert changed("jack", chat, had) == []
    assert [message.seq for message in chat.history("jack").messages] == [3]
