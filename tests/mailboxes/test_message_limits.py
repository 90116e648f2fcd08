"""
Limits of chats, inboxes and mailboxes: a server that has no room left (maxmemory, noeviction) refuses what takes
more, and can be read and emptied; and no key grows with use alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis import Redis

from components.exceptions import MessageNotFound, RedisUnavailable
from components.kit.keyspace import bucket
from components.services.autocomplete import RecentContacts
from components.services.chat import Chat, ChatReader, ChatSettings, Inbox, Position
from components.services.chat.keys import InboxKeys
from components.services.mailboxes import Fate, Mailbox, MailboxReader
from components.services.mailboxes.keys import MailboxKeys, index
from tests.mailboxes.test_mailboxes import sent
from tests.support.chats import FREE, let_pass


@contextmanager
def full(redis: Redis) -> Iterator[None]:
    """No room is left, and none comes from what is freed. Scripts are loaded on the way, as by a fresh process."""
    redis.script_flush()
    redis.config_set("maxmemory", 1)
    try:
        yield
    finally:
        redis.config_set("maxmemory", 0)


def test_a_full_mailbox_can_be_emptied(redis: Redis) -> None:
    jack = Mailbox("jack")
    pushed = [jack.push("jill", f"text {number}") for number in range(4)]
    jack.block("joe")

    with full(redis):
        with pytest.raises(RedisUnavailable, match="maxmemory"):
            jack.push("jill", "no room")
        assert Mailbox("nobody").pull() == []
        Mailbox("nobody").erase()
        assert [mail.text for mail in jack.peek()] == [f"text {number}" for number in range(4)]
        assert [mail.text for mail in jack.pull(2)] == ["text 0", "text 1"]
        assert [mail.is_again for mail in jack.pull(2)] == [True, True]
        assert jack.acknowledge(pushed[0].id) == 1
        assert [mail.text for mail in jack.pull(2, after=pushed[1].id)] == ["text 2", "text 3"]
        assert jack.status(pushed[1].id, sender="jill").fate is Fate.ACKNOWLEDGED
        assert jack.depth() == jack.info().depth == 2
        assert MailboxReader().page()[0].acknowledged == 2
        jack.unblock("joe")
        assert jack.clear() == 2
        assert jack.missed() == 2
        jack.erase()
    assert redis.dbsize() == 0


def test_a_full_chat_can_be_read_and_emptied(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack", "jill"], text="first", settings=FREE)
    for number in range(5):
        chat.send("jack", f"text {number}", mentions=["jill"])
    chat.send("joe", "last")

    with full(redis):
        with pytest.raises(RedisUnavailable, match="maxmemory"):
            chat.send("joe", "no room")
        assert len(chat.history("jill").messages) == 8
        assert Inbox("jill").chats()[0].unread == 7
        assert len(Inbox("jill").fetch()[0].messages) == 8
        assert Inbox("jill").changes({chat.id: Position(1)}).chats[0].last_seq == 8
        assert len(ChatReader().messages(chat.id).messages) == 8
        assert len(chat.members()) == 3
        assert chat.acknowledge("jill", 3) == 3
        assert Inbox("jill").acknowledge({chat.id: 4}) == {chat.id: 4}
        assert Inbox("jill").chats()[0].mentions == 3
        chat.delete_message(3, by="jack")
        assert chat.trim(before=3) == 2
        chat.leave("jill")
        assert Inbox("jill").chats() == []


@pytest.mark.parametrize("has_spoken", [True, False])
def test_a_person_can_be_erased_on_a_full_server(redis: Redis, has_spoken: bool) -> None:
    chat = Chat.create("joe", members=["jack"], text="first", settings=FREE)
    left = Chat.create("joe", members=["jack"], settings=FREE)
    if has_spoken:
        chat.send("jack", "hello")
        left.send("jack", "good bye")
    RecentContacts("jack").touch("joe")
    RecentContacts("joe").touch("jack")
    left.leave("jack")

    with full(redis):
        erased = Inbox("jack").erase()

    assert (erased.chats, erased.messages) == ((2, 2) if has_spoken else (0, 0))
    assert [member.user for member in chat.members()] == ["joe"]
    assert RecentContacts("joe").list() == []
    assert not [key for key in redis.keys("*inboxes*") if b"jack" in key]


def test_trim_removes_old_messages_and_moderators_block_people_and_delete_chats(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jack"], text="a", settings=ChatSettings(max_age=60))
    let_pass(redis, chat.id, 61)

    with full(redis):
        chat.trim(before=0)
        chat.block("jack", by="joe")
        assert list(chat.blocked()) == ["jack"]
        chat.unblock("jack", by="joe")
        chat.delete()
        assert ChatReader().count() == 0


def test_a_hint_that_was_denied_for_long_does_not_fail_an_inbox(redis: Redis) -> None:
    Chat.create("joe", id="good")
    hints = InboxKeys("joe").hints
    redis.zadd(hints, {"gone": 1})

    with full(redis):
        assert [chat.chat_id for chat in Inbox("joe").chats()] == ["good"]

    assert redis.zscore(hints, "gone") is None
    assert redis.zscore(InboxKeys("joe").past, "gone") is not None


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
    names = index(bucket("jack"))
    redis.zadd(names, {"old": 1})

    Mailbox("jack").push("jill", "a")

    assert redis.zrange(names, 0, -1) == [b"jack"]
    assert 366 < redis.ttl(names) / 86_400 <= 368  # nobody may come after who uses this bucket
    redis.delete(names)
    Mailbox("jack").pull()
    assert redis.ttl(names) > 0


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
    assert Inbox("jack").erase().messages == 40
    assert redis.exists(past) == 0


def test_a_chat_that_is_left_again_is_remembered_from_then_on(redis: Redis) -> None:
    past = InboxKeys("jack").past
    chat = Chat.create("joe", members=["jack"])
    chat.leave("jack")
    redis.zadd(past, {chat.id: 1})
    chat.add(["jack"])
    chat.send("jack", "hello")

    chat.leave("jack")

    assert redis.zscore(past, chat.id) > 10**12
