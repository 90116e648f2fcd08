"""A call that is sent again, its reply being lost, does not undo what others did meanwhile."""

from __future__ import annotations

from typing import Any

from redis import Redis

from components.kit.buckets import bucket
from components.services.autocomplete import AddressBook, Entry, RecentContacts, contacts, core, keys, loading
from components.services.autocomplete.folding import FOLDING


def write(redis: Redis, call: str, *rows: str) -> Any:
    return core._write(redis, keys=core.Keys("guild", call).write, args=["", "put", FOLDING, *rows])


def test_a_removal_that_is_repeated_does_not_remove_who_came_back(redis: Redis) -> None:
    book = AddressBook("guild")
    book.add("ann", id=1)

    first = write(redis, "call", "1")
    book.add("ann", id=1)

    assert write(redis, "call", "1") == first
    assert book.complete("a") == [Entry("1", "ann")]


def test_an_entry_that_left_does_not_come_back_by_a_repeated_call(redis: Redis) -> None:
    book = AddressBook("guild")

    first = write(redis, "call", core.row(1, "ann", words=True))
    book.remove(1)

    assert write(redis, "call", core.row(1, "ann", words=True)) == first
    assert (book.complete("a"), book.count()) == ([], 0)


def test_a_selection_that_is_repeated_counts_once(redis: Redis) -> None:
    book = AddressBook("guild")
    book.add("ann", id=1)
    for _ in range(2):
        core._select(redis, keys=core.Keys("guild", "call").select, args=[1, 1])

    assert [round(ranked.weight) for ranked in book.top()] == [1]


def test_a_touch_that_is_repeated_does_not_pass_who_was_touched_since(redis: Redis) -> None:
    recent, tag = RecentContacts("jack"), bucket("jack")
    its = [keys.contacts(tag, "jack"), keys.contacts_labels(tag, "jack")]

    contacts._touch(redis, keys=its, args=["jill", "Jill", 100, "call"])
    recent.touch("joe")
    contacts._touch(redis, keys=its, args=["jill", "Jill", 100, "call"])

    assert [contact.id for contact in recent.list()] == ["joe", "jill"]


def test_a_removal_of_a_contact_that_is_repeated_leaves_who_was_touched_since(redis: Redis) -> None:
    recent = RecentContacts("jack")
    recent.touch("jill")

    for _ in range(2):
        assert contacts._drop(redis, keys=recent._keys("call"), args=["jill"]) == 1
        recent.touch("jill")

    assert [contact.id for contact in recent.list()] == ["jill"]


def test_a_load_that_another_ended_is_not_begun_again_by_a_repeated_call(redis: Redis) -> None:
    book = AddressBook("guild")
    begin = core.Keys("guild", "call").begin
    loading._begin(redis, keys=begin, args=["first"])
    loading._begin(redis, keys=core.Keys("guild", "other").begin, args=["second"])

    loading._begin(redis, keys=begin, args=["first"])

    assert redis.hget(keys.book_loading(book.name), "token") == b"second"
