"""What is told of traffic, against plain sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.services.geo import Level
from components.services.logs.traffic import MOST_DAYS, Report, Traffic, tables
from tests.support.traffic import LEVELS, count, id_at

DAY = date(2011, 10, 10)
WEEK = [DAY + timedelta(number) for number in range(-6, 1)]
LARGEST = 2**53 - 1

Days: TypeAlias = Mapping[date, Mapping[str, int]]


def plain(
    days: Days, level: Level, first: date, last: date, within: str
) -> tuple[Counter[str], Counter[str]]:
    """The lines of each place, of a period and of as many days before."""
    length = last - first + timedelta(1)
    found: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for day, places in days.items():
        for place, lines in places.items():
            name = id_at(place, level)
            if within and name != within and not name.startswith(f"{within}/"):
                continue
            if first <= day <= last:
                found[0][name] += lines
            elif first - length <= day < first:
                found[1][name] += lines
    return found


def check(report: Report, days: Days, top: int) -> None:
    """It says what plain sums say, and its parts add up."""
    sums, before = plain(days, report.level, report.first, report.last, report.within)
    best = sorted(sums.items(), key=lambda each: (-each[1], each[0]))[:top]
    assert [(row.id, row.count) for row in report.rows] == best
    assert (report.total, report.before) == (sum(sums.values()), sum(before.values()))
    assert report.others.places == len(sums) - len(best)
    parts = (*report.rows, report.others)
    assert sum(part.count for part in parts) == report.total
    assert sum(part.before for part in parts) == report.before
    assert sum(part.share for part in parts) == pytest.approx(1 if report.total else 0)
    assert len(report.by_day) == len(report.days) == (report.last - report.first).days + 1
    by_day = [plain(days, report.level, day, day, report.within)[0] for day in report.days]
    assert list(report.by_day) == [each.total() for each in by_day]
    for row in report.rows:
        assert list(row.by_day) == [each[row.id] for each in by_day]
        assert (row.before, row.share) == (before[row.id], row.count / report.total)
        assert row.growth == ((row.count - row.before) / row.before if row.before else None)


#: Ids as Place.id gives them, among them what is special in patterns, in ids and in names.
parts_of_ids = st.sampled_from(["US", "U", "USA", "*", "?", "[U]", "\\", "^", "-", "%2F", "%25", "é", " x"])
places = (
    st.lists(parts_of_ids, min_size=1, max_size=3).map("/".join)
    | st.builds("{}//{}".format, parts_of_ids, parts_of_ids)
    | st.just("unknown")
)
tables_of_days = st.dictionaries(
    st.sampled_from([DAY - timedelta(number) for number in range(10)]),
    st.dictionaries(places, st.integers(1, 5) | st.integers(1, 10**12), max_size=12),
)
periods = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables_of_days, periods, st.sampled_from(LEVELS), st.sampled_from([1, 2, 5, 100]), st.data())
def test_a_report_says_what_plain_sums_say(
    redis: Redis, days: Days, period: list[int], level: Level, top: int, data: st.DataObject
) -> None:
    redis.flushall()
    count(days)
    first, last = DAY - timedelta(period[1]), DAY - timedelta(period[0])
    above = {
        id_at(place, other)
        for counts in days.values()
        for place in counts
        for other in LEVELS[: LEVELS.index(level)]
    }
    within = data.draw(st.sampled_from(["", *sorted(above)]))

    check(Traffic().report(level, first=first, last=last, within=within, top=top), days, top)


def test_a_large_table_is_read_by_pages(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_PAGE", 500)
    cities = {f"{'US' if n % 3 else 'DE'}/{n % 7}/City {n}": 1 + n % 50 for n in range(2_000)}
    days: Days = {DAY: cities, DAY - timedelta(1): {"US/1/City 1": 7}, DAY - timedelta(2): cities}
    count(days)
    redis.config_resetstat()

    check(Traffic().report("city", first=DAY - timedelta(2), last=DAY, top=600), days, 600)
    calls = redis.info("commandstats")["cmdstat_hscan"]["calls"]
    check(Traffic().report("city", first=DAY, last=DAY, within="US/4", top=3), days, 3)
    assert calls >= 3 + 2 * (2_000 // 500 - 1)

    redis.flushall()  # and a long period in parts
    monkeypatch.setattr(tables, "_TOGETHER", 2)
    monkeypatch.setattr(tables, "_PAGE", 2)
    days = {day: {"US": 1 + number, "DE": 4, "FR": 2} for number, day in enumerate(WEEK)}
    count(days)
    check(Traffic().report(first=WEEK[3], last=DAY), days, 10)


def test_a_country_without_finer_data_shows_the_country(redis: Redis) -> None:
    count({DAY: {"US/CA/Palo Alto": 5, "US": 3, "US//Springfield": 2, "USA/CA": 9, "U": 9, "unknown": 9}})
    traffic = Traffic()

    regions = traffic.report("region", first=DAY, last=DAY, within="US")
    cities = traffic.report("city", first=DAY, last=DAY, within="US")
    unknown = traffic.report("city", first=DAY, last=DAY, within="unknown")

    assert [(row.id, row.count) for row in regions.rows] == [("US", 5), ("US/CA", 5)]
    found = [(row.id, row.count) for row in cities.rows]
    assert found == [("US/CA/Palo Alto", 5), ("US", 3), ("US//Springfield", 2)]
    assert [(row.id, row.share) for row in unknown.rows] == [("unknown", 1.0)]


def test_days_that_were_not_counted_by_a_level_are_nothing_before(redis: Redis) -> None:
    count({DAY - timedelta(1): {"US/CA": 5}}, levels=["country"])
    count({DAY: {"US/CA": 5}})
    traffic = Traffic()

    by_country, by_region = (traffic.report(level, first=DAY, last=DAY) for level in LEVELS[:2])
    in_a_country = traffic.report("region", first=DAY, last=DAY, within="US")

    assert (by_country.before, by_country.growth) == (5, 0.0)
    assert (by_region.before, by_region.growth) == (0, None)
    assert (in_a_country.before, in_a_country.growth) == (0, None)


def test_the_first_days_there_are_have_fewer_before(redis: Redis) -> None:
    days = {date.min: {"US": 2}, date.min + timedelta(1): {"US": 4}, date.max: {"DE": 1}}
    count(days)

    early = Traffic().report(first=date.min + timedelta(1), last=date.min + timedelta(3))
    late = Traffic().report(first=date.max, last=date.max)

    assert (early.total, early.before, len(early.days)) == (4, 2, 3)
    assert [row.id for row in late.rows] == ["DE"]


def test_the_latest_days_end_with_the_newest_that_has_lines(redis: Redis) -> None:
    traffic = Traffic()
    assert (traffic.latest(), traffic.days(), traffic.totals()) == (None, (), {})
    count({DAY: {"DE": 2}, date.max: {"DE": 1}}, job="nightly")
    count({DAY: {"US": 1}, date(1970, 1, 1): {"US": 1}})

    assert [(each.day, each.lines) for each in traffic.days()] == [(date(1970, 1, 1), 1), (DAY, 1)]
    assert [each.day for each in traffic.days(WEEK[2], DAY)] == [DAY]
    assert traffic.latest() == (WEEK[0], DAY)
    assert traffic.latest(1) == (DAY, DAY)
    assert traffic.latest(10**9) == (date.min, DAY)
    assert Traffic("nightly").latest(1) == (date.max, date.max)
    for days in (0, -1, True, 1.5):
        with pytest.raises(InvalidValue):
            traffic.latest(days)  # type: ignore[arg-type]


def test_rows_that_get_lines_meanwhile_add_up_all_the_same(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    count({DAY: {"US": 3, "DE": 2, "FR": 1}})
    scan = tables.scan

    def and_then_more(*args: Any) -> Any:
        yield from scan(*args)
        count({DAY: {"DE": 5}})

    monkeypatch.setattr("components.services.logs.traffic.traffic.scan", and_then_more)

    report = Traffic().report(first=DAY, last=DAY, top=2)

    assert [(row.id, row.count) for row in report.rows] == [("DE", 7), ("US", 3)]
    assert (report.total, report.by_day, report.others.count) == (10, (10,), 0)


@pytest.mark.parametrize(
    ("asked", "error", "of"),
    [
        ({"first": DAY, "last": WEEK[0]}, InvalidValue, "2011-10-10 to 2011-10-04"),
        ({"first": datetime(2011, 10, 10)}, InvalidValue, "datetime"),
        ({"first": "2011-10-10"}, InvalidValue, "'2011-10-10'"),
        ({"first": DAY - timedelta(3_660)}, InvalidValue, "3,661 days"),
        ({"level": "city", "first": DAY - timedelta(366)}, InvalidValue, "367 days"),
        ({"level": "town"}, InvalidValue, "'town'"),
        ({"within": "US"}, InvalidValue, "'US'.* by country"),
        ({"level": "region", "within": "US/CA"}, InvalidValue, "'US/CA'.* by region"),
        ({"level": "city", "within": "US/CA/Palo Alto"}, InvalidValue, "by city"),
        ({"level": "city", "within": "x" * 501}, InvalidName, None),
        ({"level": "city", "within": "\ud800"}, InvalidName, None),
        ({"top": 0}, InvalidValue, "is 0"),
        ({"top": 10_001}, InvalidValue, "10,000"),
        ({"top": True}, InvalidValue, "True"),
    ],
)
def test_an_invalid_question_is_reported(
    asked: dict[str, Any], error: type[Exception], of: str | None
) -> None:
    with pytest.raises(error, match=of):
        Traffic().report(**{"first": DAY, "last": DAY, **asked})


@pytest.mark.parametrize(("level", "top"), [("country", 10_000), ("region", 1), ("city", 10)])
def test_the_longest_periods_and_most_rows_can_be_asked_for(redis: Redis, level: Level, top: int) -> None:
    first = DAY - timedelta(MOST_DAYS[level] - 1)
    days = {first: {"US": 1}, DAY: {"US": 2}, first - (DAY - first) - timedelta(1): {"US": 4}}
    count(days)

    check(Traffic().report(level, first=first, last=DAY, top=top), days, top)
    with pytest.raises(InvalidName):
        Traffic("")
    with pytest.raises(InvalidName):
        Traffic().totals("")
