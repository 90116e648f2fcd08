"""How long the runs of a task took, on the page of one task: all runs of the last hours, and this one among them."""

from __future__ import annotations

import re

import pytest

from components.services.counters import CounterReader, flush, measure
from tests.control_room.pages import round_trips, text_of
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"


@pytest.fixture
def counting(settings):
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}


@pytest.fixture
def viewer(staff):
    return staff("view_queue", "view_counter")


def of_task(client, task_id):
    return text_of(client, ROOT, "task/", alias="default", id=task_id)


def ran(*milliseconds, name="market.tasks.send"):
    for each in milliseconds:
        measure(f"runs-us:{name}", each * 1_000)
    flush()


def test_the_page_shows_all_runs_of_the_task_and_this_one_among_them(viewer, redis, counting):
    ran(*[0] * 3, *[60_000_000] * 9)
    ran(1, name="market.tasks.other")

    text = of_task(viewer, scene.successful())

    assert "Of 12 runs in the last 10 h, half took at most 16 h 40 min, and 95% at most 16 h 40 min." in text
    assert re.search(r"This run took \S+ ms, which is longer than 0% of them\.", text)
    assert "How long runs took" in text
    assert "p95" in text
    assert "p99" not in text


def test_a_task_that_has_not_run_is_not_compared(viewer, redis, counting):
    [waiting] = scene.ready()

    assert "No run of it was measured in the last 10 h." in of_task(viewer, waiting)
    ran(50)
    assert "The only run in the last 10 h took 50 ms." in of_task(viewer, waiting)
    assert "This run" not in of_task(viewer, waiting)


def test_the_times_take_one_round_trip_and_none_unless_services_count(viewer, redis, settings):
    query = {"alias": "default", "id": scene.successful()}
    viewer.get(f"{ROOT}task/", query)
    before = round_trips(viewer, f"{ROOT}task/", query)
    assert "COUNT_SERVICES" in of_task(viewer, query["id"])

    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    CounterReader().histograms(["loads the script"], 60)
    CounterReader().histogram_slices(["loads the script"], 60)
    assert round_trips(viewer, f"{ROOT}task/", query) == before + 1


def test_the_times_need_the_permission_to_view_counters(staff, redis, counting):
    assert "How long this task takes" not in of_task(staff("view_queue"), scene.successful())
