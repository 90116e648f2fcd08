"""
What is stored and cannot be read, under each key of messages: lists, pages and commands go on, and show a
placeholder.
"""

import json

import pytest
from redis import Redis

from components.kit.decoding import UNREADABLE
from components.kit.keyspace import bucket
from components.services.autocomplete import AddressBook, AddressBookReader, RecentContacts
from components.services.autocomplete import keys as autocomplete_keys
from components.services.chat import Chat, ChatReader, Inbox, Position
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.mailboxes import Fate, Mailbox, MailboxReader
from components.services.mailboxes.keys import MailboxKeys, index
from tests.support.chats import FREE
from tests.support.poison import BODIES, FIELDS, put_into_chat, put_into_mailbox

FIELDS_OF_CHATS = [
    *("title", "created_at", "created_by", "seq", "n", "at", "bytes", "cut", "base", "revision"),
    *("history", "max_age", "max_messages", "is_open"),
]
FIELDS_OF_MAILBOXES = [
    *("pulled_at", "pushed", "acknowledged", "dropped", "known", "told", "told_with", "limit", "first"),
    *("last", "last_dropped", "last_acknowledged", "last_clearing"),
]


def scene() -> tuple[Chat, Chat]:
    """A chat that is to be damaged, and one that is not, of the same person."""
    bad = Chat.create("jill", members=["joe"], text="before", id="bad", settings=FREE)
    return bad, Chat.create("jill", members=["joe"], text="well", id="good", settings=FREE)


def assert_listed() -> None:
    for found in (Inbox("joe").chats(), Inbox("joe").fetch()):
        assert {each.chat_id for each in found} == {"good", "bad"}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_message_that_cannot_be_read_fails_no_list(redis: Redis, body: bytes) -> None:
    bad, good = scene()
    seq = put_into_chat(redis, bad.id, b=body)
    bad.send("jill", "after")

    page = bad.history("joe")
    assert [each.text for each in page.messages if not each.event] == ["before", UNREADABLE, "after"]
    assert [each.seq for each in page.messages if each.is_unreadable] == [seq]
    assert bad.message("joe", seq).is_unreadable
    assert bad.message("joe", seq).sender == "jill"
    assert_listed()
    changed = {each.chat_id: each for each in Inbox("joe").changes({"bad": Position(2)}).chats}
    assert [each.text for each in changed["bad"].messages] == [UNREADABLE, "after"]
    shown = ChatReader().messages("bad").messages
    assert [each.text for each in shown[1:]] == ["before", UNREADABLE, "after"]
    assert {info.id for info in ChatReader().page()} == {"good", "bad"}
    json.dumps([each.data for each in page.messages], allow_nan=False)
    # It is let go like any other.
    bad.acknowledge("joe", seq)
    bad.delete_message(seq)
    assert UNREADABLE not in [each.text for each in bad.history("joe").messages]
    assert good.news("joe").unread == 1


@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("field", ["s", "c", "t", "n", "m"])
def test_damaged_data_beside_a_text_breaks_no_list(redis: Redis, field: str, value: bytes) -> None:
    bad, _good = scene()
    seq = put_into_chat(redis, bad.id, **{field: value})

    assert [each.seq for each in bad.history("joe").messages] == [1, 2, seq]
    assert_listed()
    assert len(ChatReader().messages("bad").messages) == 3
    assert bad.acknowledge("joe", seq) == seq
    bad.configure(max_age=3600)
    bad.send("jill", "after")
    assert_listed()
    assert bad.history("joe").messages[-1].text == "after"
    assert {each.user for each in bad.members()} == {"joe", "jill"}


def test_an_entry_without_its_fields_fails_no_list(redis: Redis) -> None:
    bad, _good = scene()
    redis.xadd(ChatKeys(bad.id).messages, {"a": "b"}, id="3-0")
    redis.hset(ChatKeys(bad.id).chat, "seq", 3)

    assert [each.is_unreadable for each in bad.history("joe").messages] == [False, False, True]
    assert_listed()
    assert bad.trim(before=4) == 3


@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("field", FIELDS_OF_CHATS)
def test_a_chat_that_cannot_be_read_fails_no_list_of_chats(redis: Redis, field: str, value: bytes) -> None:
    scene()
    redis.hset(ChatKeys("bad").chat, field, value)

    for found in (Inbox("joe").chats(), Inbox("joe").fetch()):
        assert "good" in [each.chat_id for each in found]
        assert sorted([*(each.chat_id for each in found), *found.unavailable]) == ["bad", "good"]
    changes = Inbox("joe").changes({"bad": Position(1)})
    assert changes.gone == []
    assert "bad" in changes.positions
    infos = {info.id: info for info in ChatReader().page()}
    assert infos.keys() == {"bad", "good"}
    assert not infos["good"].is_unreadable
    assert ChatReader().find("bad") == infos["bad"]
    ChatReader().messages("bad")


@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
def test_a_membership_that_cannot_be_read_fails_no_list(redis: Redis, value: bytes) -> None:
    bad, _good = scene()
    members = ChatKeys("bad").members
    redis.hset(members, "joe", value)

    found = Inbox("joe").chats()
    assert ([each.chat_id for each in found], found.unavailable) == (["good"], ["bad"])
    assert {each.user: each.is_unreadable for each in bad.members()} == {"jill": False, "joe": True}
    assert {each.chat_id for each in Inbox("jill").chats()} == {"bad", "good"}


