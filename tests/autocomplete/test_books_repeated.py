"""A call that is sent again, its reply being lost, does not undo what others did meanwhile."""

from __future__ import annotations

from typing import Any

from redis import Redis

from components.kit.at_once import at_once
from components.services.autocomplete import AddressBook, Entry, RecentContacts
from components.services.autocomplete.contacts import DROP, TOUCH
from components.services.autocomplete.folding import FOLDING
from components.services.autocomplete.keys import BookKeys, ContactsKeys
from components.services.autocomplete.loading import BEGIN, WRITE, row


def write(redis: Redis, call: str, *rows: str) -> Any:
    keys = BookKeys("guild")
    return at_once(WRITE.run(redis, keys, token="", mode="put", folding=FOLDING, call=call, given=rows))


def test_a_repeated_removal_does_not_remove_a_returned_member(redis: Redis) -> None:
    book = AddressBook("guild")
    book.add("ann", id=1)

    first = write(redis, "call", "1")
    book.add("ann", id=1)

    assert write(redis, "call", "1") == first
    assert book.complete("a") == [Entry("1", "ann")]


def test_an_entry_that_left_does_not_come_back_by_a_repeated_call(redis: Redis) -> None:
    book = AddressBook("guild")

    first = write(redis, "call", row(1, "ann", words=True))
    book.remove(1)

    assert write(redis, "call", row(1, "ann", words=True)) == first
    assert (book.complete("a"), book.count()) == ([], 0)


def test_a_repeated_touch_does_not_overtake_later_touches(redis: Redis) -> None:
    recent = RecentContacts("jack")
    again = {"contact": "jill", "label": "Jill", "limit": 100, "call": "call"}

    at_once(TOUCH.run(redis, ContactsKeys("jack"), **again))
    recent.touch("joe")
    at_once(TOUCH.run(redis, ContactsKeys("jack"), **again))

    assert [contact.id for contact in recent.list()] == ["joe", "jill"]


def test_a_repeated_removal_leaves_a_contact_touched_since(redis: Redis) -> None:
    recent = RecentContacts("jack")
    recent.touch("jill")

    for _ in range(2):
        assert at_once(DROP.run(redis, ContactsKeys("jack"), contact="jill", call="call")) == 1
        recent.touch("jill")

    assert [contact.id for contact in recent.list()] == ["jill"]


def test_a_load_that_another_ended_is_not_begun_again_by_a_repeated_call(redis: Redis) -> None:
    keys = BookKeys("guild")
    for call in ("first", "second"):
        at_once(BEGIN.run(redis, keys, call=call))

    at_once(BEGIN.run(redis, keys, call="first"))

    assert redis.hget(keys.loading, "token") == b"second"
