"""Live refresh in a real browser: what is renewed, when, and that nothing jumps. The page is that of queues."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from components.embedded import EmbeddedServer
from components.services.queues import TaskQueue
from components.testing import redis_at
from tests.browser.axe import assert_accessible
from tests.browser.clock import stop_clock
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"
HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
PLACES = """nodes => nodes.map((node) => {
    const { x, y, width, height } = node.getBoundingClientRect();
    return [x, y, width, height];
})"""
#: What a reader has done to the page of a task.
STATE = """() => [scrollY, document.querySelector("pre").scrollTop, getSelection().toString().length > 200,
    ...Array.from(document.querySelectorAll("details"), (node) => node.open)]"""


def refreshed(page, seconds=5, says="Updated"):
    """Let *seconds* pass for the page, and wait until it *says* what came of it."""
    page.get_by_role("status").evaluate("node => { node.textContent = ''; }")
    page.clock.fast_forward(seconds * 1000)
    expect(page.get_by_role("status")).to_contain_text(says)


def ready_of(page, queue="mail"):
    return page.locator(f'tr[data-key="{queue}"] td').first


def fetches(page):
    """Return a list that grows with each refresh."""
    seen = []
    page.on("request", lambda request: seen.append(request) if request.headers.get("x-live") else None)
    return seen


@pytest.fixture
def opened(window, admin):
    """A window whose clock the test puts forward."""
    opened = window(admin, viewport={"width": 1_280, "height": 400})
    stop_clock(opened.page)
    return opened


def test_figures_are_renewed_and_what_the_reader_has_done_stays(opened, redis):
    scene.ready("mail")
    page = opened.open(ROOT)
    seen = fetches(page)
    link = page.get_by_role("link", name="Pause: mail")
    link.focus()
    scene.ready("mail", count=1_233)
    scene.ready("a queue that comes before")

    refreshed(page)
    refreshed(page)

    expect(ready_of(page)).to_have_text("1,234")
    expect(ready_of(page, "a queue that comes before")).to_have_text("1")
    expect(link).to_be_focused()
    assert [bool(each.headers.get("if-none-match")) for each in seen] == [False, True]

    page.context.clear_cookies()
    page.clock.fast_forward(5_000)
    expect(page.get_by_role("status")).to_contain_text("Refresh has stopped")  # of somebody who is logged out
    expect(ready_of(page)).to_have_text("1,234")
    assert opened.complaints == []


def test_scrolling_open_details_and_a_selection_stay(opened, redis):
    task_id = scene.dead("mail", failures=3, args=list(range(200)))
    opened.page.set_viewport_size({"width": 360, "height": 400})
    page = opened.open(f"{ROOT}task/?alias=default&id={task_id}")
    page.locator("details").first.locator("summary").click()
    page.locator("details").last.locator("summary").click()
    page.locator("pre").first.evaluate(
        "node => { node.scrollTop = 321; getSelection().selectAllChildren(node); }"
    )
    page.evaluate("scrollTo(0, 500)")
    before = page.evaluate(STATE)
    refreshed(page)

    assert before[1:] == [321, True, True, False, False]
    assert page.evaluate(STATE) == before
    assert opened.complaints == []


def test_rows_that_go_take_no_others_with_them_and_nothing_new_is_selected(opened, redis):
    gone, other, chosen = (scene.dead() for _ in range(3))
    page = opened.open(f"{ROOT}tasks/?alias=default&queue=mail&state=dead")
    kept = page.locator(f'tr[data-key="{chosen}"]').element_handle()
    page.locator(f'input[value="{chosen}"]').check()
    page.get_by_role("searchbox", name="Search").fill("half a wo")
    TaskQueue().delete("mail", "dead", [gone])
    new = scene.dead()

    refreshed(page)

    expect(page.locator(f'input[value="{new}"]')).not_to_be_checked()
    expect(page.locator(f'input[value="{other}"]')).not_to_be_checked()
    expect(page.locator(f'input[value="{gone}"]')).to_have_count(0)
    expect(page.locator(f'input[value="{chosen}"]')).to_be_checked()
    assert kept.evaluate("node => node.isConnected")
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("half a wo")


def test_page_scripts_and_numbers_are_in_the_language_of_the_browser(window, admin, redis):
    opened = window(admin, locale="de-DE")
    stop_clock(opened.page)
    page = opened.open(ROOT)
    scene.ready("mail", count=1234)

    refreshed(page, says="Aktualisiert um")

    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.get_by_role("heading", name="Warteschlangen")).to_be_visible()
    expect(ready_of(page)).to_have_text("1.234")
    page.get_by_label("Aktualisieren").select_option("0")
    expect(page.get_by_role("status")).to_have_text("Die Aktualisierung ist ausgeschaltet.")
    assert opened.complaints == []


def test_a_hidden_page_rests_and_a_reader_chooses_how_often_and_is_remembered(opened, redis):
    scene.ready("mail")
    page = opened.open(ROOT)
    seen = fetches(page)
    page.evaluate(HIDE, True)
    page.clock.fast_forward("10:00")
    assert seen == []
    page.evaluate(HIDE, False)
    expect(page.get_by_role("status")).to_contain_text("Updated")
    assert len(seen) == 1
    seen.clear()

    page.get_by_label("Refresh").select_option("every 15 s")
    page.reload()
    page.clock.run_for(14_000)
    assert seen == []
    page.clock.run_for(2_000)
    expect(page.get_by_role("status")).to_contain_text("Updated")
    assert len(seen) == 1

    page.get_by_label("Refresh").select_option("off")
    expect(page.get_by_role("status")).to_have_text("Refresh is off.")
    page.clock.fast_forward("10:00")
    page.reload()
    page.clock.fast_forward("10:00")
    expect(page.get_by_label("Refresh")).to_have_value("0")
    assert len(seen) == 1


def test_requests_never_overlap_and_another_interval_ends_one(opened, redis):
    page, held = opened.open(ROOT), []
    seen = fetches(page)
    page.route(f"**{ROOT}", lambda route: held.append(route))

    page.get_by_label("Refresh").select_option("every 2 s")
    with page.expect_request(f"**{ROOT}"):
        page.clock.run_for(2_000)
    page.clock.run_for(7_000)
    assert len(seen) == len(held) == 1

    with page.expect_event("requestfailed"):
        page.get_by_label("Refresh").select_option("off")
    expect(page.get_by_role("status")).to_have_text("Refresh is off.")


def test_figures_fade_while_redis_is_away_and_say_since_when(opened, tmp_path):
    server = EmbeddedServer(tmp_path / "redis")
    with redis_at(server.url):
        page = opened.open(ROOT)
        expect(page.get_by_role("alert")).to_contain_text("Redis does not answer")

        with server:
            scene.dead("mail")
            page.clock.fast_forward(5_000)
            expect(page.locator('tr[data-key="mail"]')).to_be_visible()  # the page was loaded anew
            expect(page.get_by_label("Refresh")).to_be_visible()  # and its script waits for the clock
            before = page.locator("#live :is(h2, tr, th, td)").evaluate_all(PLACES)
            colour = ready_of(page).evaluate("node => getComputedStyle(node).color")

            server.stop()
            page.clock.fast_forward(5_000)
            expect(page.get_by_role("status")).to_contain_text("Redis has not answered since")

            assert page.locator("#live :is(h2, tr, th, td)").evaluate_all(PLACES) == before
            assert ready_of(page).evaluate("node => getComputedStyle(node).color") != colour
            page.clock.resume()  # axe waits
            assert_accessible(page, within="#live")

            server.start()
            page.clock.fast_forward(10_000)
            expect(page.get_by_role("status")).to_contain_text("Updated")
            expect(page.locator("[data-live-old]")).to_have_count(0)
        assert opened.complaints == []


def test_after_some_failures_refresh_stops_and_when_seen_again_it_goes_on(opened, redis):
    page = opened.open(ROOT)
    seen = fetches(page)
    page.route(f"**{ROOT}", lambda route: route.abort())

    for _attempt in range(5):
        refreshed(page, seconds=60, says="The server does not answer. Trying again.")
    refreshed(page, seconds=60, says="Refresh has stopped: the server does not answer.")
    page.clock.fast_forward("10:00")
    assert len(seen) == 6

    page.unroute(f"**{ROOT}")
    scene.ready("mail")
    page.evaluate(HIDE, False)
    expect(ready_of(page)).to_have_text("1")
