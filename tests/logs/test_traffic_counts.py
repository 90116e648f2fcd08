"""Lines by hour, country, status, path, referrer and agent: against a plain loop over the same lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from functools import partial
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.exceptions import InvalidName, InvalidValue
from components.services.logs import PLACES, Aggregation
from components.services.logs.keys import JobKeys
from components.services.logs.lines import Book, Combined, LineReader
from components.services.logs.traffic import Traffic
from components.services.logs.traffic.labels import LABELS
from components.services.logs.traffic.place_counter import PlaceCounter
from tests.support.counting_logs import hand_out, import_places_into, worker
from tests.support.restricted import operator
from tests.support.traffic import add

DAY = date(2011, 10, 10)
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
    """Return all tables that begin so."""
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
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("asked", [{}, {"status": "2xx"}, {"status": "404", "hour": "13"}, {"country": "US"}])
def test_reports_of_values_are_what_a_loop_counts(redis, tmp_path, asked, rows):
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


def test_an_hour_and_a_country_are_not_combined():
    for ask in (partial(Traffic().values, "path"), partial(Traffic().value, "path", "/")):
        with pytest.raises(InvalidValue, match="not by both together"):
            ask(DAY, DAY, hour="13", country="US")
    with pytest.raises(InvalidName):
        Traffic().values("color", DAY, DAY)
    with pytest.raises(InvalidValue):
        PlaceCounter(form=Book(), dimensions=["path"])


@pytest.mark.parametrize(
    ("by_day_only", "asked"),
    [
        (0, {}),
        (7, {}),
        (0, {"hour": "00"}),
        (7, {"country": "US"}),
        (7, {"status": "4xx"}),
        (0, {"hour": "13", "country": "US", "status": "404"}),
        (0, {"hour": "05"}),
        (0, {"country": "DE", "status": "2xx"}),
    ],
)
def test_hour_country_and_status_can_be_combined(asked, by_day_only):
    days = [DAY - timedelta(1), DAY]
    members = [*product(["", "00", "13"], ["US", "DE", "unknown"], ["", "200", "404", "418", "4xx"])]
    tables = {
        f"hourly:{day}": {"/".join(each): number * factor for number, each in enumerate(members, 1)}
        for factor, day in enumerate(days, 1)
    }
    in_all = {str(day): sum(tables[f"hourly:{day}"].values()) for day in days}
    sums = defaultdict(Counter)
    for day in days:
        for member, lines in tables[f"hourly:{day}"].items():
            hour, country, status = member.split("/")
            sums[f"answers:{day}"][f"{hour}/{status}"] += lines
            sums[f"daily:country:{day}"][country] += lines
    sums[f"daily:country:{DAY}"]["US"] += by_day_only
    add({**tables, **sums, "days": {**in_all, str(DAY): in_all[str(DAY)] + by_day_only}})

    found = Traffic().slices(days[0], days[1], **asked)

    def fits(hour, country, status):
        wanted = asked.get("status", "")
        is_status = status.startswith("4") if wanted == "4xx" else wanted in ("", status)
        is_status = is_status if wanted != "2xx" else status.startswith("2")
        return asked.get("hour", "") in ("", hour) and asked.get("country", "") in ("", country) and is_status

    sums = [Counter(), Counter(), Counter()]
    for day in days:
        for member, lines in tables[f"hourly:{day}"].items():
            if fits(*(parts := member.split("/"))):
                for counter, part in zip(sums, parts, strict=True):
                    counter[part] += lines
    assert [found.by_hour, found.by_country, found.by_status] == sums
    assert {found.total, sum(found.by_day)} == {each.total() for each in sums}
    assert found.without_hours == by_day_only


def test_a_time_that_is_missing_or_no_time_has_no_hour_nor_have_members_of_another_form(counted):
    add({f"hourly:{DAY}": {"00/US": 5, "x": 5, "a/b/c/d": 5}})
    hand_out(b"1.0.0.1 2011-10-10\n1.0.0.1 2011-10-10 soon\n1.0.0.1 2011-10-10 07:00:00 x\n")
    worker().run()

    assert Traffic().slices(DAY, DAY).by_hour == {"": 2, "07": 1}


@pytest.mark.parametrize(
    ("asked", "of"),
    [
        ({"hour": "24"}, "'24'"),
        ({"hour": "7"}, "'7'"),
        ({"status": "4"}, "'4'"),
        ({"status": "600"}, "'600'"),
        ({"first": DAY - timedelta(92)}, "93 days"),
        ({"first": DAY + timedelta(1)}, "2011-10-11 to 2011-10-10"),
    ],
)
def test_an_invalid_question_is_refused(asked, of):
    with pytest.raises(InvalidValue, match=of):
        Traffic().slices(**{"first": DAY, "last": DAY, **asked})
