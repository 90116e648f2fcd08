"""What books, contacts, rows and counters leave behind: each key is bounded by what there is, or ends by itself."""

from __future__ import annotations

import pytest
from redis import Redis

from components.kit.client import AnyRedis
from components.kit.keyspace import BUCKETS
from components.services.autocomplete import AddressBook, AddressBookReader, RecentContacts
from components.services.autocomplete import keys as autocomplete_keys
from components.services.autocomplete.address_book import ERASE
from components.services.counters import Counter, flush
from components.services.rows import Loader, RowReader, member
from components.services.rows.keys import RowKeys
from tests.support.books import assert_whole
from tests.support.rows import bodies, cache, claimed, let_pass


def kept(redis: Redis) -> list[str]:
    """The keys that do not end by themselves."""
    return sorted(key.decode() for key in redis.keys("*") if redis.ttl(key) == -1)


def test_a_book_that_all_have_left_can_be_removed_and_no_other(redis: Redis) -> None:
    book = AddressBook("guild")
    assert book.vacate()
    book.add("Ann Smith-Jones", id=1)
    book.select(1)
    book.complete("a")
    assert not book.vacate()
    assert book.count() == 1

    book.remove(1)
    assert AddressBookReader().names() == ["guild"]
    assert book.vacate()
    assert book.vacate()

    assert kept(redis) == []
    assert AddressBookReader().names() == []
    assert book.add("Bob", id=2)
    assert AddressBookReader().names() == ["guild"]


def test_a_book_that_is_made_anew_meanwhile_stays_listed(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody joins between the removal of the book and that from the list."""
    book = AddressBook("guild")
    book.add("Ann", id=1)
    book.remove(1)

    run = ERASE.run

    async def overtaken(client: AnyRedis, keys: object, **args: object) -> object:
        said = await run(client, keys, **args)
        book.add("Bob", id=2)
        return said

    monkeypatch.setattr(ERASE, "run", overtaken)
    assert not book.vacate()

    assert AddressBookReader().names() == ["guild"]
    assert_whole(redis, "guild")


@pytest.mark.slow
def test_use_does_not_let_a_book_grow(redis: Redis) -> None:
    """A thousand writes, selections and searches of ten entries leave what ten entries take."""
    book = AddressBook("guild")
    for turn in range(100):
        for number in range(10):
            book.add(f"Jean-Paul {turn} {number}", id=number)
            book.select(number)
        book.complete("jean")
        book.remove(turn % 10)
    book.load([], replace=True)

    assert_whole(redis, "guild")
    assert kept(redis) == sorted([autocomplete_keys.BookKeys("guild").book, autocomplete_keys.names("all")])


def test_contacts_are_bounded_and_end(redis: Redis) -> None:
    recent = RecentContacts("jack", limit=5)
    for number in range(50):
        recent.touch(f"{number}", label="x")

    assert (
        redis.zcard(autocomplete_keys.ContactsKeys("jack").contacts)
        == redis.hlen(autocomplete_keys.ContactsKeys("jack").labels)
        == 5
    )
    assert kept(redis) == []


def test_rows_leave_nothing_when_they_leave_the_schedule(redis: Redis) -> None:
    rows = cache()
    rows.schedule_many({f"{number}": 60 for number in range(10)})
    for turn in range(20):
        loader = Loader()
        claims = loader.claim(100).claims
        loader.store(claims, bodies({f"{number}": ["sword", turn] for number in range(8)}))
        loader.fail(claims, {member("items", key): "broken" for key in ("8", "9")})
        rows.refresh(*(f"{number}" for number in range(10)))
        let_pass(redis, 400)
    assert RowReader().count() == 10
    for tag in BUCKETS:
        scheduled = redis.zcard(RowKeys(tag).schedule)
        assert redis.hlen(RowKeys(tag).delays) == scheduled
        assert redis.hlen(RowKeys(tag).failures) <= scheduled

    Loader().store((last := Loader().claim(100)).claims, bodies({f"{number}": None for number in range(4)}))
    assert claimed(last)
    rows.unschedule(*(f"{number}" for number in range(10)))

    assert kept(redis) == []


def test_all_of_counters_ends_by_itself(redis: Redis) -> None:
    for number in range(20):
        Counter(f"hits:{number}").update()
        Counter(f"pay-us:{number}").update(5)
    Counter("plain").count()
    flush()

    assert redis.keys("*:counters:*")
    assert kept(redis) == []
