"""The admin's index with the control room first, and without."""

from __future__ import annotations

import re
import time
from html import unescape

import pytest
from django.contrib import admin
from django.test import Client
from django.utils import translation
from django.utils.html import strip_tags

from components.control_room.site import ControlRoomSite
from components.embedded import EmbeddedServer
from components.overview import patience
from components.services.queues import TaskQueue
from components.testing import redis_at
from tests.control_room.pages import trips
from tests.queues.admin import scene


@pytest.fixture(autouse=True)
def _new_process(monkeypatch):
    """The page waits for as long as it takes on a busy machine."""
    monkeypatch.setattr(patience, "_PATIENCE", 20.0)
    monkeypatch.setattr(patience, "_asks_again_at", 0.0)


def rows(client: Client, path: str = "/admin/") -> list[str]:
    """The models of the control room as the index lists them, without the links beside them."""
    group = re.search(r'<div class="app-components.*?</table>', client.get(path).text, re.DOTALL)
    assert group
    heads = re.findall(r'<th scope="row".*?</th>', group[0], re.DOTALL)
    return [" ".join(unescape(strip_tags(head)).split()) for head in heads]


def test_the_demo_has_the_site_whose_index_begins_with_the_control_room(redis, staff):
    assert isinstance(admin.site, ControlRoomSite)
    client = staff("view_overview", "view_lock", "view_addressbook", "view_user")

    page = client.get("/admin/").text

    assert "Control room</a>" in page
    assert page.index('class="app-components') < page.index('class="app-auth')
    assert [row.partition(":")[0] for row in rows(client)] == ["Overview", "Address books", "Locks"]


def test_badges_say_what_needs_attention(redis, staff):
    with translation.override("de"):
        assert patience.briefly(translation.get_language) == "de"
    scene.dead("mail")
    scene.ready("mail", count=2)

    assert rows(staff("view_overview", "view_queue")) == [
        "Overview: 1 problem, 2 warnings",
        "Queues: 1 queue without a worker, 1 dead task",
    ]
    assert rows(staff("view_queue")) == ["Queues: 1 queue without a worker, 1 dead task"]
    assert rows(staff("view_overview", "view_lock"))[1] == "Locks"

    TaskQueue().delete("mail", "dead", TaskQueue().ids("mail", "dead", limit=9))
    scene.worker("mail")
    assert rows(client := staff("view_queue", "view_lock"))[1] == "Queues"
    with redis_at("unix:///nowhere"):
        assert rows(client) == ["Locks", "Queues"]


@pytest.mark.slow
def test_a_server_that_hangs_holds_up_nobody_for_long(staff, tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "_PATIENCE", 0.5)
    client = staff("view_overview", "view_queue")
    with EmbeddedServer(tmp_path / "redis") as server, redis_at(server.url, SOCKET_TIMEOUT=20.0) as redis:
        client.get("/admin/")
        redis.client_pause(5_000)
        began = time.monotonic()
        assert rows(client) == ["Overview", "Queues"]
        once = time.monotonic() - began
        with trips() as made:
            assert rows(client) == ["Overview", "Queues"]
        server.kill()

    assert once < 5
    assert made == []


def test_the_index_is_one_round_trip_and_none_for_those_who_may_view_nothing(redis, staff):
    for permissions, expected in ((("view_overview", "view_queue", "view_lock"), 1), (("view_user",), 0)):
        client = staff(*permissions)
        client.get("/admin/")
        with trips() as made:
            assert client.get("/admin/").status_code == 200
        assert len(made) == expected


def test_the_overview_is_the_index_of_the_app_and_on_another_site_its_first(redis, staff):
    assert staff("view_overview").get("/admin/components/").url == "/admin/components/overview/"
    assert staff("view_lock").get("/admin/components/").status_code == 200
    assert staff("view_user").get("/admin/components/").status_code == 404
    client = staff("view_overview", "view_lock", "view_addressbook")
    assert rows(client, "/operations/components/") == ["Overview", "Address books", "Locks"]
