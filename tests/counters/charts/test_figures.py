"""Where the points of a chart lie."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from components.services.counters import Histogram, Measured, Sample, Series
from components.services.counters.charts import Chart, FamilySeries, charts_of, percentile_chart

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)


def series(*counts, name="hits", precision=60, is_over=True):
    samples = [
        Sample(NOON + place * timedelta(seconds=precision), count) for place, count in enumerate(counts)
    ]
    seconds = len(counts) * precision - (0 if is_over else 1)
    return Series(
        samples,
        name=name,
        precision=precision,
        since=NOON,
        until=NOON + timedelta(seconds=seconds),
        total=sum(filter(None, counts)),
    )


def test_one_counter_is_drawn_in_steps_each_as_wide_as_its_slice():
    [line] = Chart([series(0, 4, None, 2)]).lines

    assert line.path == "M0 1000H1V0H2V1000H3V500H4"
    assert line.area == "M0 1000V1000H1V0H2V1000H3V500H4V1000Z"
    assert line.open_path == ""


def test_several_counters_are_lines_from_middle_to_middle_on_one_scale():
    one, other = Chart([series(0, 4), series(2, None, name="misses")]).lines

    assert (one.path, one.area) == ("M0.5 1000 1.5 0", "")
    assert other.path == "M0.5 500 1.5 1000"
    assert [one.number, other.number] == [1, 2]


def test_the_slice_that_is_not_over_stands_apart():
    [alone] = Chart([series(4, 2, 1, is_over=False)]).lines
    one, _other = Chart([series(4, 2, 1, is_over=False), series(0, 0, 0, is_over=False)]).lines

    assert (alone.path, alone.open_path) == ("M0 0H1V500H2", "M2 750H3")
    assert (one.path, one.open_path) == ("M0.5 0 1.5 500", "M1.5 500 2.5 750")


def test_counts_taken_back_lie_below_zero():
    [line] = Chart([series(2, -2)]).lines

    assert line.path == "M0 0H1V1000H2"
    assert line.area == "M0 500V0H1V1000H2V500Z"


def test_a_chart_of_nothing_is_flat_and_says_so():
    chart = Chart([series(None, None)])

    assert chart.is_empty
    assert chart.lines[0].path == "M0 1000H1V1000H2"
    assert chart.lines[0].peak is None
    assert not Chart([series(None, 0)]).is_empty


def test_numbers_and_times_have_their_places():
    chart = Chart([series(*[4] * 60)])

    assert [(tick.text, tick.place, tick.is_zero) for tick in chart.numbers] == [
        ("0", 100, True),
        ("1", 75, False),
        ("2", 50, False),
        ("3", 25, False),
        ("4", 0, False),
    ]
    times = list(chart.times)
    assert [(tick.text, tick.place) for tick in times][:2] == [("12:00", 0), ("12:10", 16.67)]
    assert [tick.anchor for tick in times] == ["start", *["middle"] * 5, "end"]
    assert [tick.is_spare for tick in times] == [True, False, True, False, True, False, True]


def test_rows_have_the_latest_slice_first_on_the_clock_of_the_reader():
    with timezone.override("Asia/Kathmandu"):
        rows = list(Chart([series(1, None), series(3, 4)]).rows)

    assert [(f"{row.at:%H:%M}", row.counts) for row in rows] == [("17:46", [None, 4]), ("17:45", [1, 3])]
    assert rows[1].key == int(NOON.timestamp())


def test_a_family_is_the_sum_of_its_counters():
    one, other = series(1, None, 2), series(4, None, None)

    family = FamilySeries.of("sales", [one, other], like=one)

    assert [each.count for each in family] == [5, None, 2]
    assert (family.name, family.total, family.size, family.is_whole) == ("sales:*", 7, 2, True)
    assert (family.since, family.until, family.precision) == (one.since, one.until, 60)


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["tasks:enqueued", "tasks:successful", "tasks:failed", "tasks:retried"], [1, 3, 5, 2]),
        (["tasks:failed", "tasks:successful"], [5, 3]),
        (["a", "b", "c", "d", "e"], [1, 2, 3, 4, 5]),
        (["a", "b", "c", "sales-errors:x"], [1, 4, 6, 5]),
        (["a-errors", "b-errors", "c", "d", "e", "f", "g", "h"], [5, 1, 4, 6, 7, 8, 2, 3]),
    ],
)
def test_failures_are_red_and_successes_green_wherever_they_stand(names, numbers):
    chart = Chart([series(1, name=name) for name in names])

    assert [line.number for line in chart.lines] == numbers


def measured(*values):
    """Percentiles of slices in each of which some of *values* were measured; None if nothing was."""
    like = series(*[each or None for each in values], name="pay-us")
    slices = [
        Measured(each.at, Histogram.of([value] if value else []))
        for each, value in zip(like, values, strict=True)
    ]
    return percentile_chart("Time", like, slices)


def test_percentiles_are_steps_with_gaps_where_nothing_was_measured():
    chart = measured(1_000, 1_000, None, 10_000)

    assert [line.name for line in chart.lines] == ["p50", "p95", "p99"]
    path = chart.lines[0].path
    assert (path.count("M"), path.count("H")) == (2, 3)
    assert chart.lines[0].area == ""
    assert chart.unit == "us"


def test_series_of_different_units_are_different_charts():
    charts = charts_of([series(1, name=name) for name in ("pay", "pay-us", "fail", "pay-bytes")])

    assert [[line.name for line in chart.lines] for chart in charts] == [
        ["pay", "fail"],
        ["pay-us"],
        ["pay-bytes"],
    ]
