"""The Counters page in a real browser: policy, pointer, zoom, no scripts, refresh, colours, small screens."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.axe import assert_accessible
from tests.browser.clock import stop_clock
from tests.browser.test_live_page import refreshed
from tests.counters.admin.counting import counted
from tests.support.counters import count_at

ROOT = "/admin/components/counter/"
SERIES = "&".join(f"counter=sales:{number}" for number in range(8))
PAGES = {"one": f"{ROOT}chart/?counter=hits", "eight": f"{ROOT}chart/?{SERIES}"}
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
    """The address of a chart of one counter, and of eight."""
    for number in range(8):
        counted(redis, f"sales:{number}", *range(number, 60), minute=minute)
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
def test_lines_and_their_numbers_can_be_seen_in_light_and_in_dark_also_where_dark_was_chosen(
    window, admin, pages, minute
):
    since, until = (datetime.fromtimestamp(minute - ago, UTC) for ago in (7_200, 0))  # whenever it is loaded
    path = f"{pages['eight']}&from={since:%Y-%m-%dT%H:%M:%SZ}&until={until:%Y-%m-%dT%H:%M:%SZ}"
    opened = window(admin)
    page, drawn = opened.open(path), {}
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        page.evaluate("document.getAnimations().forEach(each => each.finish())")  # colours that change slowly
        drawn[theme] = page.evaluate(DRAWN)
    page.add_init_script("localStorage.setItem('theme', 'dark')")
    chosen = opened.open(path).evaluate(DRAWN)

    assert len(drawn["light"]) > 16
    assert min(*drawn["light"].values(), *drawn["dark"].values()) >= 4.5
    assert chosen == drawn["dark"]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 18, 18)"
    assert_accessible(page)
