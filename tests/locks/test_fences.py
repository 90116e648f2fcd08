"""A value that only the newest holder can write, and what is remembered when there is none."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidName, InvalidValue, RedisUnavailable, StaleFence
from components.services.locks.fences import KEEP, FencedValue
from components.services.locks.keys import FencedKeys

MAX = 2**63 - 1
WEEK = 7 * 86_400_000


def test_a_holder_writes_and_everybody_reads(redis: Redis) -> None:
    FencedValue("report").set("first", fence=1)

    assert FencedValue("report").get() == b"first"
    assert FencedValue("other").get() is None


def test_a_newer_holder_writes_over_it_and_the_older_one_is_refused(redis: Redis) -> None:
    value = FencedValue("report")
    value.set("first", fence=1)
    value.set("second", fence=2)

    with pytest.raises(StaleFence, match="'report' was written with the fence 2, which is newer than 1"):
        value.set("late", fence=1)
    with pytest.raises(StaleFence):
        value.delete(fence=1)

    assert value.get() == b"second"


def test_a_holder_may_write_twice(redis: Redis) -> None:
    value = FencedValue("report")
    for text in ("first", "second"):
        value.set(text, fence=1)

    assert value.get() == b"second"


def test_a_deleted_row_is_gone_for_older_holders_too(redis: Redis) -> None:
    value = FencedValue("report")
    value.set("first", fence=1)

    value.delete(fence=2)
    value.delete(fence=2)

    assert value.get() is None
    with pytest.raises(StaleFence):
        value.set("late", fence=1)
    value.set("second", fence=2)
    assert value.get() == b"second"


def test_deleting_what_never_was_refuses_older_holders_as_well(redis: Redis) -> None:
    FencedValue("report").delete(fence=2)

    with pytest.raises(StaleFence):
        FencedValue("report").set("late", fence=1)


def test_a_value_that_has_expired_leaves_its_fence(redis: Redis) -> None:
    value = FencedValue("report")
    value.set("first", fence=2, ttl=60)
    assert 59_000 < redis.pttl(FencedKeys("report").value) <= 60_000
    redis.pexpire(FencedKeys("report").value, 0)

    assert value.get() is None
    with pytest.raises(StaleFence):
        value.set("late", fence=1)


def test_the_fence_outlives_the_value_by_a_week(redis: Redis) -> None:
    FencedValue("report").set("first", fence=1, ttl=60)
    assert WEEK < redis.pttl(FencedKeys("report").fence) <= WEEK + 60_000

    FencedValue("report").delete(fence=1)
    assert WEEK - 60_000 < redis.pttl(FencedKeys("report").fence) <= WEEK
    assert round(KEEP * 1000) == WEEK


def test_the_fence_stays_as_long_as_a_value_that_does_not_expire(redis: Redis) -> None:
    value = FencedValue("report")
    value.set("first", fence=1, ttl=60)
    value.set("second", fence=1)

    assert redis.pttl(FencedKeys("report").value) == -1
    assert redis.pttl(FencedKeys("report").fence) == -1


def test_how_long_the_fence_is_kept_can_be_chosen(redis: Redis) -> None:
    FencedValue("report", keep=5).delete(fence=1)

    assert 0 < redis.pttl(FencedKeys("report").fence) <= 5_000


def test_a_fence_that_is_forgotten_refuses_nobody(redis: Redis) -> None:
    FencedValue("report").delete(fence=2)
    redis.pexpire(FencedKeys("report").fence, 0)

    FencedValue("report").set("late", fence=1)

    assert FencedValue("report").get() == b"late"


@pytest.mark.parametrize(
    ("value", "stored"), [(b"\x00\xff", b"\x00\xff"), ("Blåhaj", "Blåhaj".encode()), ("", b"")]
)
def test_values_come_back_as_they_were(redis: Redis, value: bytes | str, stored: bytes) -> None:
    FencedValue("report").set(value, fence=1)

    assert FencedValue("report").get() == stored


@pytest.mark.parametrize(("older", "newer"), [(9, 10), (2**53, 2**53 + 1), (MAX - 1, MAX), (99, 10**18)])
def test_fences_are_compared_as_numbers_and_exactly(redis: Redis, older: int, newer: int) -> None:
    FencedValue("report").set("new", fence=newer)

    with pytest.raises(StaleFence, match=f"fence {newer}, which is newer than {older}"):
        FencedValue("report").set("late", fence=older)


@pytest.mark.parametrize("fence", [0, -1, MAX + 1, True, 5.0, "5", None])
def test_an_invalid_fence_is_refused(redis: Redis, fence: Any) -> None:
    value = FencedValue("report")
    for write in (lambda: value.set("a", fence=fence), lambda: value.delete(fence=fence)):
        with pytest.raises(InvalidValue):
            write()

    assert redis.keys("*") == []


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), True, "5"])
def test_an_invalid_duration_is_refused(redis: Redis, ttl: Any) -> None:
    with pytest.raises(InvalidValue, match="ttl"):
        FencedValue("report").set("a", fence=1, ttl=ttl)
    with pytest.raises(InvalidValue, match="keep"):
        FencedValue("report", keep=ttl)

    assert redis.keys("*") == []


@pytest.mark.parametrize("name", ["", "a" * 501, None, 5])
def test_an_invalid_name_is_refused(name: Any) -> None:
    with pytest.raises(InvalidName, match="A fenced value cannot be called"):
        FencedValue(name)


@pytest.mark.parametrize("value", [None, 5, {"a": 1}, bytearray(b"a")])
def test_values_other_than_bytes_and_text_are_refused(redis: Redis, value: Any) -> None:
    with pytest.raises(TypeError, match="serialize it first"):
        FencedValue("report").set(value, fence=1)

    assert redis.keys("*") == []


def test_the_asynchronous_twins_do_the_same(redis: Redis) -> None:
    async def history() -> list[bytes | None]:
        value = FencedValue("report")
        await value.aset("first", fence=2)
        seen = [await value.aget()]
        for late in (value.aset("late", fence=1), value.adelete(fence=1)):
            with pytest.raises(StaleFence):
                await late
        await value.adelete(fence=3)
        return [*seen, await value.aget()]

    assert asyncio.run(history()) == [b"first", None]


def test_without_redis_it_says_so() -> None:
    for act in (
        lambda: FencedValue("report").set("a", fence=1),
        lambda: FencedValue("report").get(),
        lambda: FencedValue("report").delete(fence=1),
    ):
        with pytest.raises(RedisUnavailable):
            act()


def test_the_newest_of_concurrent_writes_is_the_last(redis: Redis) -> None:
    def write(fence: int) -> bool:
        try:
            FencedValue("report").set(str(fence), fence=fence)
        except StaleFence:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        accepted = list(pool.map(write, [n * 37 % 101 + 1 for n in range(101)]))

    assert FencedValue("report").get() == b"101"
    assert any(accepted)


ACTS = st.tuples(
    st.sampled_from(["set", "set for a time", "delete"]), st.integers(1, 9), st.binary(max_size=3)
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTS, max_size=15))
def test_no_accepted_write_has_a_lower_fence_than_one_before(
    redis: Redis, history: list[tuple[str, int, bytes]]
) -> None:
    redis.flushall()
    value, newest, content = FencedValue("report"), 0, None
    for act, fence, new in history:
        try:
            if act == "delete":
                value.delete(fence=fence)
            else:
                value.set(new, fence=fence, ttl=60 if act == "set for a time" else None)
        except StaleFence:
            assert fence < newest
        else:
            assert fence >= newest
            newest, content = fence, None if act == "delete" else new
        assert value.get() == content
