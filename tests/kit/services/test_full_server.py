"""A Redis that is full and evicts nothing: what frees is done all the same, and what was there goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import OutOfMemoryError

from components.exceptions import RedisRefused
from components.services.autocomplete import AddressBook, RecentContacts
from components.services.counters import Counter, clean
from components.services.rows import Loader, RowCache, RowControls, RowReader, member
from tests.support.rows import SHAPE, bodies, claimed

pytestmark = pytest.mark.parametrize("redis_mode", ["plain"], indirect=True)


@pytest.fixture
def filled(redis: Redis) -> Iterator[Callable[[], None]]:
    """Call it full; who begins anew then has none of the scripts."""
    policy = redis.config_get("maxmemory-policy")["maxmemory-policy"]
    redis.script_flush()

    def fill() -> None:
        redis.config_set("maxmemory-policy", "noeviction")
        redis.config_set("maxmemory", 1)
        with pytest.raises(OutOfMemoryError):
            redis.set("more", 1)

    yield fill
    redis.config_set("maxmemory", 0)
    redis.config_set("maxmemory-policy", policy)


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
    cache.schedule_many({str(key): 60 for key in range(6)})
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
