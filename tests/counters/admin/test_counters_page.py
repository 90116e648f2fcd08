"""What the Counters page shows: the list, charts with their tables, families, files; and where time is spent."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template
from django.test.utils import override_settings
from django.utils.html import strip_tags

from components.services.counters import Counter, CounterReader, Marks, count, flush, measure
from components.services.counters.buffer import DROPPED, DROPPED_TIME, OUTAGES
from components.services.locks import lock
from components.services.locks.named import key_of
from tests.control_room.pages import DASH, FRAMELESS, round_trips, rows_of, text_of, texts_below
from tests.fixtures.admin import allowed
from tests.queues.admin import scene
from tests.support.counters import counted, seconds, this_minute

ROOT = "/admin/components/counter/"

page = texts_below(ROOT)

pytestmark = pytest.mark.usefixtures("redis")
viewer = allowed("view_counter")
reader_of_tasks = allowed("view_queue", "view_counter")


def chart_of(client, name="chart/", /, **query):
    """The counts in the table below a chart, by the second at which their slice begins."""
    html = client.get(ROOT + name, query, headers=FRAMELESS).text
    rows = re.findall(r'<tr data-key="(\d+)"[^>]*>(.*?)</tr>', html, re.DOTALL)
    return {int(second): re.findall(r'<td class="number"[^>]*>(.*?)</td>', row) for second, row in rows}


def columns(html):
    return re.findall(r'<th scope="col" class="number wrap">(.*?)</th>', html)


def lines_of(response):
    assert response.status_code == 200
    return list(csv.reader(io.StringIO(response.text)))


def test_a_counter_is_listed_with_what_it_counted_in_two_hours(viewer, redis):
    counted(redis, "hits", *[30] * 60)

    [row] = rows_of(viewer, ROOT)

    assert re.fullmatch(r"hits 1,800 15(\.\d+)? a minute in this time", row)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("sales:wood", "chart/?counter=sales%3Awood"),
        ("  sales:wood ", "chart/?counter=sales%3Awood"),
        *[(text, "family/?family=sales") for text in ("sales", "sales:", "sales:*")],
    ],
)
def test_a_counter_or_a_family_is_found_by_its_whole_name_and_others_by_a_part(viewer, text, address):
    for name in ("sales:wood", "sales:iron", "Wooden"):
        Counter(name).update()

    assert viewer.get(ROOT, {"q": text}).url == f"{ROOT}{address}"
    assert {row.split()[0] for row in rows_of(viewer, ROOT, q="wood")} == {"sales:wood", "Wooden"}


def test_counts_dropped_by_processes_are_reported(viewer):
    assert "dropped" not in page(viewer)
    Counter(DROPPED).update(1_234)
    Counter(DROPPED_TIME).update(5_000_000)
    Counter(OUTAGES).update(2)

    text = page(viewer)

    assert "dropped 1,234 of" in text
    assert "dropped 5 s of" in text
    assert "came back, 2 times" in text


def test_a_chart_and_its_table_say_what_the_counter_says(viewer, redis):
    minute = counted(redis, "hits", 7, 0, 1_200, now=3)

    text = page(viewer, "chart/", counter="hits")
    rows = chart_of(viewer, counter="hits")

    assert "hits: 1,210 in all, at most 1,200 at" in text
    assert [rows[minute - ago * 60] for ago in range(5)] == [["3"], ["7"], ["0"], ["1,200"], [DASH]]
    assert len(rows) == 120
    assert list(rows) == sorted(rows, reverse=True)
    assert "live.js" in viewer.get(f"{ROOT}chart/?counter=hits").text


def test_counters_and_families_are_compared_in_one_chart(viewer, redis):
    minute = counted(redis, "hits", 7, now=3)
    for name, times in (("sales:wood", 2), ("sales:iron", 5), ("tasks:enqueued", 4), ("tasks:failed", 1)):
        counted(redis, name, times, minute=minute)
    query = {"counter": ["hits", "tasks:*", "hits"], "family": "sales"}

    html = viewer.get(f"{ROOT}chart/", query).text

    assert columns(html) == ["hits", "tasks:enqueued", "tasks:failed", "sales:*"]
    assert chart_of(viewer, **query)[minute - 60] == ["7", "4", "1", "7"]
    assert len(re.findall(r'<path class="chart-line line-\d" d="M0\.5', html)) == 4


def test_an_instant_without_a_zone_is_on_the_clock_of_the_reader(viewer, redis):
    with override_settings(TIME_ZONE="Asia/Kathmandu"):
        local = datetime.fromtimestamp(seconds(redis) - 1_800, UTC) + timedelta(hours=5, minutes=45)
        html = viewer.get(f"{ROOT}chart/", {"counter": "hits", "from": f"{local:%Y-%m-%dT%H:%M}"}).text

        assert f'value="{local:%Y-%m-%dT%H:%M}:00"' in html
        [first] = re.findall(r'data-since="(\d+)"', html)

    assert 0 <= seconds(redis) - 1_800 - int(first) < 70


@pytest.mark.parametrize(
    ("name", "query"),
    [
        *[("chart/", {"span": span}) for span in ("soon", "0", "-5", "9" * 40, "99999999")],
        *[("chart/", {"precision": precision}) for precision in ("7", "nan", "1.5")],
        *[("chart/", {"from": at}) for at in ("yesterday", "2026-02-30T12:00", "0001-01-01T00:00+14:00")],
        *[("chart/", {"from": at}) for at in ("1900-01-01T00:00Z", "9999-12-31T23:59")],
        ("chart/", {"until": "2026-01-01T12:00"}),
        ("chart/", {"from": "2026-01-01T12:00", "until": "2026-01-01T12:00"}),
        ("chart/", {"counter": "x" * 501}),
        ("chart/", {"counter": [f"hits {number}" for number in range(9)]}),
        ("chart/", {"family": "x" * 501}),
        ("csv/", {"span": "soon"}),
        ("csv/", {"counter": []}),
        ("csv/", {"counter": [f"hits {number}" for number in range(51)]}),
        ("csv/", {"family": [f"sales-{number}" for number in range(9)]}),
        *[("family/", {"family": "sales", "top": top}) for top in ("0", "9", "x", "0000000019", "²")],
        *[("family/", {"family": family}) for family in ("", "x" * 501)],
    ],
)
def test_an_invalid_question_is_refused(viewer, name, query):
    response = viewer.get(ROOT + name, {"counter": "hits", **query})

    assert response.status_code == 400
    assert "live.js" not in response.text


def test_a_family_shows_the_first_in_a_chart_and_all_in_order(viewer, redis):
    minute = this_minute(redis)
    for number in range(1, 8):
        counted(redis, f"sales:{number}", number, minute=minute)

    ranking = rows_of(viewer, ROOT, "family/", table=1, family="sales", top=3)

    assert chart_of(viewer, "family/", family="sales", top=3)[minute - 60] == ["7", "6", "5"]
    assert [row.split()[0] for row in ranking] == [f"sales:{number}" for number in range(7, 0, -1)]
    assert [row.split()[1] for row in ranking] == [str(number) for number in range(7, 0, -1)]


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
    *["\uff1d1+2", "\uff0b1", "\uff0d1", "\uff20A", "\ufe661", "\u22121"],
]


def test_a_spreadsheet_calculates_no_name(viewer):
    plain = ["a=1", "1-1", "#1", "'=1"]

    head, *_lines = lines_of(viewer.get(f"{ROOT}csv/", {"counter": [*FORMULAS, *plain]}))

    assert head == ["from", *(f"'{name}" for name in FORMULAS), *plain]


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


def placed(tag, **context):
    return Template("{% load charts %}{% " + tag + " %}").render(Context(context))


def words_of(html):
    return " ".join(strip_tags(html).split())


def test_a_chart_of_named_counters_can_be_placed(redis):
    counted(redis, "sales", 7)
    counted(redis, "sales-errors", 1)

    counted(redis, "<b>:a", 1)
    counted(redis, "<b>:b", 2)

    html = placed('counter_chart "sales" "sales-errors" span=3600 title=title', title="<script>")
    family = placed("counter_chart '<b>:*' top=1")

    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert columns(html) == ["sales", "sales-errors"]
    assert html.count("<tr data-key=") == 60
    assert columns(family) == ["&lt;b&gt;:b"]


def test_a_sentence_stands_where_a_chart_cannot(redis):
    for tag, said in {
        'counter_chart "sales" precision=7': "No chart of sales: The precision is 7",
        'counter_chart "sales" span=0': "it must be at least 1 s",
        'counter_chart ""': "A counter cannot be called",
        'counter_chart "sales:*" top=0': "The limit is 0",
        'counter_chart "sales:*" title="Sales"': "No chart of Sales: nothing was counted in this time.",
        "counter_chart": "nothing was counted in this time.",
    }.items():
        html = placed(tag)
        assert said in words_of(html)
        assert "<svg" not in html


def test_scripts_and_styles_of_charts_carry_the_nonce_of_the_page():
    plain, with_nonce = placed("chart_media"), placed("chart_media", csp_nonce="abc")

    assert "components/room.css" in plain
    assert '<script type="module" src="/static/components/charts/charts.js">' in plain
    assert with_nonce.count('nonce="abc"') == 2
    assert "nonce" not in plain


def test_the_queues_page_has_a_chart_of_tasks_where_they_are_counted_for_who_may_see(redis, staff, settings):
    counted(redis, "tasks:successful", 7)
    chart = ["tasks:enqueued", "tasks:successful", "tasks:failed", "tasks:retried"]
    viewer, other = staff("view_queue", "view_counter"), staff("view_queue")
    for client, counts, found in ((viewer, True, chart), (viewer, False, []), (other, True, [])):
        settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": counts}
        html = client.get("/admin/components/queue/").text
        assert ("charts.js" in html) == ("Tasks in slices of 1 min" in words_of(html)) == bool(found)
        assert columns(html) == found


TIMES, ONE, CSV = (f"/admin/components/counter/times/{each}" for each in ("", "one/", "csv/"))


def names(response):
    return re.findall(r'<tr data-key="([^"]+)"[^>]*>', response.content.decode())


@pytest.fixture
def tasks(redis):
    """One runs often and fast, one seldom and slow, and fails."""
    for _ in range(200):
        measure("runs-us:shop.send", 20_000)
        measure("runs-waited-us:shop.send", 1_000)
    for _ in range(2):
        measure("runs-us:shop.report", 1_200_000)
    count("runs-dead:shop.report")
    flush()


def test_tasks_are_ranked_by_any_column(viewer, tasks):
    for order in ("total", "count", "waited", "none of these"):
        assert names(viewer.get(TIMES, {"of": "tasks", "order": order})) == ["shop.send", "shop.report"]
    for order in ("failed", "mean", "p50", "p95", "p99", "longest"):
        assert names(viewer.get(TIMES, {"of": "tasks", "order": order})) == ["shop.report", "shop.send"]


def test_locks_are_ranked_by_the_time_for_which_they_were_held(viewer, redis):
    measure("locks-held-us:item:*", 9_000_000)
    measure("locks-waited-us:item:*", 50_000)
    measure("locks-held-us:report", 1_000)
    flush()

    response = viewer.get(TIMES, {"of": "locks"})

    assert names(response) == ["item:*", "report"]
    assert "The lock that is held longest is item:*" in words_of(response.text)


def test_one_of_them_has_charts_of_its_percentiles_its_failures_and_its_waits(viewer, tasks):
    Marks().add("version 1.2")

    response = viewer.get(ONE, {"of": "tasks", "name": "shop.send"})

    html = response.content.decode()
    titles = re.findall(r"<figcaption>(.*?) <span", html)
    assert titles == ["How long it took", "Runs", "How long it waited"]
    assert html.count('<line class="chart-mark"') == 3
    assert "Mark version 1.2 at" in words_of(response.text)
    percentiles = ["p50", "p95", "p99"]
    heads = re.findall(r'<th scope="col" class="number wrap">(.*?)</th>', html)
    assert heads == [*percentiles, "Runs", "Failed", *percentiles]


def test_what_nobody_measured_has_a_sentence_and_what_has_no_name_is_not_there(viewer, redis):
    assert "Nothing was measured in this time." in words_of(viewer.get(ONE, {"name": "none"}).text)
    for name in ("", "a" * 481):
        assert viewer.get(ONE, {"name": name}).status_code == 404


def test_the_ranking_can_be_downloaded_with_its_units(viewer, tasks):
    rows = [*csv.DictReader(viewer.get(CSV, {"of": "tasks"}).content.decode().splitlines())]

    assert [row["name"] for row in rows] == ["shop.send", "shop.report"]
    assert (rows[0]["count"], rows[0]["total (us)"], rows[1]["failed"]) == ("200", "4000000", "1")
    assert abs(int(rows[1]["p95 (us)"]) - 1_200_000) <= 1_200_000 * 0.044


@pytest.fixture
def counting(settings):
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}


def of_lock(client, name="item:42"):
    return text_of(client, "/admin/components/lock/", "lock/", key=key_of(name))


def test_a_lock_shows_how_often_and_how_long_it_was_held_and_refused(staff, redis, counting):
    with lock("item:42", timeout=30):
        assert not lock("item:42", timeout=30).acquire(blocking_timeout=0.01)
    flush()

    assert "The last two hours" not in of_lock(staff("view_lock"))
    html = of_lock(staff("view_lock", "view_counter"))

    for words in ("Given back", "Refused", "How long it was held", "How long callers waited in vain"):
        assert words in html
    assert "measured together, as item:*" in html


QUEUES = "/admin/components/queue/"


def of_task(client, task_id):
    return text_of(client, QUEUES, "task/", alias="default", id=task_id)


def ran(*milliseconds, name="market.tasks.send"):
    for each in milliseconds:
        measure(f"runs-us:{name}", each * 1_000)
    flush()


def test_the_page_shows_all_runs_of_the_task_and_this_one_among_them(staff, reader_of_tasks, redis, counting):
    ran(*[0] * 3, *[60_000_000] * 9)
    ran(1, name="market.tasks.other")

    task_id = scene.successful()
    assert "How long runs took" not in of_task(staff("view_queue"), task_id)
    text = of_task(reader_of_tasks, task_id)

    assert "Of 12 runs in the last 10 h, half took at most 16 h 40 min, and 95% at most 16 h 40 min." in text
    assert re.search(r"This run took \S+ ms, which is longer than 0% of them\.", text)
    assert "How long runs took" in text
    assert "p95" in text
    assert "p99" not in text


def test_the_times_take_one_round_trip_and_none_unless_services_count(reader_of_tasks, redis, settings):
    query = {"alias": "default", "id": scene.successful()}
    reader_of_tasks.get(f"{QUEUES}task/", query)
    before = round_trips(reader_of_tasks, f"{QUEUES}task/", query)
    assert "COUNT_SERVICES" in of_task(reader_of_tasks, query["id"])

    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    CounterReader().histograms(["loads the script"], 60)
    CounterReader().histogram_slices(["loads the script"], 60)
    assert round_trips(reader_of_tasks, f"{QUEUES}task/", query) == before + 1
