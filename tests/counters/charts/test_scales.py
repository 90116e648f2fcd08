"""Round numbers beside a chart, and round times below it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.services.counters import Series
from components.services.counters.charts.scales import (
    LogScale,
    Scale,
    about,
    clock_ticks,
    rate,
    short,
    spent,
    total,
)

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
COUNTS = st.integers(-(2**53) + 1, 2**53 - 1)


def ticks(since, seconds, zone=UTC):
    return [text for _at, text in clock_ticks(since, since + timedelta(seconds=seconds), zone)]


@pytest.mark.parametrize(
    ("least", "most", "numbers"),
    [
        (0, 0, [0, 1]),
        (0, 3, [0, 1, 2, 3]),
        (2, 7, [0, 2, 4, 6, 8]),
        (0, 101, [0, 50, 100, 150]),
        (0, 1_000_000, [0, 250_000, 500_000, 750_000, 1_000_000]),
        (-3, 5, [-4, -2, 0, 2, 4, 6]),
        (-8, -2, [-8, -6, -4, -2, 0]),
    ],
)
def test_the_numbers_beside_a_chart_are_round(least, most, numbers):
    assert list(Scale.around(least, most).ticks) == numbers


@given(COUNTS, COUNTS)
def test_a_scale_holds_all_counts_and_zero_between_a_few_numbers(one, other):
    scale = Scale.around(min(one, other), max(one, other))

    for count in (one, other, 0):
        assert scale.low <= count <= scale.high
        assert 0 <= scale.depth(count) <= 1
    assert 0 in scale.ticks
    assert 2 <= len(scale.ticks) <= 7
    assert scale.ticks[-1] == scale.high


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0"),
        (1_234, "1,234"),
        (100_000, "100 k"),
        (1_500_000, "1.5 M"),
        (-1_500_000, "-1.5 M"),
        (3 * 10**12, "3 T"),
        (2**53, "9.01 P"),
    ],
)
def test_large_numbers_are_short(count, written):
    assert short(count) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (120, ["12:00:00", "12:00:30", "12:01:00", "12:01:30", "12:02:00"]),
        (7_200, ["12:00", "12:30", "13:00", "13:30", "14:00"]),
        (86_400, ["12:00", "18:00", "01-16", "06:00", "12:00"]),
        (5 * 86_400, ["01-16", "01-17", "01-18", "01-19", "01-20"]),
    ],
)
def test_the_times_below_a_chart_are_round(seconds, written):
    assert ticks(NOON, seconds) == written


def test_the_hour_that_comes_twice_in_autumn_is_told_twice_and_the_one_left_out_in_spring_not_at_all():
    autumn = ticks(datetime(2026, 10, 24, 23, tzinfo=UTC), 5 * 3_600, BERLIN)
    spring = ticks(datetime(2026, 3, 28, 23, tzinfo=UTC), 5 * 3_600, BERLIN)

    assert autumn == ["01:00", "02:00", "02:00", "03:00", "04:00", "05:00"][: len(autumn)]
    assert autumn.count("02:00") == 2
    assert "02:00" not in spring
    assert spring[:3] == ["03-29", "01:00", "03:00"]


@given(
    st.integers(1, 40 * 366 * 86_400),
    st.integers(0, 2**31),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]),
)
def test_a_chart_has_few_times_in_order_and_all_lie_in_it(seconds, begin, zone):
    since = datetime.fromtimestamp(begin, UTC)
    until = since + timedelta(seconds=seconds)

    found = [at for at, _text in clock_ticks(since, until, ZoneInfo(zone))]

    assert len(found) <= 8
    assert found == sorted(set(found))
    assert all(since <= at <= until for at in found)


@pytest.mark.parametrize(
    ("least", "most", "numbers"),
    [
        (3_000, 80_000, [1_000, 5_000, 10_000, 50_000, 100_000]),
        (0, 0, [1, 5, 10]),
        (900, 1_100, [100, 500, 1_000, 5_000, 10_000]),
        (1, 10**10, [1, 10**3, 10**6, 10**9]),
    ],
)
def test_the_numbers_beside_durations_are_powers_of_ten(least, most, numbers):
    scale = LogScale.around(least, most)

    assert [*scale.ticks] == numbers
    assert (scale.depth(scale.high), scale.depth(scale.low), scale.depth(0)) == (0, 1, 1)


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (0, "us", "\N{EN DASH}"),
        (123_456, "us", "120 ms"),
        (1_234_567, "us", "1.2 s"),
        (1_560_000, "bytes", "1.6 MB"),
    ],
)
def test_percentiles_have_the_two_digits_that_they_carry(value, unit, written):
    assert about(value, unit) == written


def series(count, seconds=7_193, name="hits"):
    return Series(
        [], name=name, precision=60, since=NOON, until=NOON + timedelta(seconds=seconds), total=count
    )


@pytest.mark.parametrize(
    ("count", "seconds", "said"),
    [
        (1, 7_193, "1 in 1 h 59 min"),
        (0, 7_200, "\N{EN DASH}"),
        (2, 7_200, "1 an hour"),
        (13, 7_200, "6.5 an hour"),
        (121, 7_193, "1.01 a minute"),
        (3_600, 7_200, "30 a minute"),
        (8_887_654, 7_200, "1,234.4 a second"),
        (1, 30 * 86_400, "1 in 30 d"),
        (1, 0.2, "1 in 0 s"),
    ],
)
def test_a_rate_has_no_more_digits_than_what_was_counted(count, seconds, said):
    assert rate(series(count, seconds)) == said


@pytest.mark.parametrize(
    ("name", "count", "said", "fast"),
    [
        ("pay-us:card", 5_000_000, "5 s", "41.7 ms a minute"),
        ("requests-us", 72_000_000, "1 min 12 s", "10 ms a second"),
        ("pay-us:card", -1_500, "-1.5 ms", "-1.5 ms in 2 h"),
        ("pay:us", 5_000_000, "5,000,000", "694.44 a second"),
    ],
)
def test_a_sum_of_microseconds_has_its_unit(name, count, said, fast):
    assert total(count, name) == said
    assert rate(series(count, 7_200, name)) == fast


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [(0, "0 s"), (1, "1 µs"), (12_345, "12.3 ms"), (59_940_000, "59.9 s"), (90_061_000_000, "1 d 1 h")],
)
def test_times_are_written_in_the_unit_that_fits(microseconds, said):
    assert spent(microseconds) == said
