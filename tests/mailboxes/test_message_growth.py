"""
What bounds each key of inboxes and mailboxes, and what ends it: none grows with use alone.

hints: memberships, and what was denied for a day. past: chats in which something of theirs may be left. Of mailboxes,
messages and handed: the limit. dropped: 1,000, a month. sent: two parts of 10,000 fields, or two for each message of
the limit; two days. blocked: 10,000 senders. names: an entry for each mailbox, a year. mailbox: always the
same fields, a year.
"""

from __future__ import annotations

import re

import pytest
from redis import Redis

from components.exceptions import MessageNotFound, TooManyBlocked
from components.kit.keyspace import bucket
from components.services.chat import Chat, Inbox
from components.services.chat.keys import InboxKeys
from components.services.mailboxes import Fate, Mailbox, mailbox
from components.services.mailboxes.keys import MailboxKeys, index
from tests.support.chats import FREE
from tests.support.mailboxes import sent, tomorrow

TAG = bucket("jack")
YEAR, MONTH, TWO_DAYS = 366 * 86_400, 30 * 86_400, 2 * 86_400
PART = 10_000  # fields of what is known of pushes, in _gone.lua of mailboxes


def almost_full(redis: Redis, ago: int = 0, *, without: int = 0) -> None:
    """What is known of this day's pushes has room for *without* fields."""
    key = sent("jack", ago=ago)
    missing = PART - redis.hlen(key) - without
    redis.hset(key, mapping={f"other {number}": "1 1 call" for number in range(missing)})


def test_a_push_is_known_until_as_many_came_after_it(redis: Redis) -> None:
    jack = Mailbox("jack", limit=3, when_full="drop_oldest")
    first = jack.push("jill", "a", client_id="a")
    almost_full(redis, without=1)
    assert not jack.push("jill", "b", client_id="b").is_duplicate  # a new part begins after it

    # In the part before, it is known like one of yesterday.
    assert jack.push("jill", "a", client_id="a").id == first.id
    assert jack.push("jill", "b", client_id="b").is_duplicate
    almost_full(redis, without=1)
    jack.push("jill", "c", client_id="c")
    assert not jack.push("jill", "a", client_id="a").is_duplicate

    large = Mailbox("jack", limit=20_000)  # which knows more
    almost_full(redis)
    large.push("jill", "d")
    assert redis.hlen(sent("jack")) == PART + 1


def test_senders_of_dropped_messages_are_known_in_the_part_before_too(redis: Redis) -> None:
    jack = Mailbox("jack")
    pushed = jack.push("jill", "a")
    almost_full(redis, without=1)
    jack.pull()
    assert jack.acknowledge(pushed.id) == 1
    assert redis.hlen(sent("jack")) == 0

    assert jack.status(pushed.id, sender="jill").fate is Fate.ACKNOWLEDGED
    with pytest.raises(MessageNotFound):
        jack.status(pushed.id, sender="joe")


def test_each_key_of_a_mailbox_has_an_end(redis: Redis) -> None:
    jack = Mailbox("jack", limit=2, when_full="drop_oldest")
    for number in range(5):
        jack.push("jill", f"{number}")
        jack.pull(1)
    tomorrow(redis, "jack")
    jack.push("jill", "later")
    jack.pull()

    ends = {key.decode().rpartition("}:")[2]: redis.ttl(key) for key in redis.keys("*mailboxes*")}
    assert {re.sub(r":\d+$", "", name) for name in ends} == {
        *("mailbox:jack", "messages:jack", "handed:jack", "dropped:jack", "sent:jack", "names"),
    }
    assert 0 < ends.pop("names") <= YEAR + TWO_DAYS  # its entries go a year after the last use
    assert all(0 < left <= YEAR for left in ends.values())
    assert 0 < ends["dropped:jack"] <= MONTH
    assert all(left <= TWO_DAYS for name, left in ends.items() if name.startswith("sent:"))


