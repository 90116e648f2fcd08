"""What the Counters page shows: the list, charts with their tables, families, files."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.test.utils import override_settings

import components
from components.services.counters import Counter, CounterReader, Marks
from components.services.counters.buffer import DROPPED, DROPPED_TIME, OUTAGES
from components.templatetags.control_room import legible
from tests.control_room.pages import FRAMELESS, rows_of, text_of, trips, words
from tests.counters.admin.counting import counted, this_minute
from tests.locks.admin.test_locks_page import AWKWARD
from tests.support.counters import seconds

ROOT = "/admin/components/counter/"
DASH = "\N{EN DASH}"

pytestmark = pytest.mark.usefixtures("redis")


@pytest.fixture
def viewer(staff):
    return staff("view_counter")


def page(client, name="", /, **query):
    return text_of(client, ROOT, name, **query)


def chart_of(client, name="chart/", /, **query):
    """The counts in the table below a chart, by the second at which their slice begins."""
    html = client.get(ROOT + name, query, headers=FRAMELESS).text
    rows = re.findall(r'<tr data-key="(\d+)"[^>]*>(.*?)</tr>', html, re.DOTALL)
    return {int(second): re.findall(r'<td class="number"[^>]*>(.*?)</td>', row) for second, row in rows}


def refused(client, name, **query):
    """What is said of an address that cannot be answered."""
    response = client.get(ROOT + name, query)
    assert response.status_code == 400
    assert "live.js" not in response.text
    return words(response)


def lines_of(response):
    assert response.status_code == 200
    return list(csv.reader(io.StringIO(response.text)))


def instant(redis, ago):
    return f"{datetime.fromtimestamp(seconds(redis) - ago, UTC):%Y-%m-%dT%H:%M:%SZ}"


def test_while_nothing_is_counted_one_sentence_says_how_that_changes(viewer):
    assert rows_of(viewer, ROOT) == [
        'Nothing has been counted yet. count("hits") of components.services.counters counts something.'
    ]
    assert "Compare in a chart" not in page(viewer)


def test_a_counter_is_listed_with_what_it_counted_in_two_hours(viewer, redis):
    counted(redis, "hits", *[30] * 60)

    [row] = rows_of(viewer, ROOT)

    assert re.fullmatch(r"hits 1,800 15(\.\d+)? a minute in this time", row)


def test_a_counter_that_rests_says_when_it_was_seen_last(viewer, redis):
    counted(redis, "hits", 1)
    yesterday = (seconds(redis) - 86_400) * 1_000_000
    for key in redis.keys("*names*"):
        redis.zadd(key, {"hits": yesterday})
    redis.delete(*redis.keys("*samples*"))

    [row] = rows_of(viewer, ROOT)

    assert row.startswith(f"hits 0 {DASH} ")
    assert row.endswith("1 d ago")


def test_families_are_listed_with_how_many_counters_they_have(viewer):
    for name in ("sales:wood", "sales:iron", "mails:sold", "hits"):
        Counter(name).update()

    assert rows_of(viewer, ROOT) == ["mails 1", "sales 2"]
    assert len(rows_of(viewer, ROOT, table=1)) == 4


def test_a_long_list_has_pages_that_hold_each_counter_once(viewer):
    names = {f"hit-{number}" for number in range(120)}
    for name in names:
        Counter(name).update()

    pages = [rows_of(viewer, ROOT, offset=offset) for offset in (0, 50, 100)]

    assert [len(rows) for rows in pages] == [50, 50, 20]
    assert {row.split()[0] for rows in pages for row in rows} == names
    assert f"51{DASH}100 of 120" in page(viewer, offset=50)


@pytest.mark.parametrize("text", ["sales:wood", "  sales:wood "])
def test_a_counter_is_found_by_its_whole_name(viewer, text):
    Counter("sales:wood").update()

    assert viewer.get(ROOT, {"q": text}).url == f"{ROOT}chart/?counter=sales%3Awood"


@pytest.mark.parametrize("text", ["sales", "sales:", "sales:*"])
def test_a_family_is_found_by_its_name(viewer, text):
    Counter("sales:wood").update()

    assert viewer.get(ROOT, {"q": text}).url == f"{ROOT}family/?family=sales"


def test_counters_are_found_by_a_part_of_their_names(viewer):
    for name in ("sales:wood", "sales:iron", "Wooden"):
        Counter(name).update()

    response = viewer.get(ROOT, {"q": "wood"})

    assert "The first 2 of the 2,000 most recent counters contain “wood”." in words(response)
    assert {row.split()[0] for row in rows_of(viewer, ROOT, q="wood")} == {"sales:wood", "Wooden"}
    assert "live.js" not in response.text


@pytest.mark.parametrize("text", ["tree", "x" * 600, "a\x00b"])
def test_a_missing_result_is_reported(viewer, text):
    Counter("hits").update()

    said = words(viewer.get(ROOT, {"q": text}))

    assert f"None of the 2,000 most recent counters contain “{legible(text)}”." in said
    assert "All counters" in said


def test_counts_dropped_by_processes_are_reported(viewer):
    assert "dropped" not in page(viewer)
    Counter(DROPPED).update(1_234)
    Counter(DROPPED_TIME).update(5_000_000)
    Counter(OUTAGES).update(2)

    text = page(viewer)

    assert "processes have dropped 1,234 of counted events" in text
    assert "processes have dropped 5 s of measured time" in text
    assert "processes found that Redis was away and came back, 2 times" in text


def test_a_chart_and_its_table_say_what_the_counter_says(viewer, redis):
    minute = counted(redis, "hits", 7, 0, 1_200, now=3)

    text = page(viewer, "chart/", counter="hits")
    rows = chart_of(viewer, counter="hits")

    assert "hits: 1,210 in all, at most 1,200 at" in text
    assert [rows[minute - ago * 60] for ago in range(5)] == [["3"], ["7"], ["0"], ["1,200"], [DASH]]
    assert len(rows) == 120
    assert list(rows) == sorted(rows, reverse=True)
    assert "live.js" in viewer.get(f"{ROOT}chart/?counter=hits").text


def test_counters_are_compared_in_one_chart(viewer, redis):
    minute = counted(redis, "hits", 7, now=3)
    counted(redis, "misses", 2, minute=minute)

    html = viewer.get(f"{ROOT}chart/?counter=hits&counter=misses&counter=hits").text

    assert chart_of(viewer, counter=["hits", "misses"])[minute - 60] == ["7", "2"]
    assert len(re.findall(r'<path class="chart-line line-\d" d="M0\.5', html)) == 2
    assert html.count('type="checkbox" name="counter"') == 2


def test_families_are_compared_as_sums(viewer, redis):
    minute = this_minute(redis)
    for name, count in (("sales:wood", 2), ("sales:iron", 5), ("mails:sold", 1)):
        counted(redis, name, count, minute=minute)

    text = page(viewer, "chart/", family=["sales", "mails"])

    assert chart_of(viewer, family=["sales", "mails"])[minute - 60] == ["7", "1"]
    assert "of 2 counters" in text
    assert "2 families" in words(viewer.get(f"{ROOT}chart/?family=sales&family=mails"))


@pytest.mark.parametrize(
    ("typed", "named"), [("misses", ["hits", "misses"]), (" sales:* ", ["hits", "sales:*"]), ("", ["hits"])]
)
def test_another_can_be_added(viewer, redis, typed, named):
    counted(redis, "hits", 1)

    html = viewer.get(f"{ROOT}chart/", {"counter": "hits", "add": typed}).text

    assert re.findall(r'<th scope="col" class="number wrap">(.*?)</th>', html) == named


def test_more_slices_than_can_be_seen_are_not_drawn(viewer):
    said = refused(viewer, "chart/", counter="hits", span="10368000", precision="3600")

    assert "These are 2,880 slices of 3,600 s; 1,000 can be drawn." in said


def test_without_a_counter_the_page_says_what_to_do(viewer):
    assert "Name a counter to see its chart" in page(viewer, "chart/")


def test_a_counter_that_has_not_counted_says_so(viewer):
    assert "Nothing was counted in this time." in page(viewer, "chart/", counter="nobody")


@pytest.mark.parametrize(
    ("span", "precision", "said", "slices"),
    [
        ("", "", "in slices of 1 min,", 120),
        ("120", "", "in slices of 1 s,", 120),
        ("432000", "", "in slices of 1 h,", 120),
        ("432000", "86400", "in slices of 1 d,", 5),
        ("10368000", "", "in slices of 1 d,", 120),
    ],
)
def test_the_time_and_the_slices_can_be_picked(viewer, span, precision, said, slices):
    assert said in page(viewer, "chart/", counter="hits", span=span, precision=precision)
    assert len(chart_of(viewer, counter="hits", span=span, precision=precision)) == slices


def test_a_time_between_two_instants_can_be_picked(viewer, redis):
    counted(redis, "hits", *range(1, 60))
    since, until = instant(redis, 1_800), instant(redis, 1_200)
    query = {"counter": "hits", "from": since, "until": until, "precision": "60"}

    rows = chart_of(viewer, **query)

    found = CounterReader().read(
        ["hits"], 60, since=datetime.fromisoformat(since), until=datetime.fromisoformat(until)
    )["hits"]
    assert rows == {int(each.at.timestamp()): [str(each.count)] for each in found}
    assert "live.js" not in viewer.get(f"{ROOT}chart/", query).text


def test_an_instant_without_a_zone_is_on_the_clock_of_the_reader(viewer, redis):
    with override_settings(TIME_ZONE="Asia/Kathmandu"):
        local = datetime.fromtimestamp(seconds(redis) - 1_800, UTC) + timedelta(hours=5, minutes=45)
        html = viewer.get(f"{ROOT}chart/", {"counter": "hits", "from": f"{local:%Y-%m-%dT%H:%M}"}).text

        assert f'value="{local:%Y-%m-%dT%H:%M}:00"' in html
        [first] = re.findall(r'data-since="(\d+)"', html)

    assert 0 <= seconds(redis) - 1_800 - int(first) < 70


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"span": "soon"}, "The time is 'soon'; it must be a whole number of seconds."),
        ({"span": "0"}, "it must be at least 1 s"),
        ({"span": "-5"}, "The time is '-5'"),
        ({"span": "9" * 40}, "it must be a whole number of seconds"),
        ({"span": "99999999"}, "the last 120 are kept"),
        ({"span": "86400", "precision": "1"}, "of slices of 1 s the last 600 are kept"),
        ({"precision": "7"}, "The precision is 7; it must be one of these"),
        ({"precision": "nan"}, "The precision is 'nan'"),
        ({"precision": "1.5"}, "The precision is '1.5'"),
        ({"from": "yesterday"}, "From is 'yesterday'; it must be a date and a time"),
        ({"from": "2026-02-30T12:00"}, "From is '2026-02-30T12:00'"),
        ({"from": "0001-01-01T00:00+14:00"}, "it must be a date and a time"),
        ({"from": "0001-01-01T00:00Z"}, "too long ago"),
        ({"from": "1900-01-01T00:00Z"}, "too long ago"),
        ({"from": "9999-12-31T23:59Z"}, "lies ahead"),
        ({"until": "2026-01-01T12:00"}, "but not its beginning"),
        ({"from": "2026-01-01T12:00", "until": "2026-01-01T11:00"}, "is reversed"),
        ({"from": "2026-01-01T12:00", "until": "2026-01-01T12:00"}, "is reversed"),
        ({"counter": "x" * 501}, "A counter cannot be called"),
        ({"counter": [f"hits {number}" for number in range(9)]}, "9 lines; there is room for 8"),
        ({"family": "x" * 501}, "A family of counters cannot be called"),
    ],
)
@pytest.mark.parametrize("name", ["chart/", "csv/"])
def test_an_invalid_question_is_reported(viewer, name, query, said):
    query = {"counter": "hits", **query}
    if name == "csv/" and query.keys() & {"counter"} and isinstance(query["counter"], list):
        query["counter"] = [f"hits {number}" for number in range(51)]
        said = "51 lines; there is room for 50"

    response = viewer.get(ROOT + name, query)

    assert response.status_code == 400
    assert said in words(response)
    assert "live.js" not in response.text


def test_a_file_has_room_for_as_many_families_as_a_chart(viewer):
    said = refused(viewer, "csv/", family=[f"sales-{number}" for number in range(9)])

    assert said == "These are 9 families; there is room for 8."


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Honolulu"])
@pytest.mark.parametrize("at", ["0001-01-01T00:00", "0001-01-01T00:00Z", "9999-12-31T23:59Z"])
def test_the_ends_of_the_calendar_are_refused_wherever_the_reader_is(viewer, zone, at):
    with override_settings(TIME_ZONE=zone):
        refused(viewer, "chart/", counter="hits", **{"from": at})


@pytest.mark.parametrize("top", ["0", "9", "-1", "x", "1.5", "0000000019", "\N{SUPERSCRIPT TWO}"])
def test_a_number_of_lines_that_cannot_be_is_said(viewer, top):
    assert "it has room for 1 to 8" in refused(viewer, "family/", family="sales", top=top)


@pytest.mark.parametrize("family", ["", "x" * 501])
def test_a_family_that_cannot_be_is_said(viewer, family):
    assert "A family of counters cannot be called" in refused(viewer, "family/", family=family)


def test_a_family_shows_the_first_in_a_chart_and_all_in_order(viewer, redis):
    minute = this_minute(redis)
    for number in range(1, 8):
        counted(redis, f"sales:{number}", number, minute=minute)

    ranking = rows_of(viewer, ROOT, "family/", table=1, family="sales", top=3)

    assert chart_of(viewer, "family/", family="sales", top=3)[minute - 60] == ["7", "6", "5"]
    assert [row.split()[0] for row in ranking] == [f"sales:{number}" for number in range(7, 0, -1)]
    assert [row.split()[1] for row in ranking] == [str(number) for number in range(7, 0, -1)]


def test_a_large_family_has_pages(viewer, redis):
    for number in range(120):
        Counter(f"sales:{number}").update(1_000 - number)

    pages = [
        [row.split()[0] for row in rows_of(viewer, ROOT, "family/", table=1, family="sales", offset=offset)]
        for offset in (0, 50, 100, 5_000)
    ]

    assert [name for rows in pages[:3] for name in rows] == [f"sales:{number}" for number in range(120)]
    assert pages[3] == pages[2]
    assert f"51{DASH}100 of 120" in page(viewer, "family/", family="sales", offset=50)


def test_a_family_counts_only_those_that_counted_in_the_time_asked_for(viewer, redis):
    Counter("sales:wood").update(2)
    Counter("sales:iron").update(5)
    redis.delete(*redis.keys("*sales:iron/1:*"))

    assert f"1{DASH}1 of 1" in page(viewer, "family/", family="sales", span="120")
    assert f"1{DASH}2 of 2" in page(viewer, "family/", family="sales", span="7200")


def test_a_family_without_counts_says_so(viewer):
    assert "There is no such family now." in page(viewer, "family/", family="sales")


def test_a_selection_is_kept_on_the_next_page(viewer, redis):
    counted(redis, "sales:wood", 2)

    html = viewer.get(f"{ROOT}family/?family=sales&span=3600&precision=300").text

    links = [
        parse_qs(urlsplit(link).query)
        for link in re.findall(r'href="(/admin/components/counter/[^"]*)"', html.replace("&amp;", "&"))
    ]
    assert {"counter": ["sales:wood"], "span": ["3600"], "precision": ["300"]} in links
    assert '<input type="hidden" name="span" value="3600">' in html


def test_the_file_holds_what_the_chart_shows(viewer, redis):
    minute = counted(redis, "hits", 7, 0, now=3)
    counted(redis, "sales:wood", 2, minute=minute)
    counted(redis, "sales:iron", 5, minute=minute)

    response = viewer.get(f"{ROOT}csv/?counter=hits&family=sales&span=3600")
    head, *lines = lines_of(response)

    found = {datetime.fromisoformat(line[0]).timestamp(): line[1:] for line in lines}
    assert head == ["from", "hits", "sales:*"]
    assert [found[minute - ago * 60] for ago in range(4)] == [["3", "0"], ["7", "7"], ["0", ""], ["", ""]]
    assert list(found) == [min(found) + place * 60 for place in range(60)]
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="counters-hits.csv"'


def test_a_file_has_room_for_all_that_is_kept(viewer):
    _head, *lines = lines_of(viewer.get(f"{ROOT}csv/?counter=hits&span=10368000&precision=3600"))

    assert len(lines) >= 119 * 24


#: What spreadsheets take for formulas, also those that heed the width of signs no more than people do.
FORMULAS = [
    "=1+2",
    "+1",
    "-1",
    "@SUM(A1)",
    "\ttab",
    "\n=1+2",
    "\rx",
    "\x0b=1",
    " =1",
    "\u200b=1",
    " \u2028=1",
]
WIDE = ["\uff1d1+2", "\uff0b1", "\uff0d1", "\uff20A", "\ufe661", "\u22121"]


@pytest.mark.parametrize("name", FORMULAS + WIDE)
def test_a_spreadsheet_calculates_no_name(viewer, name):
    head, *_lines = lines_of(viewer.get(f"{ROOT}csv/", {"counter": name}))

    assert head == ["from", f"'{name}"]


@pytest.mark.parametrize("name", ["a=1", "1-1", "#1", "'=1"])
def test_other_names_are_left_as_they_are(viewer, name):
    head, *_lines = lines_of(viewer.get(f"{ROOT}csv/", {"counter": name}))

    assert head == ["from", name]


def test_there_is_one_writer_of_files_for_spreadsheets():
    folder = Path(components.__file__).parent

    writes = re.compile(r"\bcsv\.(writer|DictWriter)\b|\bfrom csv import\b.*\b(writer|DictWriter)\b")
    assert [path.name for path in folder.rglob("*.py") if writes.search(path.read_text())] == ["sheets.py"]


def test_a_file_of_nothing_is_refused(viewer):
    response = viewer.get(f"{ROOT}csv/")

    assert response.status_code == 400
    assert response.text == "No counter is named; say which, as ?counter=hits.\n"


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_has_its_pages(viewer, redis, name):
    minute = counted(redis, name, 7)
    counted(redis, f"{name[:400]}:member", 7, minute=minute)

    html = viewer.get(ROOT).text
    links = {
        link.replace("&amp;", "&") for link in re.findall(r'href="(/admin/[^"]*chart/\?counter=[^"]*)"', html)
    }
    assert f"{ROOT}chart/?{urlencode({'counter': name})}" in links
    for link in links:
        assert ": 7 in all" in words(viewer.get(link, headers=FRAMELESS))
    assert "<script>alert" not in html
    family = name[:400].partition(":")[0]
    assert chart_of(viewer, "family/", family=family)[minute - 60] == ["7"]
    head, *lines = lines_of(viewer.get(f"{ROOT}csv/", {"counter": name}))
    assert head[1].removeprefix("'") == name
    assert [line[1] for line in lines if line[1] not in ("", "0")] == ["7"]


def test_the_pages_of_another_site_lead_to_their_own(viewer, redis):
    counted(redis, "sales:wood", 7)

    for name in ("", "chart/?counter=sales:wood", "family/?family=sales"):
        html = viewer.get(f"/operations/components/counter/{name}").text
        assert "/operations/components/counter/chart/?counter=sales%3Awood" in html
        assert "/admin/components/" not in html


@pytest.mark.parametrize("count", [1, 60])
def test_the_list_costs_the_same_however_many_counters_there_are(viewer, count):
    for number in range(count):
        Counter(f"sales:{number}").update()
    viewer.get(ROOT)

    with trips() as made:
        viewer.get(ROOT)

    assert len(made) == 6


def test_a_chart_costs_two_round_trips_at_most(viewer, redis):
    counted(redis, "hits", 7)
    viewer.get(f"{ROOT}chart/?counter=hits")

    with trips() as default:
        viewer.get(f"{ROOT}chart/?counter=hits")
    with trips() as other:
        viewer.get(f"{ROOT}chart/?counter=hits&counter=misses&span=3600")

    assert (len(default), len(other)) == (1, 2)


def test_numbers_of_other_languages_do_not_break_the_drawing(viewer, redis):
    counted(redis, "hits", *range(1_000, 1_040))

    with override_settings(LANGUAGE_CODE="de", USE_THOUSAND_SEPARATOR=True):
        html = viewer.get(f"{ROOT}chart/?counter=hits").text

    [figure] = re.findall("<figure.*</figure>", html, re.DOTALL)
    for numbers in re.findall(r' (?:d|x|y|viewBox|data-since|data-slices)="([^"]*)"', figure):
        assert re.fullmatch(r"[MHVZ0-9 .%]+", numbers)
    assert "1.039" in html


@override_settings(USE_TZ=False)
def test_a_project_without_time_zones_has_charts_too(viewer, redis):
    minute = counted(redis, "hits", 7)

    assert chart_of(viewer, counter="hits")[minute - 60] == ["7"]
    assert viewer.get(f"{ROOT}chart/?counter=hits&from=2026-01-01T12:00").status_code == 400


@pytest.mark.parametrize("page_of", ["chart/", "csv/"])
def test_a_family_that_is_named_as_a_counter_is_its_sum(viewer, redis, page_of):
    minute = counted(redis, "shops:a", 1, now=2)
    counted(redis, "shops:b", 0, now=3, minute=minute)

    response = viewer.get(ROOT + page_of, {"counter": "shops:*", "span": 600, "precision": 60})

    assert response.status_code == 200
    if page_of == "csv/":
        assert [row[1] for row in lines_of(response)[-2:]] == ["1", "5"]
        assert lines_of(response)[0] == ["from", "shops:*"]
    else:
        assert chart_of(viewer, counter="shops:*", span=600)[minute] == ["5"]
        assert "Family shops" in words(response)


def test_events_of_a_service_are_never_added_to_each_other(viewer, redis):
    minute = counted(redis, "tasks:enqueued", 0, now=7)
    counted(redis, "tasks:failed", 0, now=2, minute=minute)

    assert chart_of(viewer, counter="tasks:*", span=600)[minute] == ["7", "2"]


def test_counts_and_times_are_charts_of_their_own_with_their_units(viewer, redis):
    counted(redis, "pay", 0, now=7)
    counted(redis, "pay-us", 0, now=7_000_000)
    counted(redis, "upload-bytes", 0, now=2_000)

    html = viewer.get(f"{ROOT}chart/?counter=pay&counter=pay-us&counter=upload-bytes").text
    heads = lines_of(viewer.get(f"{ROOT}csv/?counter=pay&counter=pay-us&counter=upload-bytes"))[0]

    axes = re.findall(r'<p class="chart-axis">(.*?)</p>', html)
    assert axes == ["Count per 1 min", "Time per 1 min", "Bytes per 1 min"]
    assert "2,000 B" in html
    assert heads == ["from", "pay", "pay-us (us)", "upload-bytes (bytes)"]


def test_marks_are_lines_in_charts_of_their_time(viewer, redis):
    counted(redis, "hits", 7)
    Marks().add("version 1.2")
    Marks().add("of yesterday", datetime.now(UTC) - timedelta(days=1))

    html = viewer.get(f"{ROOT}chart/?counter=hits").text

    assert html.count('<line class="chart-mark"') == 1
    assert "Mark version 1.2 at" in html
    assert "of yesterday" not in html


def test_a_rate_claims_no_digits_and_a_time_has_its_unit(viewer, redis):
    counted(redis, "signups", 0, now=1)
    counted(redis, "pay-us:card", 0, now=5_000_000)

    listed, chart = page(viewer), page(viewer, "chart/", counter="pay-us:card")

    assert re.search(r"signups 1 1 in 1 h 5\d min", listed) or "signups 1 1 in 2 h" in listed
    assert "pay-us:card 5 s 4" in listed
    assert "5,000,000" not in listed + chart
    assert "pay-us:card 5 s in all" in chart
