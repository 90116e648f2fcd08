"""The Queues page in a real browser: policy, live refresh, keyboard, colours, small screens, no scripts."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from components.services.queues import Progress, TaskQueue
from tests.browser.clock import stop_clock
from tests.browser.looks import CONTRASTS, assert_good_looks
from tests.queues.admin import scene
from tests.queues.admin.periodic import HOURLY, NIGHTLY, declare_only

ROOT = "/admin/components/queue/"
MAIL = "?alias=default&queue=mail"
PAGES = {
    "overview": "",
    **{
        state: f"tasks/{MAIL}&state={state}"
        for state in ("ready", "delayed", "running", "dead", "successful")
    },
    "task": "task/?alias=default&id={dead}",
    "result": "task/?alias=default&id={successful}",
    "progress": "task/?alias=default&id={running}",
    "by error": f"failures/{MAIL}",
    "filtered": f"tasks/{MAIL}&state=dead&task=send&error=OSError",
    "all queues, by error": "failures/?alias=default",
    "sorted": "?sort=-dead&q=mai",
    "search": f"tasks/{MAIL}&state=dead&q=route",
    "nothing found": f"tasks/{MAIL}&state=dead&q=nowhere",
    "all selected": f"tasks/{MAIL}&state=dead&select=page",
    "pause": f"pause/{MAIL}",
    "send again": f"resend/{MAIL}&state=dead&scope=all",
    "cancel": f"cancel/{MAIL}&state=running&id={{running}}",
    "delete": f"delete/{MAIL}&state=dead&id={{dead}}&id=gone",
    "nothing selected": f"delete/{MAIL}&state=dead",
    "stop": "stop/?alias=default",
    "periodic": "periodic/",
    "run now": f"run/?{urlencode({'alias': 'default', 'periodic': NIGHTLY.name})}",
    "history": "default_2Fmail/history/",
    "missing": "task/?alias=default&id=gone",
}


@pytest.fixture(autouse=True)
def periodic_tasks():
    with declare_only(HOURLY, NIGHTLY):
        yield


@pytest.fixture
def ids(redis):
    return {**scene.one_of_each("mail"), "running": scene.running("mail", progress=Progress(4, 10, "rows"))}


def refreshed(page, seconds=5, says="Updated"):
    """Let *seconds* pass for the page, and wait until it *says* what came of it."""
    page.get_by_role("status").evaluate("node => { node.textContent = ''; }")
    page.clock.fast_forward(seconds * 1000)
    expect(page.get_by_role("status")).to_contain_text(says)


def ready_of(page, queue="mail"):
    return page.locator(f'tr[data-key="{queue}"] td').first


def fetches(page):
    """A list that grows with each refresh."""
    seen = []
    page.on("request", lambda request: seen.append(request.url) if request.headers.get("x-live") else None)
    return seen


@pytest.fixture
def overview(window, admin, ids):
    """The first page, with a clock that the test can put forward."""
    opened = window(admin)
    stop_clock(opened.page)
    return opened.open(ROOT)


@pytest.mark.slow
def test_all_pages_keep_the_policy_have_contrast_fit_and_say_what_is_what(window, admin, ids):
    assert_good_looks(window(admin), {name: ROOT + path.format(**ids) for name, path in PAGES.items()})


def test_a_break_of_the_policy_would_be_noticed(window, admin, ids):
    opened = window(admin)

    page = opened.open(ROOT)
    with page.expect_console_message():
        page.evaluate("document.body.setAttribute('style', 'color: red')")

    [complaint] = opened.complaints
    assert "Applying inline style violates the following Content Security Policy" in complaint


def test_page_scripts_and_numbers_are_in_the_language_of_the_browser(window, admin, ids):
    opened = window(admin, locale="de-DE")
    stop_clock(opened.page)
    page = opened.open(ROOT)
    scene.ready("mail", count=1234)

    refreshed(page, says="Aktualisiert um")

    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.get_by_role("heading", name="Warteschlangen")).to_be_visible()
    expect(ready_of(page)).to_have_text("1.235")
    page.get_by_label("Aktualisieren").select_option("0")
    expect(page.get_by_role("status")).to_have_text("Die Aktualisierung ist ausgeschaltet.")
    assert opened.complaints == []


@pytest.mark.slow
def test_all_works_without_scripts(window, admin, ids):
    page = window(admin, java_script_enabled=False).open(ROOT)
    expect(page.get_by_label("Refresh")).to_be_hidden()

    page.get_by_role("link", name="1 dead in mail").click()
    page.get_by_role("link", name="OSError: <b>no route</b>", exact=True).click()
    page.locator("#live tbody a").click()
    expect(page.locator("details pre")).to_contain_text("no route")

    page.get_by_role("link", name="mail", exact=True).first.click()
    page.get_by_role("link", name="Pause: mail").click()
    page.get_by_role("button", name="Pause").click()

    expect(page.locator(".messagelist")).to_contain_text("Paused the queue mail")
    assert TaskQueue().stats("mail").paused


@pytest.mark.slow
def test_a_queue_is_paused_with_the_keyboard_alone_and_the_focus_is_always_seen(window, admin, ids):
    page = window(admin).open(ROOT)

    for name in ("Pause: mail", "Pause"):
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")

    expect(page.locator(".messagelist")).to_contain_text("Paused the queue mail")


def press_tab_until(page, name):
    describe = """() => {
        const node = document.activeElement, style = getComputedStyle(node);
        const isOurs = Boolean(node.closest("#live, .live-control"));
        return [node.ariaLabel ?? node.value ?? node.textContent.trim(), isOurs, style.outlineStyle];
    }"""
    for _attempt in range(100):
        page.keyboard.press("Tab")
        label, is_ours, outline = page.evaluate(describe)
        assert not is_ours or outline != "none", label
        if label == name:
            return
    pytest.fail(f"{name} cannot be reached")


@pytest.mark.slow
def test_text_has_the_contrast_of_wcag_aa_where_dark_was_chosen(window, admin, ids):
    opened = window(admin, color_scheme="light")
    opened.page.add_init_script("localStorage.setItem('theme', 'dark')")

    contrasts, colours = {}, set()
    for name, path in PAGES.items():
        page = opened.open(ROOT + path.format(**ids))
        contrasts |= {(name, text): ratio for text, ratio in page.evaluate(CONTRASTS).items()}
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    assert colours == {"rgb(18, 18, 18)"}
    assert len(contrasts) > 100
    assert {where: ratio for where, ratio in contrasts.items() if ratio < 4.5} == {}


def test_scrollable_regions_scroll_with_the_keyboard(window, admin, ids):
    page = window(admin, viewport={"width": 1_280, "height": 640}).open(ROOT)
    region = page.get_by_role("region", name=re.compile("^Queues of"))
    region.evaluate("node => { node.querySelector('table').style.minWidth = '3000px'; }")  # longer names
    assert region.evaluate("node => node.scrollWidth > node.clientWidth")

    region.focus()
    region.evaluate("""node => {
        window.scrolled = new Promise((done) => node.addEventListener("scroll", () => done(node.scrollLeft)));
    }""")
    page.keyboard.press("ArrowRight")

    assert page.evaluate("window.scrolled") > 0
    assert region.locator("thead th").first.bounding_box()["x"] >= 0
