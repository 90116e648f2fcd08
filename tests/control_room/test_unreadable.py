"""Pages of the control room go on where something that is stored cannot be read, and show that."""

from __future__ import annotations

import math

import pytest

from components.kit.keyspace import bucket
from components.kit.stored import UNREADABLE
from components.services.chat.keys import ChatKeys
from components.services.counters import Counter
from components.services.counters.keys import CounterKeys
from components.services.locks import lock
from components.services.locks.keys import LockKeys
from components.services.mailboxes import Mailbox
from components.services.mailboxes.keys import MailboxKeys
from components.services.rows import RowCache, member
from components.services.rows.keys import RowKeys
from components.services.semaphores import Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.chat.admin.conversations import guild
from tests.support.poison import BODIES, FIELDS, put_into_chat, put_into_mailbox
from tests.support.rows import SHAPE

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


ODD_NAMES = [b"", b"\xff\xfe", b"x" * 2_000, b"a\0b", b"{", b"a/b/c"]
PAGES = [
    *("lock/", "lock/?q=good", "semaphore/", "semaphore/semaphore/?semaphore=good"),
    *("counter/", "cachedrow/", "cachedrow/model/?model=items", "cachedrow/row/?row=items:good"),
]


@pytest.mark.parametrize("score", [math.inf, -math.inf, 1e300, 1e17])
def test_pages_go_on_where_somebody_else_has_written_odd_names_and_scores(admin_client, redis, score):
    lock("good").acquire()
    semaphore = Semaphore("good", limit=3)
    semaphore.acquire()
    Counter("good:one").update(3)
    RowCache("items", SHAPE).schedule("good", 60)
    row = member("items", "good")
    for key in (
        LockKeys.named("good").held,
        SemaphoreKeys("good").names,
        SemaphoreKeys("good").holders,
        SemaphoreKeys("good").since,
        SemaphoreKeys("good").heavy,
        SemaphoreKeys("good").queue,
        SemaphoreKeys("good").beats,
        CounterKeys(bucket("good:one")).names,
        RowKeys(bucket(row)).schedule,
    ):
        redis.zadd(key, dict.fromkeys(ODD_NAMES, score))
    redis.zadd(RowKeys(bucket(row)).schedule, {row: score})

    for page in PAGES:
        response = admin_client.get(f"/admin/components/{page}", follow=True)
        assert response.status_code == 200, page
        assert "good" in response.text, page
