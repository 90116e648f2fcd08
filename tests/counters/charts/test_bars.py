"""Where the bars of days stand, and what they are made of."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from components.services.counters.charts import Bars

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
