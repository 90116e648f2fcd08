"""The overview and the admin's index in a real browser: refresh, landmarks, and no scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from components.overview import patience
from components.services.counters import Counter
from tests.queues.admin import scene

ROOT = "/admin/components/overview/"


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
