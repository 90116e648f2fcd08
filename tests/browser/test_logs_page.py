"""The Logs page in a real browser: policy, colours, small screens, keyboard, no scripts, refresh."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from components.services.logs import dead_chunks
from tests.browser.axe import assert_accessible
from tests.browser.clock import stop_clock
from tests.browser.test_counters_page import DRAWN
from tests.browser.test_queues_page import press_tab_until, refreshed
from tests.browser.themes import measured
from tests.logs.admin import traffic

ROOT = "/admin/components/logjob/"
PAGES = {
    "jobs": ROOT,
    "job": f"{ROOT}job/?job=default",
    "dead": f"{ROOT}dead/?job=default&aggregation=places",
    "leave": f"{ROOT}leave/?job=default&aggregation=places",
    "traffic": f"{ROOT}traffic/?job=default",
    "hours": f"{ROOT}hours/?job=default&hour=13&status=4xx",
    "minutes": f"{ROOT}live/?job=default",
    "cities of a year": f"{ROOT}traffic/?job=default&level=city&days=366",
    "refused": f"{ROOT}traffic/?job=default&days=x",
}
#: Those that have all that the others have.
KINDS = {PAGES[name] for name in ("job", "dead", "traffic", "hours", "minutes")}
SMALL = 360
#: Of the colours of bars against what is behind them, words as for other charts.
BARS = """() => {
    const words = (%s)();
    const probe = document.body.appendChild(document.createElement("i"));
    probe.className = "chart-line";
    for (let number = 0; number < 8; number++) {
        probe.style.stroke = getComputedStyle(document.querySelector(`.bars-${number}`)).color;
        words[`layer ${number}`] = Object.values((%s)())[0];
    }
    probe.remove();
    return words;
}"""


@pytest.fixture
def admin(redis, transactional_db):
    """Who looks at a job with all that there can be."""
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    traffic.busy(redis)
    traffic.count(40)
    traffic.count_hours()
    return client


@pytest.mark.slow
def test_pages_keep_the_policy_shut_nobody_out_and_fit(window, admin):
    opened = window(admin, viewport={"width": SMALL, "height": 740})
    wide = {}

    for path in PAGES.values():
        page = opened.open(path)
        page.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
        if path in KINDS:
            assert_accessible(page, within="#content")
        wide[path] = page.evaluate("document.documentElement.scrollWidth")
    page = opened.open(PAGES["traffic"])
    drawn = measured(page, BARS % (DRAWN, DRAWN))

    assert opened.complaints == []
    assert {path: found for path, found in wide.items() if found > SMALL} == {}
    assert len(drawn) > 30
    assert {what: ratio for what, ratio in drawn.items() if ratio < (3 if "layer" in what[1] else 4.5)} == {}


@pytest.mark.slow
def test_a_place_a_period_and_dead_chunks_are_reached_by_keyboard_and_without_scripts(window, admin):
    page = window(admin, java_script_enabled=False).open(PAGES["traffic"])

    for name, title in (("US", "Traffic from US by region"), ("CA", "Traffic from CA, US by city")):
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.locator("#content h1")).to_have_text(title)
    page.locator("#from").fill("2011-10-10")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator(".bars-told rect")).to_have_count(1)
    expect(page.get_by_role("row", name="Mountain View 16,000")).to_be_visible()

    page.goto(page.url.partition(ROOT)[0] + PAGES["dead"])
    page.get_by_label("All 2 chunks").check()
    with page.expect_navigation():
        page.get_by_role("button", name="Discard…").press("Enter")
    press_tab_until(page, "Discard")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator(".messagelist")).to_contain_text("Discarded 2 dead chunks of places.")
    assert dead_chunks("default", "places") == []


def test_a_refresh_renews_bars_and_keeps_the_table_open(window, admin):
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(PAGES["traffic"])
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
