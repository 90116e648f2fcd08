"""The list of queues: order, pages, totals, and what "successful" means."""

from __future__ import annotations

import re
from html import unescape

import pytest

from components.services.queues import NewTask, TaskQueue
from tests.control_room.pages import rows_of, text_of
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"

pytestmark = pytest.mark.usefixtures("redis")


def names(client, **query):
    return [row.split()[0] for row in rows_of(client, ROOT, **query)]


def link_of(client, name, **query):
    """Where the head *name* leads."""
    html = client.get(ROOT, query).text
    [found] = re.findall(rf'<th scope="col"[^>]*><a href="([^"]+)">{name}', html)
    return unescape(found)


@pytest.fixture
def queues():
    scene.ready("bulk", count=3)
    scene.ready("api", count=1)
    scene.delayed("mail", count=2)
    scene.dead("mail")
    scene.successful("api")


def test_queues_are_sorted_by_any_column_both_ways(viewer, queues):
    assert names(viewer) == ["api", "bulk", "mail"]
    assert names(viewer, sort="-name") == ["mail", "bulk", "api"]
    assert names(viewer, sort="-ready") == ["bulk", "api", "mail"]
    assert names(viewer, sort="ready") == ["mail", "api", "bulk"]
    assert names(viewer, sort="-dead")[0] == "mail"
    assert names(viewer, sort="due")[0] == "mail"
    assert names(viewer, sort="-successful")[0] == "api"
    assert names(viewer, sort="-oldest")[-1] == "mail"
    assert names(viewer, sort="-running") == ["api", "bulk", "mail"]
    assert names(viewer, sort="odd") == ["api", "bulk", "mail"]


def test_a_head_sorts_by_its_column_and_then_turns_the_order_round(viewer, queues):
    assert link_of(viewer, "Dead") == "?sort=-dead"
    assert link_of(viewer, "Dead", sort="-dead", q="a") == "?q=a&sort=dead"
    assert link_of(viewer, "Queue") == "?sort=-name"
    assert "(largest first)" in text_of(viewer, ROOT, sort="-dead")


def test_many_queues_come_in_pages_and_all_are_counted(viewer):
    TaskQueue().push_many(
        [NewTask(name="market.tasks.send", queue=f"queue-{number:03}") for number in range(120)]
    )

    first = text_of(viewer, ROOT, sort="-name")

    assert len(names(viewer)) == 50
    assert names(viewer, offset=100, sort="-name")[-1] == "queue-000"
    assert "Queues 120 Ready 120 " in first
    assert "1\N{EN DASH}50 of 120 Next" in first
    assert 'href="?sort=-name&amp;offset=50&amp;alias=default"' in viewer.get(ROOT, {"sort": "-name"}).text
    assert len(viewer.get(ROOT).content) < 200_000


def test_queues_are_found_by_a_part_of_their_name(viewer, queues):
    assert names(viewer, q="AI") == ["mail"]
    assert "No queue has a name that contains “none”." in text_of(viewer, ROOT, q="none")
    assert "Queues 3 " in text_of(viewer, ROOT, q="none")


def test_each_alias_has_pages_of_its_own(viewer, settings):
    backend = {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}
    settings.TASKS = {"default": backend, "bulk": backend}
    for alias in settings.TASKS:
        TaskQueue(alias).push_many(
            [NewTask(name="a.b", queue=f"{alias}-{number:02}") for number in range(60)]
        )

    html = viewer.get(ROOT, {"alias": "bulk", "offset": "50"}).text

    assert "bulk-59" in html
    assert "default-59" not in html
    assert "default-00" in html


def test_a_notice_names_a_few_queues_and_counts_the_others(viewer):
    TaskQueue().push_many([NewTask(name="a.b", queue=f"queue-{number:02}") for number in range(13)])

    assert "queue-09, and 3 more." in text_of(viewer, ROOT)
