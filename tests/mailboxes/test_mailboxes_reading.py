"""MailboxReader: all mailboxes, by page."""

from __future__ import annotations

import pytest
from redis import Redis

from components.kit.keyspace import bucket
from components.services.mailboxes import Mailbox, MailboxReader
from components.services.mailboxes.keys import index
from tests.support.mailboxes import texts

NAMES = [f"person:{number}" for number in range(70)]


@pytest.fixture
def reader(redis: Redis) -> MailboxReader:
    for name in NAMES:
        Mailbox(name).push("jill", "one")
    return MailboxReader()


def test_all_are_listed_once_whatever_the_pages(reader: MailboxReader) -> None:
    assert reader.count() == 70
    for size in (7, 100):
        pages = [reader.page(offset=offset, limit=size) for offset in range(0, 70, size)]
        assert sorted(info.name for page in pages for info in page) == sorted(NAMES)
    assert reader.page(offset=70) == reader.page(limit=0) == []


def test_a_page_is_sorted_by_name_and_says_how_each_stands(reader: MailboxReader) -> None:
    page = reader.page(limit=20)

    assert [info.name for info in page] == sorted(info.name for info in page)
    assert page == [Mailbox(info.name).info() for info in page]
    assert {info.depth for info in page} == {1}


def test_one_is_found_by_its_name(reader: MailboxReader) -> None:
    found = reader.find("person:7")

    assert found == Mailbox("person:7").info()
    assert reader.find("person:71") is reader.find("") is None


def test_a_reader_who_only_pulls_has_a_mailbox_too(redis: Redis) -> None:
    Mailbox("jack").pull()

    assert [info.name for info in MailboxReader().page()] == ["jack"]
    assert MailboxReader().find("jack") is not None


def test_looking_makes_no_mailbox(redis: Redis) -> None:
    Mailbox("jack").info()
    Mailbox("jack").peek()
    Mailbox("jack").acknowledge(1)
    MailboxReader().find("jack")

    assert MailboxReader().count() == 0
    assert redis.dbsize() == 0


def test_messages_are_read_by_page_and_not_handed_out(redis: Redis) -> None:
    for text in "abcde":
        Mailbox("jack").push("jill", text)
    reader = MailboxReader()

    first = reader.messages("jack", limit=3)
    second = reader.messages("jack", first=first[-1].id + 1, limit=3)

    assert (texts(first), texts(second)) == (list("abc"), list("de"))
    assert Mailbox("jack").info().handed_out == 0


def test_objects_unused_for_a_year_leave_the_list(redis: Redis) -> None:
    old, new = NAMES[:2]
    mine = [name for name in NAMES if bucket(name) == bucket(old)][1]
    for name in (old, new):
        Mailbox(name).push("jill", "one")
    redis.zadd(index(bucket(old)), {old: 10_000})

    Mailbox(mine).push("jill", "one")

    listed = {info.name for info in MailboxReader().page()}
    assert listed == {new, mine}
