"""Bad input: each its own clear error, before anything is sent or with nothing changed."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.services.counters import Counter, CounterReader, counted, timed
from components.services.counters.additions import MAX_COUNT
from tests.support.counters import seconds
from tests.support.snapshots import snapshot

NAMES: list[Any] = ["", "x" * 501, b"hits", None, 7, "\ud800", ["hits"]]
COUNTS: list[Any] = [1.0, math.nan, math.inf, True, "3", None, MAX_COUNT + 1, -MAX_COUNT - 1]
PRECISIONS: list[Any] = [0, -1, 2, 61, 60.0, math.nan, True, "60", None, 10**30, [60]]
INSTANTS: list[Any] = [0, 1_800_000_000, math.nan, "2026-01-01", datetime(2026, 1, 1), date(2026, 1, 1), True]
LIMITS: list[Any] = [0, -1, 1.0, math.nan, True, "3", 10_001, None]


def refuse(redis: Redis, error: type[Exception], *acts: Callable[[], object]) -> None:
    """Assert that each of these raises *error*, and changes nothing."""
    before = snapshot(redis)
    for act in acts:
        with pytest.raises(error):
            act()
    assert snapshot(redis) == before


def at(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_texts_of_1_to_500_characters(redis: Redis, name: Any) -> None:
    refuse(
        redis,
        InvalidName,
        lambda: Counter(name),
        lambda: counted(name),
        lambda: timed(name),
        lambda: CounterReader().read(["hits", name], 60),
        lambda: CounterReader().top(name),
    )


@pytest.mark.parametrize("count", COUNTS)
def test_counts_are_whole_numbers_that_are_exact(redis: Redis, count: Any) -> None:
    refuse(redis, InvalidValue, lambda: Counter("hits").update(count), lambda: Counter("hits").count(count))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions_are_those_of_the_settings(redis: Redis, precision: Any) -> None:
    refuse(
        redis,
        InvalidValue,
        lambda: Counter("hits").get(precision),
        lambda: CounterReader().read(["hits"], precision),
        lambda: CounterReader().top("hits", precision=precision),
    )


@pytest.mark.parametrize("instant", INSTANTS)
def test_instants_are_aware(redis: Redis, instant: Any) -> None:
    counter = Counter("hits")
    refuse(
        redis, InvalidValue, lambda: counter.get(60, since=instant), lambda: counter.get(60, until=instant)
    )


def test_a_time_that_is_turned_round_or_lies_ahead_is_refused(redis: Redis) -> None:
    now = at(seconds(redis))
    hour = timedelta(hours=1)
    for since, until in (
        (now, now),
        (now, now - timedelta(seconds=1)),
        (now + hour, None),
        (now + hour, now + 25 * hour),
    ):
        refuse(
            redis,
            InvalidValue,
            lambda since=since, until=until: Counter("hits").get(60, since=since, until=until),  # type: ignore[misc]
            lambda since=since, until=until: CounterReader().read(["hits"], 1, since=since, until=until),  # type: ignore[misc]
            lambda since=since, until=until: CounterReader().top("hits", since=since, until=until),  # type: ignore[misc]
        )


@pytest.mark.parametrize(
    ("precision", "kept"), [(1, 600), (5, 120), (60, 600), (3_600, 2_880), (86_400, 120)]
)
def test_a_time_that_is_no_longer_kept_is_refused(redis: Redis, precision: int, kept: int) -> None:
    begun = seconds(redis) // precision * precision
    oldest = at(begun - (kept - 2) * precision)
    before = at(begun - kept * precision)

    assert Counter("hits").get(precision, since=oldest)[0].at == oldest
    refuse(
        redis,
        InvalidValue,
        lambda: Counter("hits").get(precision, since=before),
        lambda: Counter("hits").get(precision, since=datetime.min.replace(tzinfo=UTC)),
        lambda: Counter("hits").get(precision, until=before),
        lambda: CounterReader().top("hits", precision=precision, since=before),
    )


def test_the_default_range_is_the_kept_range(redis: Redis) -> None:
    """Until lies so long ago that less than 120 slices before it are kept."""
    begun = seconds(redis) // 60 * 60

    series = Counter("hits").get(60, until=at(begun - 590 * 60))

    assert 8 <= len(series) <= 10


@pytest.mark.parametrize("fill", [1.0, math.nan, True, "previous", [0], "0"])
def test_gaps_are_filled_with_whole_numbers(redis: Redis, fill: Any) -> None:
    refuse(
        redis,
        ValueError,
        lambda: Counter("hits").get(60, fill=fill),
        lambda: CounterReader().read(["hits"], 60, fill=fill),
    )


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_are_whole_numbers_from_1_on(redis: Redis, limit: Any) -> None:
    reader = CounterReader()
    refuse(redis, InvalidValue, lambda: reader.top("hits", limit), lambda: reader.page(limit=limit))
    if limit not in (0, True, 1.0):
        refuse(redis, InvalidValue, lambda: reader.page(offset=limit))
