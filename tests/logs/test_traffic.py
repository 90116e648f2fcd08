"""What is told of traffic, against plain sums: lines by day and place, by hour and status, by path and the like."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.exceptions import InvalidName, InvalidValue
from components.services.geo import Level
from components.services.logs import PLACES, Aggregation
from components.services.logs.keys import JobKeys
from components.services.logs.lines import Book, Combined, LineReader
from components.services.logs.traffic import Report, Traffic, tables
from components.services.logs.traffic.labels import LABELS
from components.services.logs.traffic.place_counter import PlaceCounter
from tests.support.counting_logs import hand_out, import_places_into, worker
from tests.support.restricted import operator
from tests.support.traffic import LEVELS, add, id_at
from tests.support.traffic import count as of_days

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


@settings(max_examples=25)
@given(tables_of_days, periods, st.sampled_from(LEVELS), st.sampled_from([1, 2, 5, 100]), st.data())
def test_reports_are_plain_sums(
    redis: Redis, days: Days, period: list[int], level: Level, top: int, data: st.DataObject
) -> None:
    redis.flushall()
    of_days(days)
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
    of_days(days)
    redis.config_resetstat()

    check(Traffic().report("city", first=DAY - timedelta(2), last=DAY, top=600), days, 600)
    calls = redis.info("commandstats")["cmdstat_hscan"]["calls"]
    check(Traffic().report("city", first=DAY, last=DAY, within="US/4", top=3), days, 3)
    assert calls >= 3 + 2 * (2_000 // 500 - 1)

    redis.flushall()  # and a long period in parts
    monkeypatch.setattr(tables, "_TOGETHER", 2)
    monkeypatch.setattr(tables, "_PAGE", 2)
    days = {day: {"US": 1 + number, "DE": 4, "FR": 2} for number, day in enumerate(WEEK)}
    of_days(days)
    check(Traffic().report(first=WEEK[3], last=DAY), days, 10)


def test_the_first_days_there_are_have_fewer_before(redis: Redis) -> None:
    days = {date.min: {"US": 2}, date.min + timedelta(1): {"US": 4}, date.max: {"DE": 1}}
    of_days(days)
    early = Traffic().report(first=date.min + timedelta(1), last=date.min + timedelta(3))
    late = Traffic().report(first=date.max, last=date.max)
    assert (early.total, early.before, len(early.days)) == (4, 2, 3)
    assert [row.id for row in late.rows] == ["DE"]


def test_the_latest_days_end_with_the_newest_that_has_lines(redis: Redis) -> None:
    traffic = Traffic()
    assert (traffic.latest(), traffic.days(), traffic.totals()) == (None, (), {})
    of_days({DAY: {"DE": 2}, date.max: {"DE": 1}}, job="nightly")
    of_days({DAY: {"US": 1}, date(1970, 1, 1): {"US": 1}})

    assert [(each.day, each.lines) for each in traffic.days()] == [(date(1970, 1, 1), 1), (DAY, 1)]
    assert [each.day for each in traffic.days(WEEK[2], DAY)] == [DAY]
    assert traffic.latest() == (WEEK[0], DAY)
    assert traffic.latest(1) == (DAY, DAY)
    assert traffic.latest(10**9) == (date.min, DAY)
    assert Traffic("nightly").latest(1) == (date.max, date.max)
    for days in (0, -1, True, 1.5):
        with pytest.raises(InvalidValue):
            traffic.latest(days)  # type: ignore[arg-type]


def test_rows_that_get_lines_meanwhile_add_up_as_well(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    of_days({DAY: {"US": 3, "DE": 2, "FR": 1}})
    scan = tables.scan

    def and_then_more(*args: Any) -> Any:
        yield from scan(*args)
        of_days({DAY: {"DE": 5}})

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
def test_a_wrong_question_is_reported(asked: dict[str, Any], error: type[Exception], of: str | None) -> None:
    with pytest.raises(error, match=of):
        Traffic().report(**{"first": DAY, "last": DAY, **asked})


COUNTRIES = {"1.0.0.1": "US", "2.0.0.1": "US", "3.0.0.1": "DE", "9.9.9.9": "unknown"}
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:126.0) Gecko/20100101 Firefox/126.0"

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def counted(redis, tmp_path):
    """A table of addresses, and an aggregation that takes part."""
    import_places_into(tmp_path)
    Aggregation(PLACES).join()


lines = st.lists(
    st.tuples(
        st.sampled_from([*COUNTRIES]),
        st.sampled_from([DAY, DAY - timedelta(1)]),
        st.sampled_from(["00:00", "13:30", "23:59"]),
        st.sampled_from(["/", "/a", "/a?b", "/c/d", "-", "/é"]),
        st.sampled_from(["200", "304", "404", "418", "433", "499", "-"]),
        st.sampled_from(["-", "https://www.example.org/x", "http://EXAMPLE.org:80"]),
        st.sampled_from(["-", FIREFOX, "curl/8.0"]),
    ),
    min_size=1,
    max_size=40,
)


def web(address, day, clock, path, status, referrer, agent):
    request = f'[{day:%d/%b/%Y}:{clock}:36 +0200] "GET {path} HTTP/1.1" {status} 5'
    return f'{address} - - {request} "{referrer}" "{agent}"\n'


def count(text: str, *, blocks: int = 1) -> None:
    """Count lines in so many chunks, each with a flush of its own."""
    every = text.encode().splitlines(keepends=True)
    hand_out(*(b"".join(every[number::blocks]) or b"\n" for number in range(blocks)))
    reader, counter = (LineReader(Combined(), kernel="naive"), PlaceCounter(kernel="naive", form=Combined()))
    consumer = Aggregation(PLACES).consumer()
    while chunks := consumer.claim(1):
        counter.block(reader.read(consumer.read(*chunks)))
        consumer.flush(chunks, counter.flush())


def stored(beginning: str = "values:") -> dict[str, dict[str, int]]:
    redis = operator()
    keys = [key for key in redis.keys("*") if JobKeys("default").counts(beginning).encode() in key]
    return {
        key.decode().partition(":table:")[2]: {
            member.decode(): int(lines) for member, lines in redis.hgetall(key).items() if int(lines)
        }
        for key in keys
    }


def expected(rows) -> dict[str, Counter[str]]:
    """Count the same lines in a plain loop."""
    tables: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for address, day, clock, path, status, referrer, agent in rows:
        shown = {"433": "4xx", "-": ""}.get(status, status)
        tables[f"hourly:{day}"][f"{clock[:2]}/{COUNTRIES[address]}/{shown}"] += 1
        tables[f"answers:{day}"][f"{clock[:2]}/{shown}"] += 1
        tables[f"daily:country:{day}"][COUNTRIES[address]] += 1
        tables["days"][f"{day}"] += 1
        outcome = "served" if status in ("200", "304", "-") else "unserved"
        names = {
            "path": path.partition("?")[0],
            "referrer": "-" if referrer == "-" else "example.org",
            "agent": {"-": "-", FIREFOX: "Firefox, Linux", "curl/8.0": "curl"}[agent],
        }
        for dimension, name in names.items():
            table = f"values:{dimension}:{outcome}:{day}"
            tables[table][name] += 1
            for each in ("*", clock[:2], f"@{COUNTRIES[address]}"):
                tables[f"{table}:{each}"][f"{shown}/{name}"] += 1
    return tables


@pytest.mark.parametrize("blocks", [1, 3])
@settings(max_examples=8)
@given(rows=lines)
def test_lines_are_counted_by_value_status_hour_and_country(redis, tmp_path, blocks, rows):
    redis.flushall()
    import_places_into(tmp_path)
    Aggregation(PLACES).join()
    count("".join(web(*row) for row in rows), blocks=blocks)
    tables = {
        name: found for name, found in stored("").items() if ":region:" not in name and ":city:" not in name
    }
    assert tables == expected(rows)


def test_a_value_that_is_kept_has_all_its_lines_and_the_others_are_added_up(counted):
    paths = [f"/{number % 1_500}" for number in range(4_500)]
    rows = [("1.0.0.1", DAY, "13:30", path, "200", "-", "-") for path in paths]
    missing = [("3.0.0.1", DAY, "13:30", f"/scan/{number}", "404", "-", "-") for number in range(1_200)]

    count("".join(web(*row) for row in [*rows, *missing]), blocks=3)

    tables = stored()
    for outcome, lines_of in (("served", rows), ("unserved", missing)):
        found = tables[f"values:path:{outcome}:{DAY}"]
        others = found.pop("")
        assert len(found) == 1_000
        assert found.items() <= Counter(row[3] for row in lines_of).items()
        assert others + sum(found.values()) == len(lines_of)
        for slice_ in ("*", "13", "@US" if outcome == "served" else "@DE"):
            sums = tables[f"values:path:{outcome}:{DAY}:{slice_}"]
            assert sum(sums.values()) == len(lines_of)
            assert {name.partition("/")[2] for name in sums} == {*found, ""}


def test_a_value_that_came_when_there_was_no_room_is_never_kept_later(redis):
    aggregation = Aggregation(PLACES)
    aggregation.join()
    consumer = aggregation.consumer()
    hand_out(b"x\n", b"y\n")
    for some in (range(1_002), range(990, 1_010)):
        consumer.flush(
            consumer.claim(1), {f"values:path:served:{DAY}": {f"*/200/{each}": 1 for each in some}}
        )
        assert redis.hlen(JobKeys("default").counts(f"values:path:served:{DAY}")) == 1_001

    found = aggregation.table(f"values:path:served:{DAY}")
    assert found[""] == 2 + 10
    assert [found[str(each)] for each in (0, 990, 999)] == [1, 2, 2]


def test_forgotten_days_take_all_their_tables_with_them(counted):
    days = [DAY - timedelta(number) for number in range(3)]
    count("".join(web(each, day, "13:30", "/a", "404", "-", "-") for each in COUNTRIES for day in days))
    before = {name: found for name, found in stored("").items() if name != "days"}

    assert [Traffic().forget(before=DAY) for _ in range(2)] == [2, 0]

    kept = {name: found for name, found in before.items() if str(DAY) in name}
    assert stored("") == {**kept, "days": {str(DAY): len(COUNTRIES)}}
    assert len(before) == 3 * len(kept) > 30
    for day in ("2011-10-10", datetime(2011, 10, 10)):
        with pytest.raises(InvalidValue):
            Traffic().forget(day)


@pytest.mark.parametrize(
    ("dimension", "value", "label"),
    [
        ("path", b"", "-"),
        ("path", b"/\x00\x1b[1m\xff", "/\ufffd\ufffd[1m\ufffd"),
        ("path", b"/" + b"a" * 300, "/" + "a" * 198 + "\u2026"),
        ("referrer", b"jim:secret@WWW.Example.org:8080", "example.org"),
        ("referrer", b"[::1]:80", "[::1]"),
        ("agent", b"Mozilla/5.0 (Macintosh; Mac OS X 10_15) AppleWebKit/605 Safari/605", "Safari, macOS"),
        ("agent", b"Mozilla/5.0 (Windows NT 10.0) Chrome/126 Safari/537 Edg/126", "Edge, Windows"),
        ("agent", b"Mozilla/5.0 (iPhone; like Mac OS X) AppleWebKit CriOS/126 Safari/604", "Chrome, iOS"),
        ("agent", b"Mozilla/5.0 (Linux; Android 14) Chrome/126 (compatible; Googlebot/2.1)", "Googlebot"),
        ("agent", b"python-requests/2.32", "Programs"),
        ("agent", b"something", "Other"),
    ],
)
def test_values_have_short_names_without_secrets(dimension, value, label):
    assert LABELS[dimension](value) == label


@given(rows=lines)
@settings(max_examples=6)
@pytest.mark.parametrize(
    "asked",
    [
        *({}, {"status": "2xx"}, {"status": "404", "hour": "13"}, {"country": "US"}, {"hour": "05"}),
        {"hour": "13", "country": "US", "status": "4xx"},
    ],
)
def test_reports_of_hours_and_values_are_what_a_loop_counts(redis, tmp_path, asked, rows):
    redis.flushall()
    import_places_into(tmp_path)
    Aggregation(PLACES).join()
    count("".join(web(*row) for row in rows))
    status = asked.get("status", "").removesuffix("xx")
    fitting = [
        row
        for row in rows
        if {"433": "4xx", "-": ""}.get(row[4], row[4]).startswith(status)
        and asked.get("hour", row[2][:2]) == row[2][:2]
        and asked.get("country", COUNTRIES[row[0]]) == COUNTRIES[row[0]]
    ]
    sums = [
        Counter(row[2][:2] for row in fitting),
        Counter(COUNTRIES[row[0]] for row in fitting),
        Counter({"433": "4xx", "-": ""}.get(row[4], row[4]) for row in fitting),
    ]
    for by_day_only in (0, 7):  # some lines that an earlier release has counted
        add({"days": {str(DAY): by_day_only}})
        found = Traffic().slices(DAY - timedelta(1), DAY, **asked)
        assert [found.by_hour, found.by_country, found.by_status] == sums
        assert found.total == sum(found.by_day) == len(fitting)
        assert found.without_hours == by_day_only
    add({"days": {str(DAY): -by_day_only}})
    if {"hour", "country"} <= asked.keys():
        for ask in (partial(Traffic().values, "path"), partial(Traffic().value, "path", "/")):
            with pytest.raises(InvalidValue, match="not by both together"):
                ask(DAY, DAY, **asked)
        return
    paths = Counter(row[3].partition("?")[0] for row in fitting)

    found = Traffic().values("path", DAY - timedelta(1), DAY, **asked)

    assert {row.value: row.count for row in found.rows} == paths
    assert all(row.is_exact for row in found.rows)
    assert (found.total, found.others, found.rest, found.without) == (len(fitting), 0, 0, 0)
    for path, lines_of in paths.items():
        one = Traffic().value("path", path, DAY - timedelta(1), DAY, **asked)
        these = [row for row in fitting if row[3].partition("?")[0] == path]
        assert one.total == sum(one.by_status.values()) == lines_of
        assert one.by_hour == ({} if "country" in asked else Counter(row[2][:2] for row in these))
        assert one.by_country == ({} if "hour" in asked else Counter(COUNTRIES[row[0]] for row in these))


def test_counts_that_may_lack_lines_are_told_apart(tmp_path):
    day = f"values:path:served:{DAY}"
    add({"days": {str(DAY): 20, "2011-10-09": 5}})
    add({day: {"/a": 7, "/b": 5, "": 3}, "values:path:served:2011-10-09": {"/c": 4}})
    add({f"{day}:13": {"200//a": 7, "200/": 1}, f"{day}:14": {"200//b": 5}})

    found = Traffic().values("path", DAY - timedelta(1), DAY, top=2)

    assert [(row.value, row.count, row.is_exact) for row in found.rows] == [("/a", 7, True), ("/b", 5, True)]
    assert (found.total, found.more, found.rest, found.others, found.without) == (19, 1, 4, 3, 6)
    every = Traffic().values("path", DAY - timedelta(1), DAY).rows
    assert [(row.value, row.is_exact) for row in every] == [("/a", True), ("/b", True), ("/c", False)]
    assert all(row.is_exact for row in Traffic().values("path", DAY - timedelta(1), DAY, hour="14").rows)


def test_an_invalid_question_of_hours_and_values_is_refused():
    wrong = {"'24'": {"hour": "24"}, "'7'": {"hour": "7"}, "'4'": {"status": "4"}, "'600'": {"status": "600"}}
    wrong |= {"93 days": {"first": DAY - timedelta(92)}, "2011-10-11 to ": {"first": DAY + timedelta(1)}}
    for of, asked in wrong.items():
        with pytest.raises(InvalidValue, match=of):
            Traffic().slices(**{"first": DAY, "last": DAY, **asked})
    with pytest.raises(InvalidName):
        Traffic().values("color", DAY, DAY)
    with pytest.raises(InvalidValue):
        PlaceCounter(form=Book(), dimensions=["path"])


def test_a_time_that_is_missing_or_no_time_has_no_hour_nor_have_members_of_another_form(counted):
    add({f"hourly:{DAY}": {"00/US": 5, "x": 5, "a/b/c/d": 5}, f"answers:{DAY}": {"x": 5}})
    hand_out(b"1.0.0.1 2011-10-10\n1.0.0.1 2011-10-10 soon\n1.0.0.1 2011-10-10 07:00:00 x\n")
    worker().run()
    assert Traffic().slices(DAY, DAY).by_hour == {"": 2, "07": 1}