@pytest.mark.parametrize("name", [b"\xff\xfe", b"", b"x" * 2_000])
def test_a_name_that_is_none_fails_no_list(redis: Redis, name: bytes) -> None:
    bad, _good = scene()
    record = redis.hget(ChatKeys("bad").members, "joe")
    redis.hset(ChatKeys("bad").members, name, record)
    redis.hset(ChatKeys("bad").blocked, name, b"x")
    keys = ChatKeys("bad")
    sets = [InboxKeys("joe").hints, InboxKeys("joe").past, keys.names, keys.deleted]
    for each in (*sets, keys.reads, f"{keys.mentions}/joe", f"{keys.own}/joe"):
        redis.zadd(each, {name: 1})

    assert_listed()
    assert len(bad.members()) == 3
    assert len(bad.blocked()) == 1
    assert {"bad", "good"} <= {info.id for info in ChatReader().page()}
    assert len(bad.history("joe").messages) == 2
    bad.acknowledge("joe", 2)
    bad.trim(before=2)
    assert Inbox("joe").erase().chats == 0
    assert {each.user for each in Chat("good").members()} == {"jill"}


@pytest.mark.parametrize("body", [body for name, body in BODIES.items() if not name.startswith("an event")])
def test_a_mail_that_cannot_be_read_fails_no_list(redis: Redis, body: bytes) -> None:
    jack = Mailbox("jack")
    jack.push("jill", "before")
    bad = put_into_mailbox(redis, "jack", body=body)
    jack.push("jill", "after")

    for found in (jack.peek(), jack.pull(), jack.pull(newest=True), MailboxReader().messages("jack")):
        assert [mail.text for mail in found] == ["before", UNREADABLE, "after"]
        assert [mail.is_unreadable for mail in found] == [False, True, False]
    assert jack.status(bad, sender="jill").fate is Fate.HANDED_OUT
    assert [info.name for info in MailboxReader().page()] == ["jack"]
    assert jack.acknowledge(bad) == 2
    assert jack.status(bad, sender="jill").fate is Fate.ACKNOWLEDGED


@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("field", ["from", "at"])
def test_damaged_data_beside_a_mail_breaks_no_list(redis: Redis, field: str, value: bytes) -> None:
    jack = Mailbox("jack")
    jack.push("jill", "before")
    bad = put_into_mailbox(redis, "jack", **{field: value})

    assert [mail.id for mail in jack.pull()] == [bad - 1, bad]
    assert jack.status(bad).fate is Fate.HANDED_OUT
    assert jack.acknowledge(bad) == 2
    assert jack.info().depth == 0


@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("field", FIELDS_OF_MAILBOXES)
def test_a_mailbox_whose_figures_cannot_be_read_goes_on(redis: Redis, field: str, value: bytes) -> None:
    jack = Mailbox("jack", limit=2, when_full="drop_oldest")
    sent = [jack.push("jill", text) for text in "abc"]
    redis.hset(MailboxKeys("jack").mailbox, field, value)

    assert [info.name for info in MailboxReader().page()] == ["jack"]
    assert [mail.text for mail in jack.peek()] == ["b", "c"]
    jack.status(sent[-1].id) if field not in ("first", "last") else None
    assert jack.missed() >= 0
    assert [mail.text for mail in jack.pull()] == ["b", "c"]
    jack.push("jill", "d")
    assert [mail.text for mail in jack.pull(after=jack.pull()[-1].id)] == []
    assert jack.clear() == 0


def test_names_of_mailboxes_and_senders_that_are_no_text_fail_no_list(redis: Redis) -> None:
    jack = Mailbox("jack")
    jack.push("jill", "a")
    tag = bucket("jack")
    redis.zadd(index(tag), {b"\xff": 1})
    redis.hset(MailboxKeys("jack").blocked, b"\xff", b"x")
    redis.zadd(MailboxKeys("jack").handed, {b"\xff": 1})
    redis.zadd(MailboxKeys("jack").dropped, {b"\xff": 1})

    assert [info.name for info in MailboxReader().page()] == ["\\xff", "jack"]
    assert list(jack.blocked()) == ["\\xff"]
    assert len(jack.pull()) == 1


def test_an_entry_of_an_address_book_that_cannot_be_read_is_shown_as_it_is(redis: Redis) -> None:
    book = AddressBook("people")
    for number, name in enumerate(["anna", "anton"]):
        book.add(name, id=number)
        book.select(number)
    row_key = autocomplete_keys.BookKeys("people").rows
    for field, row in redis.hgetall(row_key).items():
        redis.hset(row_key, field, row.replace(b"anton", b"ant\xffn"))
    redis.zadd(autocomplete_keys.names("all"), {b"\xff": 0})

    assert {each.id for each in book.complete("an")} >= {"0"}
    assert len(book.top()) >= 1
    assert "people" in [info.name for info in AddressBookReader().page()]
    assert "people" in AddressBookReader().names()


@pytest.mark.parametrize("field", ["count", "loaded_at", "version"])
@pytest.mark.parametrize("value", FIELDS.values(), ids=FIELDS)
def test_figures_of_a_book_that_cannot_be_read_fail_no_list(redis: Redis, field: str, value: bytes) -> None:
    AddressBook("bad").add("anna", id=1)
    AddressBook("good").add("anna", id=1)
    redis.hset(autocomplete_keys.BookKeys("bad").book, field, value)

    assert [info.name for info in AddressBookReader().page()] == ["bad", "good"]


@pytest.mark.parametrize("name", [b"\xff", b"", b"jill"])
def test_a_contact_that_cannot_be_read_fails_no_list(redis: Redis, name: bytes) -> None:
    contacts = RecentContacts("joe")
    contacts.touch("jack", label="Jack")
    redis.zadd(autocomplete_keys.ContactsKeys("joe").contacts, {name: 1e300})
    redis.hset(autocomplete_keys.ContactsKeys("joe").labels, name, b"\xff\xfe")

    assert len(contacts.list()) == 2
    assert [each.id for each in contacts.complete("ja")] == ["jack"]
