"""
The defects of the book's listings (chapter 6.5), each with a test that says that this chat has it not. The numbers
are in the order of its functions: fetching, creating, sending, joining, leaving, and the design as a whole.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from components.exceptions import ChatNotFound, NotAMember
from components.kit.at_once import at_once
from components.services.chat import Chat, ChatSettings, Inbox
from components.services.chat.hints import YOUNG, write_hints
from components.services.chat.keys import ChatKeys, InboxKeys
from tests.support.chats import FREE, texts


def make(*members: str, settings: ChatSettings = FREE) -> Chat:
    return Chat.create("joe", members=members, text="hello", settings=settings)


def test_2_and_3_there_is_one_reading_position_and_the_slowest_member_loses_nothing(redis: Redis) -> None:
    chat = make("jack", "jill", settings=ChatSettings(rate_limit=0, drop_read_after=0.001))
    chat.acknowledge("jill", 2)

    chat.trim(before=0)

    assert {member.user: member.read_seq for member in chat.members()} == {"joe": 2, "jack": 0, "jill": 2}
    assert texts(Inbox("jack").fetch()[0].messages) == ["created", "hello"]


def test_5_a_former_member_reads_no_more_whatever_their_inbox_says(redis: Redis) -> None:
    chat = make("jack")
    chat.leave("jack")
    redis.zadd(InboxKeys("jack").hints, {chat.id: 1})

    assert Inbox("jack").fetch() == Inbox("jack").chats() == []
    with pytest.raises(ChatNotFound):
        chat.history("jack")
    assert [member.user for member in chat.members()] == ["joe"]


def test_9_and_10_positions_are_exact_whatever_is_said(redis: Redis) -> None:
    chat = make("jack")
    hash_key = ChatKeys(chat.id).chat
    redis.hset(hash_key, "seq", 10**13)

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


def test_16_a_message_that_is_sent_again_is_there_once_by_the_servers_clock(redis: Redis) -> None:
    chat = make("jack")

    sent = [chat.send("joe", "once", client_id="a") for _ in range(3)]

    assert len({(each.seq, each.sent_at) for each in sent}) == 1
    assert texts(chat.history("jack").messages) == ["created", "hello", "once"]
    assert texts(Inbox("joe").fetch()) == []  # its sender has it


def test_17_joining_what_is_not_there_creates_nothing(redis: Redis) -> None:
    with pytest.raises(ChatNotFound):
        Chat("nowhere").join("jack")
    with pytest.raises(ChatNotFound):
        make().join("jack")  # it is not open

    assert Inbox("jack").chats() == []
    assert not redis.exists(InboxKeys("jack").hints)


def test_19_and_20_the_sequence_never_restarts(redis: Redis) -> None:
    chat = make("jack")
    seqs = [chat.send("joe", "one").seq]
    for person in ("jack", "joe"):
        chat.leave(person)

    again = Chat.create("jill", members=["joe"], text="two", id=chat.id)
    again.delete()
    third = Chat.create("jill", members=["joe"], text="three", id=chat.id)

    assert seqs == [3]
    assert [message.seq for message in third.history("joe").messages] == [7, 8]
    assert third.news("joe").unread == 1
    assert Inbox("joe").fetch()[0].missed == 0


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


def test_23_a_member_who_never_reads_keeps_nothing_for_ever_and_hears_of_the_gap(redis: Redis) -> None:
    chat = make("jack", settings=ChatSettings(max_messages=5, rate_limit=0))

    for number in range(10):
        chat.send("joe", str(number))

    [news] = Inbox("jack").fetch()
    assert texts(news.messages) == list("56789")
    assert (news.unread, news.missed, news.oldest) == (5, 7, 8)
    assert chat.info().messages == 5
