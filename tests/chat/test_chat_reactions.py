"""Reactions: who may react, what others get, and the limits."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from components.exceptions import InvalidMessage, TooFast
from components.services.chat import Chat, ChatSettings, Inbox
from tests.support.chats import FREE, texts

THUMB, HEART, PARTY = "👍", "❤️", "🎉"


@pytest.fixture
def chat(redis: Redis) -> Chat:
    return Chat.create("joe", members=["jack", "jill"], text="hello", settings=FREE)


def reactions(chat: Chat, seq: int = 2) -> dict[str, list[str]]:
    return {emoji: list(who) for emoji, who in chat.message("joe", seq).reactions.items()}


@pytest.mark.parametrize(
    "emoji",
    ["👍", "👍🏽", "❤️", "👩‍👩‍👧‍👦", "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "✅"],
    ids=lambda each: each.encode("unicode_escape").decode(),
)
def test_emojis_are_reactions(chat: Chat, emoji: str) -> None:
    chat.react("jack", 2, emoji)

    assert reactions(chat) == {emoji: ["jack"]}


NO_EMOJIS: list[Any] = [
    "",
    "a",
    "1",
    " ",
    "+1",
    "👍a",
    "\u202e",
    "👍\u202e",
    "\ufe0f",
    "<b>",
    "👍" * 13,
    "\ud83d",
]


def test_other_texts_are_none(chat: Chat) -> None:
    for emoji in [*NO_EMOJIS, None, 7, b"x"]:
        with pytest.raises(InvalidMessage):
            chat.react("jack", 2, emoji)

    assert reactions(chat) == {}


def test_a_message_has_no_more_reactions_than_the_chat_allows(redis: Redis) -> None:
    chat = Chat.create(
        "joe", members=["jack"], text="hello", settings=ChatSettings(max_reactions=2, rate_limit=0)
    )
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


def test_reactions_count_towards_the_rate_limit(redis: Redis) -> None:
    chat = Chat.create(
        "joe", members=["jack"], text="hello", settings=ChatSettings(rate_limit=2, rate_period=600)
    )
    chat.react("jack", 2, THUMB)
    chat.react("jack", 2, THUMB, is_on=False)

    with pytest.raises(TooFast):
        chat.react("jack", 2, THUMB)


def test_an_erased_person_has_reacted_to_nothing(chat: Chat) -> None:
    chat.react("jack", 2, THUMB)
    chat.react("jill", 2, THUMB)
    chat.react("jack", 2, HEART)
    chat.send("jill", "jack", mentions=["jack"])
    chat.edit("jill", 3, "jack!", mentions=["jack"])
    size = chat.info().bytes
    had = chat.news("joe").position

    Inbox("jack").erase()

    assert reactions(chat) == {THUMB: ["jill"]}
    assert texts(chat.history("joe").messages) == ["created", "hello", "jack!", "left"]
    [news] = Inbox("joe").changes({chat.id: had}).chats
    assert [each.reactions for each in news.changed] == [{THUMB: ["jill"]}]
    assert chat.info().bytes < size + 60  # less the reactions, and the event that they left
