"""What histograms tell of measured values: percentiles within their error, whoever measured, and however long ago."""

import asyncio
import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from math import ceil, nextafter

import pytest
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
    buffer,
    counted,
    flush,
    measure,
    measuring,
    timed,
)
from components.services.counters.additions import MAX_COUNT
from components.services.counters.histograms import bucket_of, value_of
from components.services.counters.keys import CounterKeys
from components.services.counters.precisions import WINDOW
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


@given(st.lists(VALUES), st.lists(VALUES), st.lists(VALUES))
def test_merging_is_adding_in_any_order(one: list[int], other: list[int], third: list[int]) -> None:
    merged = Histogram.of(one) + Histogram.of(other) + Histogram.of(third)

    assert merged == Histogram.of(third) + (Histogram.of(other) + Histogram.of(one))
    assert merged == Histogram.of(one + other + third)


@given(st.integers(1, MAX_COUNT))
def test_larger_values_are_in_no_lower_bucket(value: int) -> None:
    assert bucket_of(value - 1) <= bucket_of(value) <= bucket_of(MAX_COUNT) == 425
    assert abs(value_of(bucket_of(value)) - value) <= value * RELATIVE_ERROR * (1 + 1e-9)


@pytest.mark.parametrize("precision", [60, 300, 3_600, 86_400])
def test_what_was_measured_can_be_read(redis: Redis, precision: int) -> None:
    values = [0, 1, 7, 7, 120, 15_000, 3_000_000]
    for value in values:
        measure("pay-us:card", value)
        if value == 7:
            flush()
    Counter("upload-bytes").measure(2_048)
    flush()

    found = CounterReader().histograms(["pay-us:card", "upload-bytes", "none"], precision)
    slices = CounterReader().histogram_slices(["pay-us:card"], precision)["pay-us:card"]

    assert len(slices) == 120
    assert sum((each.histogram for each in slices), Histogram()) == Histogram.of(values)

    assert found == {
        "pay-us:card": Histogram.of(values),
        "upload-bytes": Histogram.of([2_048]),
        "none": Histogram(),
    }
    assert CounterReader().read(["pay-us:card"], 60)["pay-us:card"].total == sum(values)
    assert CounterReader().top("pay-us", precision=60)[0].count == sum(values)


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


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)
    buffer.forget()
    yield buffer._buffer.counts
    buffer.forget()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The nanoseconds that the clock shows, one after the other."""
    shown: list[int] = []
    monkeypatch.setattr(measuring, "perf_counter_ns", lambda: shown.pop(0))
    return shown


def test_calls_blocks_and_errors_are_counted(counts: dict[str, int]) -> None:
    @counted("divisions")
    def divide(number: int, by: int) -> float:
        """Divide."""
        return number / by

    assert divide(6, by=3) == 2
    with pytest.raises(ZeroDivisionError):
        divide(6, by=0)

    assert counts == {"divisions": 2, "divisions-errors": 1}
    assert (divide.__name__, divide.__doc__) == ("divide", "Divide.")
    counts.clear()
    for _ in range(3):
        with counted("shop:visits"):
            pass
    for error in (LookupError, SystemExit):  # the end of a process is no error
        with pytest.raises(error), counted("shop:visits"):
            raise error

    assert counts == {"shop:visits": 5, "shop-errors:visits": 1}


def test_times_are_added_up(counts: dict[str, int], clock: list[int]) -> None:
    @timed("pay:card")
    def pay() -> None: ...

    clock += [0, 1_500_000, 10_000_000, 12_000_999]
    pay()
    pay()
    clock += [1, 1_000_000_001]
    with pytest.raises(LookupError), timed("pay:card"):
        raise LookupError

    assert counts == {
        "pay:card": 3,
        "pay-us:card": 1_500 + 2_000 + 1_000_000,
        "pay-errors:card": 1,
        **{("pay-us:card", bucket_of(took)): 1 for took in (1_500, 2_000, 1_000_000)},
    }


def test_coroutines_are_timed_while_they_are_awaited(counts: dict[str, int], clock: list[int]) -> None:
    """Two at once: each has a time of its own."""
    clock += [0, 1_000, 10_000, 21_000]

    async def both() -> list[int]:
        gate = asyncio.Event()

        @timed("waits")
        async def wait(number: int) -> int:
            if number:
                gate.set()
            await gate.wait()
            return number

        assert inspect.iscoroutinefunction(wait)
        return list(await asyncio.gather(wait(0), wait(1)))

    assert asyncio.run(both()) == [0, 1]
    assert counts == {
        "waits": 2,
        "waits-us": 30,
        ("waits-us", bucket_of(9)): 1,
        ("waits-us", bucket_of(21)): 1,
    }


def test_a_call_that_returns_an_awaitable_is_timed_until_that_is_done(
    counts: dict[str, int], clock: list[int]
) -> None:
    clock += [0, 5_000_000]

    asyncio.run(timed("waits")(lambda: asyncio.sleep(0))())

    assert counts == {"waits": 1, "waits-us": 5_000, ("waits-us", bucket_of(5_000)): 1}


def test_blocks_of_one_object_may_overlap(counts: dict[str, int], clock: list[int]) -> None:
    clock += [0, 10_000, 20_000, 50_000]
    block = timed("waits")

    with block, block:
        pass

    assert (counts["waits"], counts["waits-us"]) == (2, 10 + 50)
