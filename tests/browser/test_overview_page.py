"""The overview and the admin's index in a real browser: looks, keyboard, refresh, and no scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from components.overview import patience
from components.services.counters import Counter
from tests.browser.axe import assert_accessible
from tests.browser.looks import assert_structure
from tests.queues.admin import scene

ROOT = "/admin/components/overview/"
WIDTHS = (390, 768, 1440)


@pytest.fixture(autouse=True)
def _trouble(redis, settings, monkeypatch):
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    monkeypatch.setattr(patience, "_PATIENCE", 20.0)  # for a busy machine
    patience.forget()
    scene.dead("mail")
    scene.ready("mail", count=2)
    Counter("tasks:successful").update(7)
    yield
    patience.forget()


@pytest.mark.slow
def test_pages_shut_nobody_out_and_fit_each_width(window, admin):
    opened = window(admin)
    for path in (ROOT, "/admin/"):
        page = opened.open(path)
        assert_accessible(page)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert_structure(opened.open(ROOT))
    assert opened.complaints == []


def test_a_line_leads_to_what_mends_it_with_the_keyboard_alone(window, admin):
    page = window(admin).open(ROOT)
    line = page.get_by_role("listitem").filter(has_text="1 task of the queue mail has failed for good.")

    line.get_by_role("link", name="Send them again").press("Enter")
    page.get_by_role("button", name="Send again").press("Enter")

    expect(page.locator(".messagelist")).to_contain_text("Sent 1 task of the queue mail again.")


def test_lines_go_by_themselves_when_they_are_mended(window, admin):
    page = window(admin).open(ROOT)
    line = page.get_by_text("2 tasks wait in the queue mail")
    expect(line.first).to_be_visible()

    scene.worker("mail")
    page.get_by_label("Refresh").select_option("every 2 s")

    expect(line).to_have_count(0)


def test_landmarks_and_states_are_read_aloud(window, admin):
    page = window(admin).open(ROOT)

    for name in ("Needs attention", "Services", "Redis"):
        expect(page.get_by_role("region", name=name)).to_be_visible()
    queues = (
        page.get_by_role("region", name="Services").get_by_role("listitem").filter(has_text="2 tasks wait")
    )
    expect(queues).to_contain_text("Problem")
    expect(queues).to_contain_text("7 tasks succeeded in the last 2 h")


def test_it_works_without_scripts(window, admin):
    page = window(admin, java_script_enabled=False).open("/admin/")

    page.get_by_role("link", name=re.compile("Overview.*1 problem.*warning")).click()
    page.get_by_role("region", name="Needs attention").get_by_role("link", name="Waiting tasks").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Queue mail")
