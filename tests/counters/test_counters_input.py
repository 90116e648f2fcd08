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


def refuse(redis: Redis, error: type[Exception], say: str, act: Callable[[], object]) -> None:
    before = snapshot(redis)
    with pytest.raises(error, match=say):
        act()
    assert snapshot(redis) == before


def at(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_texts_of_1_to_500_characters(redis: Redis, name: Any) -> None:
    for act in (
        lambda: Counter(name),
        lambda: counted(name),
        lambda: timed(name),
        lambda: CounterReader().read(["hits", name], 60),
        lambda: CounterReader().top(name),
    ):
        refuse(redis, InvalidName, "cannot be called|1 to 500", act)


@pytest.mark.parametrize("count", COUNTS)
def test_counts_are_whole_numbers_that_are_exact(redis: Redis, count: Any) -> None:
    refuse(redis, InvalidValue, "must be a whole number", lambda: Counter("hits").update(count))
    refuse(redis, InvalidValue, "must be a whole number", lambda: Counter("hits").count(count))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions_are_those_of_the_settings(redis: Redis, precision: Any) -> None:
    say = "must be one of these, in seconds: 1, 5, 60, 300, 3,600, 18,000, 86,400"
    for act in (
        lambda: Counter("hits").get(precision),
        lambda: CounterReader().read(["hits"], precision),
        lambda: CounterReader().top("hits", precision=precision),
    ):
        refuse(redis, InvalidValue, say, act)


@pytest.mark.parametrize("instant", INSTANTS)
def test_instants_are_aware(redis: Redis, instant: Any) -> None:
    for which in ("since", "until"):
        say = f"{which} is .*; it must be an aware datetime"
        refuse(redis, InvalidValue, say, lambda which=which: Counter("hits").get(60, **{which: instant}))  # type: ignore[misc]


def test_a_time_that_is_turned_round_is_refused(redis: Redis) -> None:
    now = at(seconds(redis))
    for since, until in ((now, now), (now, now - timedelta(seconds=1))):
        for act in (
            lambda since=since, until=until: Counter("hits").get(60, since=since, until=until),
            lambda since=since, until=until: CounterReader().top("hits", since=since, until=until),
        ):
            refuse(redis, InvalidValue, "is reversed", act)  # type: ignore[arg-type]


def test_a_time_that_lies_ahead_is_refused(redis: Redis) -> None:
    ahead = at(seconds(redis) + 3_600)
    for act in (
        lambda: Counter("hits").get(86_400, since=ahead),
        lambda: CounterReader().read(["hits"], 1, since=ahead, until=ahead + timedelta(days=1)),
        lambda: CounterReader().top("hits", since=ahead),
    ):
        refuse(redis, InvalidValue, "lies ahead: the server's clock says", act)


@pytest.mark.parametrize(
    ("precision", "kept"), [(1, 600), (5, 120), (60, 600), (3_600, 2_880), (86_400, 120)]
)
def test_a_time_that_is_no_longer_kept_is_refused(redis: Redis, precision: int, kept: int) -> None:
    begun = seconds(redis) // precision * precision
    oldest = at(begun - (kept - 2) * precision)
    before = at(begun - kept * precision)
    say = f"too long ago: of slices of {precision:,} s the last {kept:,} are kept"

    assert Counter("hits").get(precision, since=oldest)[0].at == oldest
    for act in (
        lambda: Counter("hits").get(precision, since=before),
        lambda: Counter("hits").get(precision, since=datetime.min.replace(tzinfo=UTC)),
        lambda: Counter("hits").get(precision, until=before),
        lambda: CounterReader().top("hits", precision=precision, since=before),
    ):
        refuse(redis, InvalidValue, say, act)


def test_the_default_range_is_the_kept_range(redis: Redis) -> None:
    """Until lies so long ago that less than 120 slices before it are kept."""
    begun = seconds(redis) // 60 * 60

    series = Counter("hits").get(60, until=at(begun - 590 * 60))

    assert 8 <= len(series) <= 10


@pytest.mark.parametrize("fill", [1.0, math.nan, True, "previous", [0], "0"])
def test_gaps_are_filled_with_whole_numbers(redis: Redis, fill: Any) -> None:
    refuse(redis, ValueError, "fill is", lambda: Counter("hits").get(60, fill=fill))
    refuse(redis, ValueError, "fill is", lambda: CounterReader().read(["hits"], 60, fill=fill))


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_are_whole_numbers_from_1_on(redis: Redis, limit: Any) -> None:
    refuse(redis, InvalidValue, "The limit is", lambda: CounterReader().top("hits", limit))
    refuse(redis, InvalidValue, "The limit is", lambda: CounterReader().page(limit=limit))
    if limit not in (0, True, 1.0):
        refuse(redis, InvalidValue, "The offset is", lambda: CounterReader().page(offset=limit))
