"""How totals and rates are written: with as many digits as they have, and with a unit if they are times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from components.services.counters import Series
from components.services.counters.charts.scales import rate, spent, total

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def series(count, seconds=7_193, name="hits"):
    return Series(
        [], name=name, precision=60, since=NOON, until=NOON + timedelta(seconds=seconds), total=count
    )


@pytest.mark.parametrize(
    ("count", "seconds", "said"),
    [
        (1, 7_193, "1 in 1 h 59 min"),
        (-1, 7_200, "-1 in 2 h"),
        (0, 7_200, "\N{EN DASH}"),
        (2, 7_200, "1 an hour"),
        (3, 7_200, "2 an hour"),
        (13, 7_200, "6.5 an hour"),
        (121, 7_193, "1.01 a minute"),
        (3_600, 7_200, "30 a minute"),
        (-3_600, 7_200, "-30 a minute"),
        (8_887_654, 7_200, "1,234.4 a second"),
        (12, 1, "12 a second"),
        (1, 30 * 86_400, "1 in 30 d"),
        (31, 30 * 86_400, "1 a day"),
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
        ("pay-us:card", 900, "900 µs", "900 µs in 2 h"),
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
