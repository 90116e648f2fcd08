"""Pages of queues in a real browser: what is selected, tables as cards, languages, colours, fingers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from components.services.queues import TaskQueue
from tests.browser.axe import assert_accessible
from tests.browser.clock import stop_clock
from tests.browser.test_live_page import ready_of, refreshed
from tests.locks.admin import holdings
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"
MAIL = "?alias=default&queue=mail"
PATHS = (
    ROOT,
    f"{ROOT}tasks/{MAIL}&state=dead",
    "/admin/components/lock/",
    "/admin/components/semaphore/semaphore/?semaphore=api",
)
#: The tables that have to be scrolled to be read.
TOO_WIDE = """() => [...document.querySelectorAll(".cards")]
    .filter(table => table.scrollWidth > table.clientWidth + 1).map(table => table.ariaLabel)"""
LABEL = "node => getComputedStyle(node, '::before').content"


def box(page, task_id):
    return page.locator(f'input[value="{task_id}"]')


def test_a_refresh_keeps_what_is_selected_and_selects_nothing_that_is_new(window, admin, redis):
    chosen, other = scene.dead(), scene.dead()
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(f"{ROOT}tasks/{MAIL}&state=dead")
    box(page, chosen).check()
    page.get_by_role("searchbox", name="Search").fill("half a wo")
    TaskQueue().delete("mail", "dead", [other])
    new = scene.dead()

    page.clock.fast_forward(5_000)

    expect(box(page, new)).not_to_be_checked()
    expect(box(page, other)).to_have_count(0)
    expect(box(page, chosen)).to_be_checked()
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


def test_scrollable_regions_scroll_with_the_keyboard(window, admin, redis):
    scene.one_of_each("mail")
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


@pytest.mark.slow
def test_text_has_contrast_where_dark_was_chosen(window, admin, redis):
    ids = scene.one_of_each("mail")
    opened = window(admin, color_scheme="light")
    opened.page.add_init_script("localStorage.setItem('theme', 'dark')")

    for path in ("", f"tasks/{MAIL}&state=dead", f"task/?alias=default&id={ids['dead']}"):
        page = opened.open(ROOT + path)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 18, 18)"
        assert_accessible(page)


def test_nothing_of_a_table_is_off_screen(window, admin, redis):
    scene.one_of_each("mail")
    holdings.held("item:42")
    holdings.permit("api")
    opened = window(admin)

    for path in PATHS:
        page = opened.open(path)
        assert page.locator(".cards tbody tr").count() > 0
        for width in (390, 768):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate(TOO_WIDE) == []


def test_cells_of_a_card_have_their_labels_and_their_roles(window, admin, redis):
    scene.one_of_each("mail")
    page = window(admin, viewport={"width": 390, "height": 800}).open(ROOT)

    table = page.get_by_role("table", name="Queues").first
    row = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name="mail"))
    cell = row.get_by_role("cell").first
    assert cell.evaluate(LABEL) == '"Ready" / ""'
    expect(cell).to_have_css("display", "block")

    page.set_viewport_size({"width": 1440, "height": 800})
    expect(cell).to_have_css("display", "table-cell")
    assert cell.evaluate(LABEL) == "none"
