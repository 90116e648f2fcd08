"""Pages of the control room go on where something that is stored cannot be read, and show that."""

from __future__ import annotations

import pytest

from components.kit.stored import UNREADABLE
from components.services.chat.keys import ChatKeys
from components.services.mailboxes import Mailbox
from components.services.mailboxes.keys import MailboxKeys
from tests.chat.admin.conversations import guild
from tests.support.poison import BODIES, FIELDS, put_into_chat, put_into_mailbox

CHATS, MAILBOXES = "/admin/components/chat/", "/admin/components/mailbox/"


@pytest.fixture
def reader(staff):
    return staff("view_chat", "view_messages_chat", "view_mailbox", "view_messages_mailbox")


def text_of(client, address):
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_messages_that_cannot_be_read(reader, redis, body):
    guild()
    put_into_chat(redis, "guild:7", b=body)
    Mailbox("jack").push("jill", "well")
    put_into_mailbox(redis, "jack", body=body)

    said = text_of(reader, f"{CHATS}messages/?chat=guild:7")
    assert UNREADABLE in said
    assert "welcome" in said
    assert "guild:7" in text_of(reader, CHATS)
    text_of(reader, f"{CHATS}chat/?chat=guild:7")
    written = text_of(reader, f"{MAILBOXES}messages/?mailbox=jack")
    assert UNREADABLE in written
    assert "well" in written
    assert "jack" in text_of(reader, MAILBOXES)


@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize(
    "field", ["settings", "title", "created_at", "created_by", "seq", "n", "bytes", "at"]
)
def test_a_chat_that_cannot_be_read(reader, redis, field, value):
    guild()
    guild("guild:8", title="Others")
    redis.hset(ChatKeys("guild:7").chat, field, value)

    assert "Others" in text_of(reader, CHATS)
    text_of(reader, f"{CHATS}chat/?chat=guild:7")
    assert "welcome" in text_of(reader, f"{CHATS}messages/?chat=guild:7")


def test_members_that_cannot_be_read(reader, redis):
    guild()
    redis.hset(ChatKeys("guild:7").members, "jack", b"\xff")

    assert "jill" in text_of(reader, f"{CHATS}chat/?chat=guild:7")


@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("field", ["pulled_at", "pushed", "acknowledged", "dropped", "limit"])
def test_a_mailbox_that_cannot_be_read(reader, redis, field, value):
    Mailbox("jack").push("jill", "well")
    Mailbox("jack").pull()
    redis.hset(MailboxKeys("jack").mailbox, field, value)

    assert "jack" in text_of(reader, MAILBOXES)
    if field not in ("pulled_at", "pushed"):
        assert "well" in text_of(reader, f"{MAILBOXES}messages/?mailbox=jack")
