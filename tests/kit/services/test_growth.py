"""What books, contacts, rows and counters leave behind: each key is bounded by what there is, or ends by itself."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from redis import Redis

from components.exceptions import RedisRefused
from components.kit.client import AnyRedis
from components.services.autocomplete import AddressBook, AddressBookReader, RecentContacts
from components.services.autocomplete.address_book import ERASE
from components.services.counters import Counter, clean
from components.services.rows import Loader, RowCache, RowControls, RowReader, member
from tests.support.books import assert_whole
from tests.support.full import full
from tests.support.rows import SHAPE, bodies, claimed


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


pytestmark = pytest.mark.parametrize("redis_mode", ["plain"], indirect=True)


@pytest.fixture
def filled(redis: Redis) -> Iterator[Callable[[], None]]:
    """Call it full; who begins anew then has none of the scripts."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(full(redis))


def test_rows_are_invalidated_unscheduled_and_removed(redis: Redis, filled: Callable[[], None]) -> None:
    cache = RowCache("items", SHAPE)
    cache.schedule_many({str(key): 60 for key in range(6)})
    filled()

    cache.invalidate("1", "9")
    cache.unschedule("2")
    cache.schedule("3", 0)
    RowControls("items").remove("4")

    assert RowReader().count() == 3
    RowControls("items").remove_all()
    assert RowReader().count() == 0
    assert not redis.keys("*:rows:*")


def test_daemons_go_on_with_the_rows_that_are_on_the_schedule(
    redis: Redis, filled: Callable[[], None]
) -> None:
    cache = RowCache("items", SHAPE)
    # Each row is due at its own instant of this time, which must not come during the test.
    cache.schedule_many({str(key): 86_400 for key in range(6)})
    filled()

    loader = Loader()
    claims = loader.claim(100).claims
    rows = bodies({"0": ["sword", 1], "1": ["bow", 2], "2": None})
    assert loader.store(claims, rows) == set()
    loader.fail(claims, {member("items", "3"): "broken"})
    loader.release(claims, [member("items", "4"), member("items", "5")])

    assert cache.get("0")["stock"] == 1
    assert claimed(Loader().claim(100)) == ["4", "5"]
    assert RowReader().failing() == 1
    assert RowReader().count() == 5


def test_a_missed_scheduled_row_is_loaded_and_no_other_row_is_added(
    redis: Redis, filled: Callable[[], None]
) -> None:
    cache = RowCache("items", SHAPE)
    cache.schedule_many({str(key): 60 for key in range(3)})
    filled()
    asked: list[str] = []

    def load(keys: Sequence[str]) -> dict[str, Sequence[Any]]:
        asked.extend(keys)
        return {key: ["sword", int(key)] for key in keys if key != "2"}

    for _ in range(2):
        rows = cache.get_or_load(["0", "1", "2"], load, delay=60)
        assert [rows[key].is_deleted for key in "012"] == [False, False, True]
    cache.invalidate("1")
    assert cache.get_or_load(["1"], load, delay=60)["1"]["stock"] == 1
    assert asked == ["0", "1", "2", "1"]

    before = set(redis.keys("*"))
    with pytest.raises(RedisRefused, match="full"):
        cache.get_or_load(["9"], load, delay=60)
    assert "9" not in asked
    assert set(redis.keys("*")) == before


def test_entries_and_contacts_leave_and_books_are_removed(redis: Redis, filled: Callable[[], None]) -> None:
    book, recent = AddressBook("guild"), RecentContacts("jack")
    book.load([(number, f"Ann-{number} Smith") for number in range(100)])
    for number in range(80):
        book.select(number)
    for each in ("jill", "joe", "june"):
        recent.touch(each)
        RecentContacts(each).touch("jack")
    filled()

    assert book.remove(1)
    assert not book.remove(1)
    assert [each.id for each in book.complete("ann 2 s", limit=1)] == ["2"]
    assert recent.remove("jill")
    assert recent.erase() == 2
    assert RecentContacts("jill").clear() == 1
    book.erase()

    assert [key for key in redis.keys("*") if b":calls:" not in key] == []


def test_counters_are_cleaned(redis: Redis, filled: Callable[[], None]) -> None:
    Counter("hits").update(3)
    redis.persist(redis.keys("*:samples:*")[0])
    filled()

    assert clean().mended == 1
