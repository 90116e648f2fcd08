"""The Logs page in a real browser: keyboard, no scripts, refresh."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from tests.browser.clock import stop_clock
from tests.browser.test_live_page import refreshed
from tests.logs.admin import traffic

ROOT = "/admin/components/logjob/"
TRAFFIC = f"{ROOT}traffic/?job=default"


@pytest.fixture
def admin(redis, transactional_db):
    """Who looks at a job with all that there can be."""
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    traffic.count(40)
    return client


def test_a_refresh_renews_bars_and_keeps_the_table_open(window, admin):
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(TRAFFIC)
    page.get_by_text("The same as a table").click()
    bar = page.locator(".bars-layer").first.locator("rect").last
    before = bar.bounding_box()

    traffic.count(1)
    traffic.count(1)
    refreshed(page)

    expect(page.get_by_role("row", name="2011-10-10 50,064")).to_be_visible()
    after = bar.bounding_box()
    assert before
    assert after
    assert after != before
    assert (
        page.locator(".bars-told title").last.evaluate("node => node.textContent")
        == "2011-10-10: 50,064 lines"
    )
    assert opened.complaints == []
