"""How long the keys of a chat live, and what bounds each of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis import Redis

from components.exceptions import TooManyBlocked
from components.services.chat import Chat, ChatSettings, Inbox, Presence
from components.services.chat.keys import ChatKeys
from components.services.chat.settings import SETTINGS
from tests.support.chats import FREE, let_pass, texts

HOUR, DAY, WEEK = 3_600, 86_400, 7 * 86_400


@pytest.mark.parametrize(
    ("before", "after", "pause"),
    [(HOUR, WEEK, DAY), (HOUR, None, DAY), (None, WEEK, DAY), (WEEK, HOUR, HOUR / 2), (DAY, WEEK, 2 * DAY)],
)
def test_counts_stay_right_when_a_chat_is_given_another_life(
    redis: Redis, before: float | None, after: float | None, pause: float
) -> None:
    chat = Chat.create("joe", members=["jack"], settings=ChatSettings(max_age=before, rate_limit=0))
    for number in range(3):
        chat.send("joe", f"{number} @jack", mentions=["jack"])
        chat.send("jack", f"{number}")
    chat.configure(max_age=after)

    let_pass(redis, chat.id, pause)

    [news] = Inbox("jack").chats()
    assert (news.unread, news.mentions) == (3, 3)
    assert {each.user: (each.unread, each.mentions) for each in chat.members()} == {
        "joe": (3, 0),
        "jack": (3, 3),
    }
    assert texts(chat.history("jack").messages)[-1] == "configured"


#: A chat of so few that its limits are reached.
MOST, PEOPLE = 20, 6
#: How large each key of it may become: two fields for each message, or what there is of the chat itself.
LARGEST = max(2 * MOST + 2, 20 + len(SETTINGS))


@pytest.mark.slow
def test_use_does_not_let_a_chat_grow(redis: Redis) -> None:
    settings = replace(FREE, max_messages=MOST, max_members=PEOPLE, rate_limit=10**6, is_open=True)
    chat = Chat.create("joe", members=["jack", "mary"], settings=settings)
    for number in range(40):
        for person in (f"guest {number}", "jill"):
            chat.join(person)
            Presence(chat.id).attend(person)
            Presence(chat.id).type(person)
            for _ in range(6):
                sent = chat.send(person, "hello", mentions=["jack", "mary", "joe"])
                chat.edit(person, sent.seq, "hello again")
                chat.react("mary", sent.seq, "👍")
        chat.delete_message(chat.news("joe").last_seq)
        chat.send("jack", "hello")
        chat.mute(f"guest {number}", seconds=60)
        chat.block(f"guest {number}")
        chat.unblock(f"guest {number}")
        Inbox("jill").erase()
        measures = {b"hash": redis.hlen, b"zset": redis.zcard, b"stream": redis.xlen}
        for key in redis.keys(f"*:{chat.id}*"):
            assert measures.get(redis.type(key), lambda key: 1)(key) <= LARGEST, key
        assert chat.news("mary").unread == sum(
            1 for each in chat.history("mary", limit=200).messages if not each.event
        )
    lasting = [key for key in redis.keys(f"*:{chat.id}*") if redis.ttl(key) == -1]
    assert len(lasting) < 60  # parts of what was sent are small, and go with it

    chat.delete()

    assert [key for key in redis.keys(f"*:{chat.id}*") if redis.ttl(key) == -1] == []
    assert redis.zscore(ChatKeys(chat.id).names, chat.id) is None


def test_deleted_messages_are_forgotten_when_they_are_many(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], settings=replace(FREE, max_messages=100))
    deleted = ChatKeys(chat.id).deleted
    for number in range(15):
        chat.add(["jill"])
        for _ in range(40):
            chat.send("jill", "secret")
        if number % 3 == 0:
            chat.send("joe", f"kept {number}")
        Inbox("jill").erase()
        chat.rename(f"{number}")

        assert redis.zcard(deleted) + redis.xlen(ChatKeys(chat.id).messages) <= 2 * 100
        kept = [each.text for each in chat.history("jack", limit=200).messages if not each.event]
        assert chat.news("jack").unread == len(kept)
        assert {each.user: each.unread for each in chat.members()}["jack"] == len(kept)


def test_the_number_of_blocked_senders_is_limited(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], settings=FREE)
    blocked = ChatKeys(chat.id).blocked
    redis.hset(blocked, mapping={f"p{number}": 1 for number in range(9_999)})
    chat.block("one more", by="joe")
    before = texts(chat.history("joe").messages)

    with pytest.raises(TooManyBlocked):
        chat.block("jack", by="joe")
    chat.block("p7", by="joe")  # who is blocked is blocked

    assert redis.hlen(blocked) == 10_000
    assert texts(chat.history("joe").messages) == before
    assert [each.user for each in chat.members()] == ["joe", "jack"]
    chat.unblock("p7")
    chat.block("jack", by="joe")
