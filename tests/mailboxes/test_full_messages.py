"""
A server that has no room left (maxmemory, noeviction): what takes nothing more is refused with a clear error, and
what reads, acknowledges and frees works, so that a full server can be emptied.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.services.autocomplete import RecentContacts
from components.services.chat import Chat, ChatReader, ChatSettings, Inbox, Position
from components.services.chat.keys import InboxKeys
from components.services.mailboxes import Fate, Mailbox, MailboxReader
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
