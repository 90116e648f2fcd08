"""The Counters page in a real browser: policy, pointer, zoom, no scripts, refresh, colours, small screens."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from components.services.counters import Counter
from components.services.counters.buffer import DROPPED
from tests.browser.clock import stop_clock
from tests.browser.looks import assert_good_looks
from tests.browser.test_queues_page import press_tab_until, refreshed
from tests.browser.themes import measured
from tests.counters.admin.counting import counted
from tests.locks.admin.test_locks_page import AWKWARD
from tests.support.counters import count_at

ROOT = "/admin/components/counter/"
SERIES = "&".join(f"counter=sales:{number}" for number in range(8))
PAGES = {
    "list": ROOT,
    "found": f"{ROOT}?q=ale",
    "found by nobody": f"{ROOT}?q=nowhere",
    "one": f"{ROOT}chart/?counter=hits",
    "eight": f"{ROOT}chart/?{SERIES}",
    "families": f"{ROOT}chart/?family=sales&family=counters",
    "long name": f"{ROOT}chart/?counter={'x' * 450}",
    "days": f"{ROOT}chart/?counter=hits&span=10368000",
    "nothing counted": f"{ROOT}chart/?counter=nobody",
    "nothing chosen": f"{ROOT}chart/",
    "refused": f"{ROOT}chart/?counter=hits&precision=7",
    "family": f"{ROOT}family/?family=sales",
    "no family": f"{ROOT}family/?family=gone",
}
#: Of lines and words of a drawing against what is behind them.
DRAWN = """() => {
    const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = luminance(rgb(getComputedStyle(document.body).backgroundColor));
    const against = (colour) => {
        const it = luminance(rgb(colour));
        return (Math.max(it, behind) + 0.05) / (Math.min(it, behind) + 0.05);
    };
    const of = (selector, what) => [...document.querySelectorAll(selector)].map((node, at) =>
        [`${selector} ${at}`, against(getComputedStyle(node)[what])]);
    return Object.fromEntries([...of(".chart-line:not(.open)", "stroke"), ...of(".chart-figure text", "fill")]);
}"""


@pytest.fixture
def minute(redis):
    """When this minute began. In the one before it, 7 hits were counted."""
    return counted(redis, "hits", 7, 0, 1_200, now=3)


@pytest.fixture
def pages(redis, minute):
    """The address of each page, of counters of every kind."""
    for name in AWKWARD:
        counted(redis, name, 7)
    for number in range(8):
        counted(redis, f"sales:{number}", *range(number, 60), minute=minute)
    Counter(DROPPED).update(5)
    return PAGES


def chart(page):
    return page.get_by_role("img").and_(page.locator(".chart-canvas"))  # the admin's icons are images too


def point(page, part, *, down=False):
    """Put the pointer on a chart, at this part of its width."""
    box = page.locator("[data-chart-surface]").bounding_box()
    page.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2, steps=4)
    if down:
        page.mouse.down()


def part_of(page, second):
    """At which part of the width of a chart that second is."""
    data = page.locator("[data-chart]").evaluate("node => ({ ...node.dataset })")
    return (second - int(data["since"])) / int(data["precision"]) / int(data["slices"])


def tip(page):
    return page.locator(".chart-tip")


def test_a_chart_says_in_words_what_it_shows(window, admin, pages):
    page = window(admin).open(pages["one"])

    expect(chart(page)).to_have_accessible_name(re.compile("Counter hits: counts in slices of 1 min, "))
    expect(chart(page)).to_have_accessible_description(re.compile("hits: 1,210 in all, at most 1,200 at "))


@pytest.mark.slow
def test_the_pointer_shows_what_was_counted_under_it(window, admin, pages, minute):
    page = window(admin).open(pages["one"])
    expect(tip(page)).to_be_hidden()

    for ago, said in ((0, "3 hits"), (60, "7 hits"), (180, "1,200 hits")):
        point(page, part_of(page, minute - ago + 30))
        expect(tip(page)).to_contain_text(said)
    point(page, 0.0001)
    expect(tip(page)).to_contain_text("\N{EN DASH} hits")

    page.mouse.move(1, 1)
    expect(tip(page)).to_be_hidden()
    expect(page.locator(".chart-cursor")).to_be_hidden()


def test_the_tooltip_names_every_line(window, admin, pages, minute):
    page = window(admin).open(pages["eight"])

    point(page, part_of(page, minute - 30))

    for number in range(8):
        expect(tip(page)).to_contain_text(f"{number} sales:{number}")


def test_the_tooltip_stays_inside_a_small_window(window, admin, pages):
    page = window(admin, viewport={"width": 360, "height": 640}).open(pages["long name"])
    page.locator("[data-chart-surface]").scroll_into_view_if_needed()

    for part in (0.05, 0.5, 0.95):
        point(page, part)
        box = tip(page).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_dragging_over_a_time_shows_that_time_in_finer_slices(window, admin, pages):
    page = window(admin).open(f"{ROOT}chart/?counter=hits&span=432000")
    before = page.locator("[data-chart]").evaluate("node => ({ ...node.dataset })")

    point(page, 0.985, down=True)
    point(page, 0.9999)
    with page.expect_navigation():
        page.mouse.up()

    query = parse_qs(urlsplit(page.url).query)
    after = page.locator("[data-chart]").evaluate("node => ({ ...node.dataset })")
    assert query["counter"] == ["hits"]
    assert (before["precision"], after["precision"]) == ("3600", "60")
    assert int(after["since"]) == int(before["since"]) + 118 * 3_600
    expect(chart(page)).to_have_accessible_description(re.compile("hits: 1,210 in all"))
    page.go_back()
    expect(page.locator("[data-chart]")).to_have_attribute("data-precision", "3600")


def test_a_click_and_a_drag_that_is_given_up_change_nothing(window, admin, pages, minute):
    page = window(admin).open(pages["one"])
    address = page.url

    point(page, 0.5, down=True)
    page.mouse.up()
    point(page, 0.2, down=True)
    point(page, 0.6)
    expect(page.locator(".chart-choice")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".chart-choice")).to_be_hidden()
    page.mouse.up()

    point(page, part_of(page, minute - 30))
    expect(tip(page)).to_contain_text("7 hits")
    assert page.url == address


@pytest.mark.slow
def test_a_refresh_renews_the_drawing_and_keeps_the_table_open(window, admin, pages, minute, redis):
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(pages["one"])
    page.get_by_text("The same as a table").click()
    row = page.locator(f'.chart-table tr[data-key="{minute - 60}"] td')
    expect(row).to_have_text("7")

    count_at(redis, "hits", minute - 60, 5_000)
    refreshed(page)

    expect(page.locator(".chart-table")).to_have_attribute("open", "")
    expect(row).to_have_text("5,007")
    expect(page.locator(".chart-numbers text").last).to_have_text("6,000")
    point(page, part_of(page, minute - 30))
    expect(tip(page)).to_contain_text("5,007 hits")


@pytest.mark.slow
def test_all_works_without_scripts(window, admin, pages):
    page = window(admin, java_script_enabled=False).open(ROOT)
    expect(page.get_by_label("Refresh")).to_be_hidden()

    for name in ("sales:1", "sales:2"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    page.get_by_role("button", name="Compare in a chart").click()
    expect(chart(page)).to_be_visible()
    expect(page.locator(".chart-legend li")).to_have_count(2)

    page.get_by_label("Add").fill("hits")
    page.get_by_label("Time").select_option("the last 10 min")
    page.get_by_role("checkbox", name="sales:1").uncheck()
    page.get_by_role("button", name="Show").click()
    expect(page.locator("figcaption")).to_contain_text("in slices of 5 s")
    expect(page.locator(".chart-legend a")).to_have_text(["sales:2", "hits"])

    page.get_by_text("The same as a table").click()
    expect(page.locator(".chart-table tbody tr")).to_have_count(120)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    assert download.value.suggested_filename == "counters-sales-2.csv"


def test_counters_are_compared_with_the_keyboard_alone_and_the_focus_is_always_seen(window, admin, pages):
    page = window(admin).open(ROOT)

    press_tab_until(page, "Compare the family sales")
    page.keyboard.press("Space")
    press_tab_until(page, "Compare families")
    with page.expect_navigation():
        page.keyboard.press("Enter")

    expect(page.locator(".chart-legend a")).to_have_text(["sales:*"])


@pytest.mark.slow
def test_all_pages_keep_the_policy_have_contrast_fit_and_say_what_is_what(window, admin, pages):
    opened = window(admin)
    assert_good_looks(opened, pages)

    point(opened.open(pages["eight"]), 0.3, down=True)
    point(opened.page, 0.6)
    assert opened.complaints == []


@pytest.mark.slow
def test_lines_and_their_numbers_can_be_seen_in_light_and_in_dark_also_where_dark_was_chosen(
    window, admin, pages, minute
):
    since, until = (datetime.fromtimestamp(minute - ago, UTC) for ago in (7_200, 0))  # whenever it is loaded
    path = f"{pages['eight']}&from={since:%Y-%m-%dT%H:%M:%SZ}&until={until:%Y-%m-%dT%H:%M:%SZ}"
    opened = window(admin, color_scheme="light")
    drawn = measured(opened.open(path), DRAWN)
    opened.page.emulate_media(color_scheme="light")
    opened.page.add_init_script("localStorage.setItem('theme', 'dark')")
    chosen = opened.open(path).evaluate(DRAWN)

    assert len(drawn) > 2 * 16
    assert min(drawn.values()) >= 4.5
    assert chosen == {what: ratio for (theme, what), ratio in drawn.items() if theme == "dark"}


def test_lines_differ_in_more_than_their_colours(window, admin, pages):
    page = window(admin).open(pages["eight"])

    looks = page.eval_on_selector_all(
        ".chart-legend path", "nodes => nodes.map(n => getComputedStyle(n).strokeDasharray)"
    )

    assert len(set(looks)) == 8


@pytest.mark.slow
def test_the_words_of_a_chart_do_not_touch_each_other(window, admin, pages):
    opened = window(admin)
    touching = """nodes => nodes.filter(n => n.checkVisibility()).map(n => n.getBoundingClientRect())
        .flatMap((one, at, all) => all.slice(at + 1)
            .filter(other => one.left < other.right && other.left < one.right)
            .filter(other => one.top < other.bottom && other.top < one.bottom))
        .length"""
    for span in (120, 600, 3_600, 7_200, 86_400, 604_800, 10_368_000):
        page = opened.open(f"{ROOT}chart/?counter=hits&span={span}")
        for width in (360, 800, 1_200):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.eval_on_selector_all(".chart-figure text", touching) == 0
