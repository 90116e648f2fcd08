"""Bad input: each its own clear error, before anything is sent."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.services.rows import Loader, RowCache, RowControls, RowReader
from tests.support.rows import SHAPE, cache
from tests.support.snapshots import snapshot

NAMES: list[Any] = ["", "x" * 201, "a:b", b"items", None, 7, "\ud800", ["items"]]
KEYS: list[Any] = ["", "x" * 291, b"1", None, 1.0, True, "\ud800", ["1"]]
DELAYS: list[Any] = [math.nan, math.inf, True, False, "5", None, 1e-9, 0.009, 10**12, Decimal(5), Decimal(-5)]


@pytest.mark.parametrize("name", NAMES)
def test_a_cache_has_a_name_without_colons(redis: Redis, name: Any) -> None:
    with pytest.raises(InvalidName):
        RowCache(name, SHAPE)
    with pytest.raises(InvalidName):
        RowReader().find(name, "1")


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_text_or_a_whole_number(redis: Redis, key: Any) -> None:
    for act in (
        lambda: cache().schedule(key, 5),
        lambda: cache().unschedule(key),
        lambda: cache().invalidate(key),
        lambda: cache().get(key),
        lambda: cache().get_many(["1", key]),
        lambda: cache().get_or_load([key], dict, delay=5),  # type: ignore[arg-type]
        lambda: RowReader().find("items", key),
    ):
        with pytest.raises((InvalidName, TypeError)):
            act()
    assert snapshot(redis) == {}


@pytest.mark.parametrize("delay", DELAYS)
def test_a_delay_is_a_number_of_seconds(redis: Redis, delay: Any) -> None:
    with pytest.raises(InvalidValue, match="delay"):
        cache().schedule("1", delay)
    with pytest.raises(InvalidValue, match="delay"):
        cache().schedule_many({"1": 5, "2": delay})
    for act in (
        RowControls("items").set_delay_of_all,
        lambda delay: RowControls("items").set_delay(delay, "1"),
    ):
        with pytest.raises(InvalidValue):
            act(delay)
    assert snapshot(redis) == {}


@pytest.mark.parametrize("age", [math.nan, -1, 0, True, "5", math.inf])
def test_an_age_is_a_number_of_seconds(redis: Redis, age: Any) -> None:
    with pytest.raises(InvalidValue, match="max_age"):
        cache().get("1", max_age=age)
    with pytest.raises(InvalidValue, match="max_age"):
        cache().get_or_load(["1"], lambda wanted: {}, delay=5, max_age=age)


@pytest.mark.parametrize("lease", [math.nan, 0, -1, True, "5"])
def test_a_lease_is_a_number_of_seconds(lease: Any) -> None:
    with pytest.raises(InvalidValue, match="lease"):
        Loader(lease=lease)


def test_any_text_can_be_a_key(redis: Redis) -> None:
    for key in ("a:b", "{}", " ", "\x00", "ß", 7, -3, "x" * 290):
        cache().schedule(key, 366 * 86_400)
        found = RowReader().find("items", key)
        assert found is not None
        assert found.key == str(key)
        assert found.delay == 366 * 86_400
