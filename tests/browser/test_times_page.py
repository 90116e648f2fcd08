"""What a newcomer finds on the pages of times, starting from the overview."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from components.services.counters import Marks, count, flush, measure
from tests.browser.axe import assert_accessible
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

OVERVIEW = "/admin/components/overview/"


@pytest.fixture
def opened(window, redis, transactional_db):
    for number in range(60):
        measure("runs-us:shop.send", 18_000 + 500 * number)
        measure("runs-waited-us:shop.send", 900 + 40 * number)
        measure("requests-us:shop:list", 3_000 + 90 * number)
    for took in (900_000, 1_200_000):
        measure("runs-us:shop.report", took)
    measure("locks-held-us:item:*", 2_500)
    count("runs-dead:shop.report")
    flush()
    Marks().add("version 1.2")
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return window(client)


def test_the_slowest_task_of_the_last_hour_and_its_p95_are_two_clicks_away(opened):
    page = opened.open(OVERVIEW)
    page.get_by_role("link", name="Tasks by time").click()

    expect(
        page.get_by_text("The slowest task is shop.report: 95% of its runs took 1.2 s or less.")
    ).to_be_visible()
    page.get_by_role("link", name="shop.report").click()
    expect(page.get_by_role("heading", name="shop.report")).to_be_visible()
    expect(page.locator("svg[role=img]").first).to_be_visible()
    expect(page.locator(".chart-legend").get_by_text("version 1.2").first).to_be_visible()
    assert_accessible(page)
    assert opened.complaints == []


def test_the_requests_a_minute_of_a_view_are_two_clicks_away(opened):
    page = opened.open(OVERVIEW)
    page.get_by_role("link", name="Views by time").click()

    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="shop:list"))
    expect(row.get_by_role("cell").nth(1)).to_have_text("1")
    assert_accessible(page)


def test_the_pointer_shows_percentiles_with_their_units(opened):
    page = opened.open("/admin/components/counter/times/one/?of=tasks&name=shop.send")
    surface, tip = page.locator("[data-chart-surface]").first, page.locator(".chart-tip")
    minute = surface.bounding_box()["width"] / 60

    def points_at(minutes: int) -> bool:
        surface.hover(position={"x": (60 - minutes) * minute - 2, "y": 50})
        return bool(re.search(r"\d ms p50.*\d ms p95.*\d ms p99", tip.text_content() or "", re.DOTALL))

    # The minute that was measured may be over.
    assert eventually(lambda: points_at(0) or points_at(1))
