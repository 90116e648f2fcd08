"""Who sees what on the overview, what it costs, and what it says if something cannot be read."""

from __future__ import annotations

from collections import Counter as Commands

from django.contrib import admin

from components import models
from components.kit.keyspace import bucket
from components.overview.parts import SERVICES
from components.services.chat import Chat
from components.services.counters import Counter
from components.services.logs import note_job
from tests.control_room.pages import round_trips
from tests.locks.admin import holdings
from tests.overview.reading import ROOT, html_of, lines, tiles
from tests.queues.admin import scene
from tests.support.monitoring import sent_to
from tests.support.rows import cache


def test_people_see_the_cards_and_lines_of_services_that_they_may_view(redis, staff):
    scene.dead("mail")

    outsider = staff("view_overview")
    assert tiles(outsider) == {}
    assert lines(outsider) == []
    assert list(tiles(staff("view_overview", "view_queue"))) == ["Queues"]


def test_a_service_that_is_not_on_the_admin_site_has_no_card(redis, staff, monkeypatch):
    monkeypatch.delitem(admin.site._registry, models.Queue)

    assert tiles(staff("view_overview", "view_queue")) == {}


def test_it_is_one_round_trip_however_much_there_is(redis, staff, redis_server):
    client = staff("view_overview", *(f"view_{model.__name__.lower()}" for model in SERVICES))

    def cost() -> tuple[int, Commands[str], int]:
        size = len(html_of(client))  # opens connections, and learns the names of log jobs
        with sent_to(redis_server) as commands:
            html_of(client)
        return round_trips(client, ROOT), Commands(commands), size

    scene.dead("mail")
    note_job("default")
    trips, few, small = cost()
    for number in range(300):
        scene.ready(f"queue-{number}")
    cache().schedule_many(dict.fromkeys(range(2000), 60))
    for number in range(100):
        Chat.create("joe", id=f"chat-{number}")
        holdings.held(f"lock-{number}")
    trips_of_many, many, large = cost()

    assert trips == trips_of_many == 1
    assert many == few
    assert {"KEYS", "SCAN", "SSCAN", "HSCAN", "ZSCAN"}.isdisjoint(many)
    assert large < small + 6_000


def test_sparklines_are_for_those_who_may_view_counters(redis, staff, settings, redis_server):
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    Counter("tasks:successful").update(3)
    both, one = staff("view_overview", "view_queue", "view_counter"), staff("view_overview", "view_queue")

    assert "3 tasks succeeded in the last 2 h" in tiles(both)["Queues"]
    assert 'class="sparkline"' in html_of(both)
    assert round_trips(both, ROOT) == 1
    assert "sparkline" not in html_of(one)

    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": False}
    assert "sparkline" not in html_of(both)
    assert "succeeded" not in tiles(both)["Queues"]


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(redis, staff):
    redis.set(f"components:rows:{{{bucket('a')}}}:schedule", "something else")
    client = staff("view_overview", "view_queue", "view_cachedrow")

    assert "Not known These figures could not be read." in tiles(client)["Cached rows"]
    assert "0 tasks wait" in tiles(client)["Queues"]
