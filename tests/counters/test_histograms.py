"""What histograms tell of measured values: percentiles within their error, whoever measured, and however long ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import ceil, nextafter

import pytest
from django.test.utils import override_settings
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.kit.keyspace import bucket
from components.services.counters import (
    RELATIVE_ERROR,
    Counter,
    CounterReader,
    Histogram,
    clean,
    flush,
    measure,
)
from components.services.counters.additions import MAX_COUNT
from components.services.counters.histograms import bucket_of, value_of
from components.services.counters.keys import CounterKeys
from components.services.counters.precisions import WINDOW, plan
from tests.support.counters import count_at, seconds

VALUES = st.integers(0, MAX_COUNT) | st.integers(0, 1_000) | st.integers(0, 40).map(lambda power: 2**power)
PERCENTS = st.sampled_from([0, 1, 50, 90, 95, 99, 99.9, 100]) | st.floats(0, 100)


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def exact(values: list[int], percent: float) -> int:
    """Return the least value that *percent* of all do not exceed."""
    return sorted(values)[max(1, ceil(len(values) * percent / 100)) - 1]


@given(st.lists(VALUES, max_size=300), VALUES)
def test_the_part_below_a_value_is_exact_but_for_those_that_are_hardly_less(
    values: list[int], value: int
) -> None:
    found = Histogram.of(values).percent_below(value)

    clearly = sum(each * 1.1 < value for each in values)
    assert clearly <= found * len(values) / 100 + 1e-9
    assert found * len(values) / 100 <= sum(each < value for each in values) + 1e-9


@given(st.lists(VALUES, min_size=1, max_size=300), PERCENTS)
def test_a_percentile_is_off_by_its_error_at_most(values: list[int], percent: float) -> None:
    right = exact(values, percent)

    found = Histogram.of(values).percentile(percent)

    assert abs(found - right) <= right * nextafter(RELATIVE_ERROR, 1) * (1 + 1e-9)


@given(st.lists(VALUES, min_size=1))
def test_count_sum_and_mean_are_exact(values: list[int]) -> None:
    found = Histogram.of(values)

    assert (found.count, found.total, found.mean) == (len(values), sum(values), sum(values) / len(values))


@given(st.lists(VALUES), st.lists(VALUES), st.lists(VALUES))
def test_merging_is_adding_in_any_order(one: list[int], other: list[int], third: list[int]) -> None:
    merged = Histogram.of(one) + Histogram.of(other) + Histogram.of(third)

    assert merged == Histogram.of(third) + (Histogram.of(other) + Histogram.of(one))
    assert merged == Histogram.of(one + other + third)


@given(st.integers(1, MAX_COUNT))
def test_larger_values_are_in_no_lower_bucket(value: int) -> None:
    assert bucket_of(value - 1) <= bucket_of(value) <= bucket_of(MAX_COUNT) == 425
    assert abs(value_of(bucket_of(value)) - value) <= value * RELATIVE_ERROR * (1 + 1e-9)


def test_what_was_measured_can_be_read(redis: Redis) -> None:
    values = [0, 1, 7, 7, 120, 15_000, 3_000_000]
    for value in values:
        measure("pay-us:card", value)
    Counter("upload-bytes").measure(2_048)
    flush()

    found = CounterReader().histograms(["pay-us:card", "upload-bytes", "none"], 60)

    assert found == {
        "pay-us:card": Histogram.of(values),
        "upload-bytes": Histogram.of([2_048]),
        "none": Histogram(),
    }
    assert CounterReader().read(["pay-us:card"], 60)["pay-us:card"].total == sum(values)
    assert CounterReader().top("pay-us", precision=60)[0].count == sum(values)


@pytest.mark.parametrize("precision", [60, 300, 3_600, 86_400])
def test_flushes_of_many_are_merged_in_each_precision(redis: Redis, precision: int) -> None:
    for value in (5, 500, 50_000):
        measure("pay-us", value)
        flush()

    slices = CounterReader().histogram_slices(["pay-us"], precision)["pay-us"]

    assert len(slices) == 120
    found = [each for each in slices if each.histogram.count]
    assert len(found) <= 2  # a slice may have ended meanwhile
    assert sum((each.histogram for each in found), Histogram()) == Histogram.of([5, 500, 50_000])
    began = found[0].at
    before = CounterReader().histograms(
        ["pay-us"], precision, since=began - 9 * timedelta(seconds=precision), until=began
    )
    assert before["pay-us"].count == 0
    assert slices[1].at - slices[0].at == timedelta(seconds=precision)


@pytest.mark.parametrize("precision", [60, 300])
def test_histograms_of_two_windows_are_read_to_the_slice(redis: Redis, precision: int) -> None:
    """Those of the last slice of one window, and of the first of the next."""
    bound = seconds(redis) // (60 * WINDOW) * 60 * WINDOW
    for second, value in ((bound - 1, 5), (bound, 500)):
        count_at(redis, "pay-us", second, value)
        key = f"{CounterKeys(bucket('pay-us')).histograms}:pay-us/60:{second // 60 // WINDOW}"
        redis.hset(key, str(second // 60 % WINDOW), f"{bucket_of(value)} 1 ")

    def read(since: int, until: int) -> Histogram:
        since, until = bound + since * precision, bound + until * precision
        return CounterReader().histograms(["pay-us"], precision, since=at(since), until=at(until))["pay-us"]

    assert read(-1, 1) == Histogram.of([5, 500])
    assert (read(-1, 0), read(0, 1)) == (Histogram.of([5]), Histogram.of([500]))


def test_wrong_values_and_queries_are_refused() -> None:
    for value in (-1, 1.5, True, MAX_COUNT + 1):
        with pytest.raises(InvalidValue):
            measure("pay-us", value)  # type: ignore[arg-type]
    with pytest.raises(InvalidName):
        measure("", 1)
    for percent in (-0.1, 100.1):
        with pytest.raises(ValueError, match="from 0 to 100"):
            Histogram().percentile(percent)
    assert (Histogram().count, Histogram().mean, Histogram().percentile(95)) == (0, 0, 0)


def test_short_slices_and_old_ones_have_no_histograms(redis: Redis) -> None:
    with pytest.raises(InvalidValue, match="at least 60 s"):
        CounterReader().histograms(["pay-us"], 1)
    with pytest.raises(InvalidValue):
        CounterReader().histograms(["pay-us"], 60, since=datetime(2020, 1, 1, tzinfo=UTC))


@override_settings(COMPONENTS={"COUNTER_PRECISIONS": (1, 5)})
def test_where_no_slice_is_long_the_longest_has_histograms(redis: Redis) -> None:
    measure("pay-us", 5)
    flush()

    assert plan().histograms == plan().kept
    assert CounterReader().histograms(["pay-us"], 1)["pay-us"].count == 1


def test_histograms_end_by_themselves_and_cleaning_gives_back_a_lost_end(redis: Redis) -> None:
    measure("pay-us", 5)
    flush()
    keys = redis.keys("*:histograms:*")
    ends = {key: redis.ttl(key) for key in keys}

    assert len(ends) == 2
    assert all(0 < end <= 31 * 86_400 + 120 * 3_600 for end in ends.values())
    for key in keys:
        redis.persist(key)
    assert clean().mended == 2
    assert all(abs(redis.ttl(key) - end) < 60 for key, end in ends.items())


def test_something_else_at_the_key_is_refused_and_counted_as_dropped(redis: Redis) -> None:
    measure("pay-us", 5)
    flush()
    for key in redis.keys("*:histograms:*"):
        redis.delete(key)
        redis.set(key, "something else")
    measure("pay-us", 5)
    flush()
    flush()

    assert CounterReader().read(["counters-us:dropped"], 60)["counters-us:dropped"].total == 5
