"""
Chats and inboxes, as a person uses them.

The numbers are those of the defects of the book's listings (chapter 6.5), which this chat does not have. What calls
in any order must keep is in test_chat_model.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from components.exceptions import ChatExists, ChatNotFound, NotAMember
from components.kit.at_once import at_once
from components.services.chat import Chat, ChatSettings, Inbox, Quote, Role
from components.services.chat.hints import YOUNG, write_hints
from components.services.chat.keys import ChatKeys, InboxKeys
from tests.support.chats import FREE, texts


def test_messages_sent_while_away_are_there_on_return(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack", "jill"], text="hello", title="Party")
    chat.send("joe", "who brings the cake?", mentions=["jill", "nobody"])

    [news] = Inbox("jill").fetch()

    assert texts(news.messages) == ["created", "hello", "who brings the cake?"]
    assert (news.title, news.role, news.members) == ("Party", Role.MEMBER, 3)
    assert (news.unread, news.mentions, news.messages[-1].mentions) == (2, 1, ("jill",))
    assert news.reads == {"joe": 3, "jack": 0, "jill": 0}
    inbox = Inbox("jill")
    assert [chat.chat_id for chat in inbox.chats()] == [chat.id]
    assert inbox.acknowledge({chat.id: 2, "other": 7}) == {chat.id: 2}
    assert texts(inbox.fetch()[0].messages) == ["who brings the cake?"]
    assert inbox.acknowledge({chat.id: 100}) == {chat.id: 3}
    assert inbox.fetch() == []


def test_a_chat_is_created_once(redis: Redis) -> None:
    first = Chat.create("joe", text="hello", id="guild:7", client_id="a")
    again = Chat.create("joe", text="hello", id="guild:7", client_id="a")

    with pytest.raises(ChatExists):
        Chat.create("joe", id="guild:7")
    assert texts(again.history("joe").messages) == ["created", "hello"]
    assert first.id == again.id
    assert not first.send("joe", "other").is_duplicate
    assert first.send("joe", "hello", client_id="a").is_duplicate


def test_a_message_says_to_whom_it_speaks(redis: Redis) -> None:
    two = Chat.create("joe", members=["jack"], settings=FREE)
    some = Chat.create("joe", members=["jack", "jill"], settings=FREE)

    assert two.send("joe", "hello").spoken_to == ("jack",)
    assert two.send("jack", "@joe @jill", mentions=["joe", "jill"], client_id="a").spoken_to == ("joe",)
    assert two.send("jack", "@joe @jill", mentions=["joe", "jill"], client_id="a").spoken_to == ()
    assert some.send("joe", "hello").spoken_to == ()
    assert some.send("joe", "@both", mentions=["jill", "joe", "jack", "ann"]).spoken_to == ("jill", "jack")
    some.kick("jack")
    assert some.send("joe", "only we").spoken_to == ("jill",)
    assert some.send("jill", "what?", reply_to=2).spoken_to == ("joe",)
    assert Chat.create("joe").send("joe", "alone").spoken_to == ()


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

    replies = [(message.text, message.reply_to) for message in chat.history("joe").messages[-2:]]
    assert replies == [("again", Quote(2, "joe", "hello")), ("again", None)]


def make(*members: str) -> Chat:
    return Chat.create("joe", members=members, text="hello", settings=FREE)


def test_5_a_former_member_reads_no_more_whatever_their_inbox_says(redis: Redis) -> None:
    chat = make("jack")
    chat.leave("jack")
    redis.zadd(InboxKeys("jack").hints, {chat.id: 1})

    assert Inbox("jack").fetch() == Inbox("jack").chats() == []


def test_9_and_10_positions_are_exact_whatever_is_said(redis: Redis) -> None:
    chat = make("jack")
    redis.hset(ChatKeys(chat.id).chat, "seq", 10**13)

    sent = chat.send("joe", "a", data=[])

    assert sent.seq == 10**13 + 1
    assert [message.seq for message in chat.history("jack", after=10**13 - 1).messages] == [10**13 + 1]
    assert chat.acknowledge("jack", 10**13 + 1) == 10**13 + 1


def test_15_a_send_is_one_round_trip(redis: Redis) -> None:
    chat = make("jack")
    chat.send("joe", "known to the server now")
    calls = redis.info("commandstats")["cmdstat_evalsha"]["calls"]

    chat.send("joe", "one", mentions=["jack"])

    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] == calls + 1


def test_21_two_who_leave_at_once_leave_nothing_behind(redis: Redis) -> None:
    for _ in range(10):
        chat = make("jack", "jill")
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(chat.leave, ["joe", "jack", "jill"]))
        assert chat.id.encode() not in redis.zrange(ChatKeys(chat.id).names, 0, -1)
        with pytest.raises(ChatNotFound):
            chat.members()


def test_22_what_a_crash_leaves_between_inbox_and_chat_is_repaired(redis: Redis) -> None:
    chat = make("jack")
    at_once(write_hints(redis, chat.id, ["mary"]))  # and the one who lets her in dies
    assert Inbox("mary").fetch() == []
    hints = InboxKeys("mary").hints
    assert redis.exists(hints)

    redis.zincrby(hints, -YOUNG - 1, chat.id)

    assert Inbox("mary").fetch() == []
    assert not redis.exists(hints)
    with pytest.raises(NotAMember):
        chat.kick("mary")
