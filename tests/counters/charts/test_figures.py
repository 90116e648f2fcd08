"""Where the points of a chart lie."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from components.services.counters import Histogram, Measured, Sample, Series
from components.services.counters.charts import Bars, Chart, percentile_chart

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


def test_a_chart_of_nothing_is_flat_and_says_so():
    chart = Chart([series(None, None)])

    assert chart.is_empty
    assert chart.lines[0].path == "M0 1000H1V1000H2"
    assert chart.lines[0].peak is None
    assert not Chart([series(None, 0)]).is_empty


def test_numbers_and_times_have_their_places():
    chart = Chart([series(*[4] * 60)])

    assert [(tick.text, tick.place) for tick in chart.numbers] == [
        *zip("01234", (100, 75, 50, 25, 0), strict=True)
    ]
    assert [tick.is_zero for tick in chart.numbers] == [True, *[False] * 4]
    times = list(chart.times)
    assert [(tick.text, tick.place) for tick in times][:2] == [("12:00", 0), ("12:10", 16.67)]
    assert [tick.anchor for tick in times] == ["start", *["middle"] * 5, "end"]
    assert [tick.is_spare for tick in times] == [True, False, True, False, True, False, True]


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


FIRST = date(2011, 10, 1)


def days(count, first=FIRST):
    return [first + timedelta(days=number) for number in range(count)]


def test_layers_stand_on_each_other_the_first_at_the_bottom():
    bars = Bars(days(2), [("US", [60, 20]), ("DE", [20, 0])], ("3 others", [0, 80]))

    us, de, others = bars.layers

    assert bars.scale.high == 100
    assert (bars.is_empty, Bars(days(3), []).is_empty) == (False, True)
    assert [(shape.y, shape.height) for shape in us.shapes] == [
        ("40.000%", "60.000%"),
        ("80.000%", "20.000%"),
    ]
    assert [(shape.x, shape.y, shape.height) for shape in de.shapes] == [("5.000%", "20.000%", "20.000%")]
    assert [(shape.x, shape.y, shape.width) for shape in others.shapes] == [("55.000%", "0.000%", "40.000%")]
    assert [(layer.number, layer.name, layer.total) for layer in bars.layers] == [
        (1, "US", 80),
        (2, "DE", 20),
        (0, "3 others", 80),
    ]


def test_a_bar_tells_its_day_its_total_and_what_each_layer_adds():
    bars = Bars(days(2), [("US", [60, 20])], ("others", [0, 80]))

    assert [(bar.label, bar.total, bar.counts) for bar in bars.latest_first] == [
        ("2011-10-02", 100, (20, 80)),
        ("2011-10-01", 60, (60, 0)),
    ]


@pytest.mark.parametrize(
    ("count", "step", "bars", "last"),
    [
        (1, 1, 1, "2011-10-01"),
        (93, 1, 93, "2012-01-01"),
        (94, 7, 14, "2011-12-31 to 2012-01-02"),
        (366, 7, 53, "2012-09-29 to 2012-09-30"),
        (3_660, 91, 41, "2021-09-18 to 2021-10-07"),
    ],
)
def test_many_days_share_bars_wide_enough_to_see(count, step, bars, last):
    chart = Bars(days(count), [("US", [1] * count)])

    found = list(chart.bars)

    assert (chart.step, len(found), found[-1].label) == (step, bars, last)
    assert sum(bar.total for bar in found) == count
    assert chart.layers[0].counts[0] == step


@pytest.mark.parametrize("count", [1, 7, 8, 14, 93, 366])
def test_there_are_a_few_days_below_from_the_first_on(count):
    ticks = list(Bars(days(count), [("US", [1] * count)]).times)

    assert 1 <= len(ticks) <= 7
    assert ticks[0].text.endswith("10-01")
    assert [tick.is_spare for tick in ticks] == [bool(number % 2) for number in range(len(ticks))]
