"""Where tasks, views and locks spend their time: the rankings, and the charts of one of them."""

from __future__ import annotations

import csv
import re

import pytest
from django.utils.html import strip_tags

from components.services.counters import CounterReader, Marks, count, flush, measure
from components.services.locks import lock
from components.services.locks.named import key_of
from tests.control_room.pages import round_trips, text_of
from tests.queues.admin import scene

TIMES, ONE, CSV = (f"/admin/components/counter/times/{each}" for each in ("", "one/", "csv/"))


def words_of(response):
    return " ".join(strip_tags(response.content.decode()).split())


def names(response):
    """The names in the ranking, in its order."""
    return re.findall(r'<tr data-key="([^"]+)"[^>]*>', response.content.decode())


@pytest.fixture
def viewer(staff):
    return staff("view_counter")


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
    assert "The lock that is held longest is item:*" in words_of(response)


def test_one_of_them_has_charts_of_its_percentiles_its_failures_and_its_waits(viewer, tasks):
    Marks().add("version 1.2")

    response = viewer.get(ONE, {"of": "tasks", "name": "shop.send"})

    html = response.content.decode()
    titles = re.findall(r"<figcaption>(.*?) <span", html)
    assert titles == ["How long it took", "Runs", "How long it waited"]
    assert html.count('<line class="chart-mark"') == 3
    assert "Mark version 1.2 at" in words_of(response)
    percentiles = ["p50", "p95", "p99"]
    heads = re.findall(r'<th scope="col" class="number wrap">(.*?)</th>', html)
    assert heads == [*percentiles, "Runs", "Failed", *percentiles]


def test_what_nobody_measured_has_a_sentence_and_what_has_no_name_is_not_there(viewer, redis):
    assert "Nothing was measured in this time." in words_of(viewer.get(ONE, {"name": "none"}))
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


ROOT = "/admin/components/queue/"


@pytest.fixture
def reader_of_tasks(staff):
    return staff("view_queue", "view_counter")


def of_task(client, task_id):
    return text_of(client, ROOT, "task/", alias="default", id=task_id)


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
    reader_of_tasks.get(f"{ROOT}task/", query)
    before = round_trips(reader_of_tasks, f"{ROOT}task/", query)
    assert "COUNT_SERVICES" in of_task(reader_of_tasks, query["id"])

    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    CounterReader().histograms(["loads the script"], 60)
    CounterReader().histogram_slices(["loads the script"], 60)
    assert round_trips(reader_of_tasks, f"{ROOT}task/", query) == before + 1