def test_memory_of_dropped_messages_is_bounded(redis: Redis) -> None:
    jack = Mailbox("jack", limit=1, when_full="drop_oldest")
    jack.push("jill", "a")
    dropped = MailboxKeys("jack").dropped
    redis.zadd(dropped, {str(number): number for number in range(1_000)})

    jack.push("jill", "b")
    assert redis.zcard(dropped) == 1_000
    jack.clear()
    assert redis.zcard(dropped) == 1_000


def test_names_of_mailboxes_go_a_year_after_their_last_use(redis: Redis) -> None:
    redis.zadd(index(TAG), {"old": 1})

    Mailbox("jack").push("jill", "a")

    assert redis.zrange(index(TAG), 0, -1) == [b"jack"]
    assert 366 < redis.ttl(index(TAG)) / 86_400 <= 368, "nobody may come after who uses this bucket"

    redis.delete(index(TAG))
    Mailbox("jack").pull()
    assert redis.ttl(index(TAG)) > 0


def test_a_mailbox_refuses_the_mail_of_so_many_and_no_more(redis: Redis) -> None:
    jack = Mailbox("jack")
    jack.block("joe")
    blocked = MailboxKeys("jack").blocked
    redis.hset(blocked, mapping={f"other {number}": "1" for number in range(mailbox.MAX_BLOCKED - 1)})

    with pytest.raises(TooManyBlocked):
        jack.block("jill")
    jack.block("joe")  # is blocked already
    assert redis.hlen(blocked) == mailbox.MAX_BLOCKED
    jack.unblock("joe")
    jack.block("jill")
    assert redis.hexists(blocked, "jill")


# Inboxes


def test_the_past_of_an_inbox_forgets_chats_in_which_nothing_of_theirs_can_be_left(redis: Redis) -> None:
    past = InboxKeys("jack").past
    for number in range(400):
        chat = Chat(f"gone:{number}")
        redis.zadd(past, {chat.id: 1})
    kept = Chat.create("joe", members=["jack"], settings=FREE)
    for _ in range(40):
        kept.add(["jack"])
        kept.send("jack", "hello")
        kept.leave("jack")

    assert redis.zcard(past) < 150
    assert redis.zscore(past, kept.id) is not None
    assert Inbox("jack").erase().messages == 40
    assert redis.exists(past) == 0


@pytest.mark.slow
def test_a_chat_is_kept_as_long_as_something_said_before_they_left_may_be_there(redis: Redis) -> None:
    past, hour = InboxKeys("jack").past, 3_600_000
    chats = [Chat.create("joe", members=["jack"], id=f"chat:{number}", settings=FREE) for number in range(60)]
    for chat in chats:
        chat.send("jack", "hello")
        chat.leave("jack")
    seconds, _ = redis.time()
    assert redis.zcard(past) == 60

    # Of half of them all is trimmed away that was said before they left, long ago.
    for chat in chats[:30]:
        chat.trim(before=chat.info().last_seq + 1)
        chat.send("joe", "later")
        redis.zadd(past, {chat.id: int(seconds) * 1000 - 2 * hour})
    again = Chat.create("joe", members=["jack"], settings=FREE)
    for _ in range(40):
        again.add(["jack"])
        again.leave("jack")

    left = {each.decode() for each in redis.zrange(past, 0, -1)}
    assert {chat.id for chat in chats[30:]} <= left
    assert len(left & {chat.id for chat in chats[:30]}) < 30
    assert Inbox("jack").erase().messages == 30


def test_an_aggregation_that_returns_and_leaves_is_remembered_from_then_on(redis: Redis) -> None:
    past = InboxKeys("jack").past
    chat = Chat.create("joe", members=["jack"])
    chat.leave("jack")
    redis.zadd(past, {chat.id: 1})
    chat.add(["jack"])

    chat.leave("jack")

    assert redis.zscore(past, chat.id) > 10**12


def test_hints_that_were_denied_for_a_day_go(redis: Redis) -> None:
    hints = InboxKeys("jack").hints
    redis.zadd(hints, {f"gone:{number}": 1 for number in range(500)})

    assert Inbox("jack").chats() == []

    assert redis.exists(hints) == 0
    assert redis.zcard(InboxKeys("jack").past) <= 500
