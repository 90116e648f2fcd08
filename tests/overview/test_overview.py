"""Who sees what on the overview, what it costs, and what it says if something cannot be read."""

from __future__ import annotations

from django.contrib import admin

from components import models
from tests.overview.reading import lines, tiles
from tests.queues.admin import scene


def test_people_see_the_cards_and_lines_of_services_that_they_may_view(redis, staff):
    scene.dead("mail")

    outsider = staff("view_overview")
    assert tiles(outsider) == {}
    assert lines(outsider) == []
    assert list(tiles(staff("view_overview", "view_queue"))) == ["Queues"]


def test_a_service_that_is_not_on_the_admin_site_has_no_card(redis, staff, monkeypatch):
    monkeypatch.delitem(admin.site._registry, models.Queue)

    assert tiles(staff("view_overview", "view_queue")) == {}
