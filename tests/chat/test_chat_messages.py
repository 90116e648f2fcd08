"""Edits of messages, and reactions: who gets them, what limits them, and what goes with the message."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from components.exceptions import InvalidMessage, MessageNotFound, TooFast
from components.services.chat import Chat, ChatReader, ChatSettings, Inbox
from components.services.chat.keys import ChatKeys
from tests.support.chats import FREE, let_pass, size_of, stored, texts

THUMB, HEART = "👍", "❤️"


@pytest.fixture
def chat(redis: Redis) -> Chat:
    return Chat.create("joe", members=["jack", "jill"], text="hello", settings=FREE)


def test_an_edit_reaches_those_who_have_the_message_and_those_who_were_away(chat: Chat) -> None:
    had = {chat.id: chat.news("jack").position}

    edited_at = chat.edit("joe", 2, "hello again")

    message = chat.message("jack", 2)
    assert (message.text, message.edited_at) == ("hello again", edited_at)
    assert message.sent_at <= edited_at
    [again] = Inbox("jack").changes(had).chats
    assert (again.changed, again.last_message) == ([message], message)
    assert Inbox("jack").changes({chat.id: again.position}).chats == []
    [news] = Inbox("jill").fetch()
    assert (news.messages[1:], news.changed) == ([message], [])
    assert ChatReader().messages(chat.id).messages[1] == message


def test_edits_and_reactions_count_towards_the_rate_limit_but_not_towards_the_slow_mode(redis: Redis) -> None:
    settings = ChatSettings(rate_limit=3, rate_period=600, slow_mode=100)
    chat = Chat.create("joe", members=["jack"], settings=settings)
    chat.send("jack", "one")

    chat.edit("jack", 2, "two")
    chat.edit("jack", 2, "two")  # the same again is free
    chat.react("jack", 2, THUMB)

    for act in (lambda: chat.edit("jack", 2, "four"), lambda: chat.react("jack", 2, THUMB, is_on=False)):
        with pytest.raises(TooFast):
            act()
    chat.configure(rate_limit=0)
    chat.edit("jack", 2, "five")
    with pytest.raises(TooFast) as slow:
        chat.send("jack", "still slow")
    assert 0 < slow.value.retry_after <= 100


@pytest.mark.parametrize(
    "act",
    [
        lambda chat: chat.trim(before=3),
        lambda chat: chat.delete_message(2),
        lambda chat: Inbox("joe").erase(),
        lambda chat: chat.delete(),
    ],
    ids=["trim", "delete", "erase", "end"],
)
def test_what_was_changed_goes_with_the_message(redis: Redis, chat: Chat, act: Any) -> None:
    size = chat.info().bytes
    chat.edit("joe", 2, "a longer text")
    assert chat.info().bytes > size

    act(chat)

    assert not {"altered", "changes"} & set(stored(redis, chat.id))
    if found := ChatReader().find(chat.id):
        assert found.bytes == size_of(redis, chat.id)


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
def test_damaged_alterations_make_a_placeholder_and_no_error(redis: Redis, chat: Chat, value: bytes) -> None:
    chat.edit("joe", 2, "hello again")
    redis.hset(ChatKeys(chat.id).altered, "2", value)

    message = chat.message("jack", 2)

    assert message.is_unreadable == bool(value)
    assert len(Inbox("jack").fetch()[0].messages) == 2
    chat.edit("joe", 2, "mended")
    assert chat.message("jack", 2).text == "mended"


def reactions(chat: Chat) -> dict[str, list[str]]:
    return {emoji: list(who) for emoji, who in chat.message("joe", 2).reactions.items()}


@pytest.mark.parametrize(
    "emoji",
    ["👍", "👍🏽", "❤️", "👩‍👩‍👧‍👦", "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "✅"],
    ids=lambda each: each.encode("unicode_escape").decode(),
)
def test_emojis_are_reactions(chat: Chat, emoji: str) -> None:
    chat.react("jack", 2, emoji)

    assert reactions(chat) == {emoji: ["jack"]}


def test_other_texts_are_none(chat: Chat) -> None:
    no_emojis: list[Any] = [*"a1 <", "", "+1", "👍a", "\u202e", "👍\u202e", "\ufe0f", "👍" * 13, "\ud83d"]
    for emoji in [*no_emojis, None, 7, b"x"]:
        with pytest.raises(InvalidMessage):
            chat.react("jack", 2, emoji)

    assert reactions(chat) == {}


def test_a_message_has_no_more_reactions_than_the_chat_allows(chat: Chat) -> None:
    chat.configure(max_reactions=2)
    chat.react("joe", 2, THUMB)
    chat.react("jack", 2, THUMB)

    with pytest.raises(InvalidMessage, match="too many reactions"):
        chat.react("jack", 2, HEART)
    chat.react("jack", 2, THUMB, is_on=False)
    chat.react("jack", 2, HEART)

    assert reactions(chat) == {THUMB: ["joe"], HEART: ["jack"]}
    chat.configure(max_reactions=0)
    chat.react("joe", 2, THUMB, is_on=False)
    with pytest.raises(InvalidMessage):
        chat.react("joe", 2, THUMB)


def test_a_message_has_twenty_different_reactions_at_most(chat: Chat) -> None:
    for number in range(20):
        chat.react("jack", 2, chr(0x1F600 + number))

    with pytest.raises(InvalidMessage, match="20 different"):
        chat.react("joe", 2, THUMB)
    chat.react("joe", 2, chr(0x1F600))

    assert len(reactions(chat)) == 20
