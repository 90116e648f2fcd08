"""Replies, and the history around a message that a link names."""

from __future__ import annotations

import pytest
from redis import Redis

from components.exceptions import ChatNotFound, MessageNotFound
from components.services.chat import Chat, ChatSettings, Inbox, Quote
from components.services.chat.keys import ChatKeys
from tests.support.chats import FREE, texts


def replies(chat: Chat, user: str) -> list[Quote | None]:
    return [message.reply_to for message in chat.history(user).messages]


def test_a_reply_quotes_the_message_and_tells_its_sender(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack", "jill"], text="Who has the key?", settings=FREE)

    sent = chat.send("jill", "I have", reply_to=2)

    quote = Quote(2, "joe", "Who has the key?")
    assert sent.spoken_to == ("joe",)
    assert chat.message("jack", 3).reply_to == quote
    assert replies(chat, "jack") == [None, None, quote]
    [news] = Inbox("joe").fetch()
    assert (news.mentions, [each.reply_to for each in news.messages]) == (1, [quote])
    assert {"jill", "joe"} <= set(chat.message("jack", 3).people)


def test_a_reply_to_a_message_that_does_not_exist_yet_is_refused(redis: Redis) -> None:
    chat = Chat.create("joe", text="hello", settings=FREE)

    with pytest.raises(MessageNotFound):
        chat.send("joe", "to the future", reply_to=3)

    assert texts(chat.history("joe").messages) == ["created", "hello"]


@pytest.mark.parametrize(
    ("where", "limit", "seqs", "has_more", "has_newer"),
    [
        ({}, 3, [18, 19, 20], True, False),
        ({"before": 18}, 3, [15, 16, 17], True, False),
        ({"before": 4}, 3, [1, 2, 3], False, False),
        ({"after": 8}, 1, [9], True, False),
        ({"after": 18}, 2, [19, 20], False, False),
        ({"around": 10}, 5, [8, 9, 10, 11, 12], True, True),
        ({"around": 10}, 4, [9, 10, 11, 12], True, True),
        ({"around": 1}, 6, [1, 2, 3, 4], False, True),
        ({"around": 20}, 6, [18, 19, 20], True, False),
        ({"around": 10}, 50, list(range(1, 21)), False, False),
        ({"around": 10}, 1, [10, 11], True, True),
        ({"around": 99}, 4, [19, 20], True, False),
        ({"around": 0}, 4, [1, 2], False, True),
    ],
)
def test_a_page_of_the_history(
    redis: Redis, where: dict[str, int], limit: int, seqs: list[int], has_more: bool, has_newer: bool
) -> None:
    chat = Chat.create("joe", settings=FREE)
    for number in range(19):
        chat.send("joe", f"text {number}")

    page = chat.history("joe", **where, limit=limit)

    assert [message.seq for message in page.messages] == seqs
    assert (page.has_more, page.has_newer, page.oldest) == (has_more, has_newer, 1)


def test_the_history_around_a_message_begins_where_a_newcomer_may_look(redis: Redis) -> None:
    chat = Chat.create("joe", text="secret", settings=ChatSettings(history=0, is_open=True, rate_limit=0))
    chat.join("jack")
    chat.send("joe", "welcome")

    page = chat.history("jack", around=2)

    assert [message.seq for message in page.messages] == [3, 4]
    assert (page.has_more, page.oldest) == (False, 3)
    with pytest.raises(ChatNotFound):
        chat.history("jill", around=2)


def test_a_damaged_reply_is_shown_as_a_message(redis: Redis) -> None:
    chat = Chat.create("joe", text="hello", settings=FREE)
    chat.send("joe", "again", reply_to=2)
    stream = ChatKeys(chat.id).messages
    [(_id, fields)] = redis.xrange(stream, "3", "3")
    redis.xadd(stream, {**fields, b"r": b"nonsense"}, id="4-0")
    redis.hset(ChatKeys(chat.id).chat, "seq", 4)

    assert [message.text for message in chat.history("joe").messages[-2:]] == ["again", "again"]
    assert replies(chat, "joe")[-1] is None


@pytest.mark.parametrize("gone", ["deleted", "trimmed", "erased"])
def test_a_reply_to_a_message_that_is_gone_says_so(redis: Redis, gone: str) -> None:
    chat = Chat.create("joe", members=["jack"], text="hello", settings=FREE)
    chat.send("jack", "hello yourself", reply_to=2)

    if gone == "deleted":
        chat.delete_message(2, by="joe")
    elif gone == "trimmed":
        chat.trim(before=3)
    else:
        Inbox("joe").erase()
    chat.send("jack", "are you there?", reply_to=2)

    assert {quote for quote in replies(chat, "jack") if quote} == {Quote(2)}


def test_a_reply_to_what_a_newcomer_may_not_see_does_not_show_it(redis: Redis) -> None:
    chat = Chat.create("joe", text="secret", settings=ChatSettings(history=0, is_open=True, rate_limit=0))
    chat.join("jack")

    chat.send("joe", "as I said", reply_to=2)
    chat.send("jack", "what?", reply_to=2)

    assert [quote for quote in replies(chat, "jack") if quote] == [Quote(2), Quote(2)]
    assert chat.history("jack").messages[-1].mentions == ()
    assert [quote for quote in replies(chat, "joe") if quote] == [Quote(2, "joe", "secret")] * 2
