"""Which slices a chart asks for, and what it costs to ask."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from components.exceptions import InvalidValue
from components.services.counters import Counter
from components.services.counters.charts import Span, offered_spans
from tests.control_room.pages import trips
from tests.support.counters import seconds

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
