"""Where the points of a chart lie, the round numbers beside them, and which slices a chart asks for."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.exceptions import InvalidValue
from components.services.counters import Counter, Histogram, Measured, Sample, Series
from components.services.counters.charts import Bars, Chart, Span, offered_spans
from components.services.counters.charts.figures import percentile_chart
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
from tests.control_room.pages import trips
from tests.support.counters import seconds

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

    assert [line.series.name for line in chart.lines] == ["p50", "p95", "p99"]
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

    assert [(bar.label, bar.total, bar.counts) for bar in reversed([*bars.bars])] == [
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


def total_of(count, seconds=7_193, name="hits"):
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
    assert rate(total_of(count, seconds)) == said


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
    assert rate(total_of(count, 7_200, name)) == fast


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [(0, "0 s"), (1, "1 µs"), (12_345, "12.3 ms"), (59_940_000, "59.9 s"), (90_061_000_000, "1 d 1 h")],
)
def test_times_are_written_in_the_unit_that_fits(microseconds, said):
    assert spent(microseconds) == said


HOUR, DAY = 3_600, 86_400

pytestmark = pytest.mark.usefixtures("redis")


def ago(redis, count):
    return datetime.fromtimestamp(seconds(redis) - count, UTC)


@pytest.mark.parametrize(
    ("span", "precision", "slices"),
    [
        (120, 1, 120),
        (600, 5, 120),
        (HOUR, 60, 60),
        (2 * HOUR, 60, 120),
        (6 * HOUR, 300, 72),
        (DAY, 3_600, 24),
        (7 * DAY, 3_600, 168),
        (30 * DAY, 18_000, 144),
        (120 * DAY, DAY, 120),
    ],
)
def test_a_time_is_seen_in_the_finest_slices_that_have_room_and_are_kept(span, precision, slices):
    series = Span(span).read(["hits"])["hits"]

    assert (series.precision, len(series)) == (precision, slices)
    assert span in offered_spans()


def test_a_time_between_two_instants_is_seen_as_fine_as_it_is_kept(redis):
    now = datetime.fromtimestamp(seconds(redis), UTC)
    recent = Span(since=now - timedelta(seconds=300), until=now - timedelta(seconds=100)).read(["hits"])[
        "hits"
    ]
    older = Span(since=ago(redis, 2 * DAY), until=ago(redis, 2 * DAY - HOUR)).read(["hits"])["hits"]
    whole = Span(since=ago(redis, 9 * HOUR)).read(["hits"])["hits"]

    assert (recent.precision, len(recent)) == (1, 200)
    assert older.precision == HOUR
    assert whole.precision == 300
    assert whole.until >= now


@pytest.mark.parametrize(
    "span",
    [
        {"seconds": DAY, "precision": 1},
        {"seconds": 120 * DAY, "precision": HOUR},
        {"seconds": HOUR, "precision": 5},
        {"seconds": 0},
        {"seconds": 999 * DAY},
        {"precision": 7},
    ],
)
def test_a_range_too_long_for_its_slices_is_refused(span):
    with pytest.raises(InvalidValue):
        Span(**span).read(["hits"])


def test_the_largest_counters_of_a_big_family_are_summed(redis, monkeypatch):
    monkeypatch.setattr("components.services.counters.charts.spans.MOST_SUMMED", 2)
    for name, count in (("sales:wood", 2), ("sales:iron", 5), ("sales:clay", 3)):
        Counter(name).update(count)

    [sales] = Span().lines([], ["sales"])[0]

    assert (sales.total, sales.size, sales.is_whole) == (8, 2, False)


def test_a_chart_of_any_number_of_counters_is_one_round_trip_or_two():
    names = [f"hits:{number}" for number in range(8)]
    Span().read(names)

    with trips() as default:
        Span().lines(names)
    with trips() as other:
        Span(HOUR).lines(names)

    assert (len(default), len(other)) == (1, 2)
