"""A value that only the newest holder can write, and what is remembered when there is none."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidValue, StaleFence
from components.services.locks.fences import FencedValue
from components.services.locks.keys import FencedKeys

MAX = 2**63 - 1
WEEK = 7 * 86_400_000


def is_refused(fence: int) -> bool:
    value = FencedValue("report")
    before = value.get()
    for write in (lambda: value.set("late", fence=fence), lambda: value.delete(fence=fence)):
        try:
            write()
        except StaleFence:
            assert value.get() == before
        else:
            return False
    return True


def test_a_value_that_has_expired_leaves_its_fence_for_a_week(redis: Redis) -> None:
    value, keys = FencedValue("report"), FencedKeys("report")
    value.set("first", fence=2, ttl=60)
    assert 59_000 < redis.pttl(keys.value) <= 60_000
    assert WEEK < redis.pttl(keys.fence) <= WEEK + 60_000
    redis.pexpire(keys.value, 0)

    assert value.get() is None
    assert is_refused(1)
    redis.pexpire(keys.fence, 0)
    value.set("late", fence=1)
    value.delete(fence=1)
    assert WEEK - 60_000 < redis.pttl(keys.fence) <= WEEK
    FencedValue("report", keep=5).delete(fence=1)
    assert 0 < redis.pttl(keys.fence) <= 5_000


def test_the_fence_stays_as_long_as_a_value_that_does_not_expire(redis: Redis) -> None:
    value = FencedValue("report")
    value.set("first", fence=1, ttl=60)
    value.set("second", fence=1)

    assert redis.pttl(FencedKeys("report").value) == redis.pttl(FencedKeys("report").fence) == -1


@pytest.mark.parametrize("value", [b"\x00\xff", "Blåhaj", ""])
def test_values_come_back_as_they_were(redis: Redis, value: bytes | str) -> None:
    FencedValue("report").set(value, fence=1)

    assert FencedValue("report").get() == (value.encode() if isinstance(value, str) else value)


@pytest.mark.parametrize(("older", "newer"), [(9, 10), (2**53, 2**53 + 1), (MAX - 1, MAX), (99, 10**18)])
def test_fences_are_compared_as_numbers_and_exactly(redis: Redis, older: int, newer: int) -> None:
    FencedValue("report").set("new", fence=newer)

    assert is_refused(older)
    assert not is_refused(newer)


@pytest.mark.parametrize(
    ("error", "value", "fence", "ttl"),
    [
        *((InvalidValue, "a", fence, None) for fence in (0, -1, MAX + 1, True, 5.0, "5", None)),
        *((InvalidValue, "a", 1, ttl) for ttl in (0, -1, float("nan"), float("inf"), True, "5")),
        *((TypeError, value, 1, None) for value in (None, 5, {"a": 1}, bytearray(b"a"))),
    ],
)
def test_what_is_invalid_is_not_stored(
    redis: Redis, error: type[Exception], value: Any, fence: Any, ttl: Any
) -> None:
    with pytest.raises(error):
        FencedValue("report").set(value, fence=fence, ttl=ttl)
    if fence != 1:
        with pytest.raises(error):
            FencedValue("report").delete(fence=fence)
    if ttl is not None:
        with pytest.raises(error):
            FencedValue("report", keep=ttl)
    assert redis.keys("*") == []


ACTS = st.tuples(
    st.sampled_from(["set", "set for a time", "delete"]), st.integers(1, 9), st.binary(max_size=3)
)


@settings(max_examples=60)
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
