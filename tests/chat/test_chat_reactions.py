"""Reactions: who may react, what others get, and the limits."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

from components.exceptions import ChatClosed, ChatNotFound, InvalidMessage, MessageNotFound, Muted, TooFast
from components.services.chat import Chat, ChatSettings, Inbox
from components.services.chat.keys import ChatKeys
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


def test_reacting_twice_is_reacting_once(redis: Redis, chat: Chat) -> None:
    chat.react("jack", 2, THUMB)
    revision = chat.news("joe").revision

    chat.react("jack", 2, THUMB)
    chat.react("jack", 2, HEART, is_on=False)

    assert (reactions(chat), chat.news("joe").revision) == ({THUMB: ["jack"]}, revision)


def test_a_reaction_makes_nothing_unread_and_reaches_those_who_have_the_message(chat: Chat) -> None:
    chat.acknowledge("jack", 2)
    had = chat.news("jack").position

    chat.react("joe", 2, THUMB)

    news = chat.news("jack")
    assert (news.unread, news.last_seq, Inbox("jack").fetch()) == (0, 2, [])
    [told] = Inbox("jack").changes({chat.id: had}).chats
    assert [(each.seq, each.reactions) for each in told.changed] == [(2, {THUMB: ["joe"]})]
    assert Inbox("jill").fetch()[0].messages[-1].reactions == {THUMB: ["joe"]}


def test_only_members_who_may_send_react_to_messages_that_they_may_see(redis: Redis) -> None:
    chat = Chat.create("joe", text="secret", settings=ChatSettings(history=0, is_open=True, rate_limit=0))
    chat.join("jack")

    with pytest.raises(ChatNotFound):
        chat.react("jill", 2, THUMB)
    for user, seq in (("jack", 2), ("joe", 1), ("joe", 9)):
        with pytest.raises(MessageNotFound):
            chat.react(user, seq, THUMB)
    chat.mute("jack")
    chat.send("joe", "hello")
    with pytest.raises(Muted):
        chat.react("jack", 5, THUMB)
    chat.close()
    with pytest.raises(ChatClosed):
        chat.react("joe", 2, THUMB)

    assert not redis.exists(ChatKeys(chat.id).altered)
