"""The field's looks: in light and dark, in forced colours, enlarged, from right to left."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from components.services.autocomplete import AddressBook, RecentContacts
from tests.browser.axe import assert_accessible
from tests.browser.complete_field.parts import active, debugger, field, options

HEBREW, ARABIC = "שרה", "محمد علي"
WIDE_NAME = "Jeff " + "W" * 190
#: What of the list and its names is out of sight, or not reachable by scrolling.
HIDDEN = """() => {
    const { scrollWidth, clientWidth, clientHeight } = document.documentElement;
    const box = document.querySelector(".complete-popup").getBoundingClientRect();
    return [
        scrollWidth > clientWidth && "the page is too wide",
        (box.left < 0 || box.right > clientWidth) && "the list is too wide",
        (box.top < 0 || box.bottom > clientHeight) && "the list is too high",
        ...[...document.querySelectorAll("[role=option]")]
            .map((node) => node.scrollWidth > node.clientWidth && node.textContent),
    ].filter(Boolean);
}"""
#: How much of what one sees is above and below the field, and where the list is.
IN_SIGHT = """() => {
    const { offsetTop, height } = visualViewport;
    const box = (node) => node.getBoundingClientRect();
    const [list, field] = [".complete-popup", "#id_to"].map((part) => box(document.querySelector(part)));
    const [above, below] = [field.top - offsetTop, offsetTop + height - field.bottom];
    return { isAbove: list.bottom <= field.top, above, below };
}"""


def type_je(page: Page) -> None:
    field(page).focus()
    page.keyboard.type("je")
    expect(options(page).first).to_be_visible()


def colours(page: Page, selector: str) -> tuple[str, str]:
    """Of the text, and behind it."""
    found = page.locator(selector).first.evaluate(
        "(node) => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]"
    )
    return found[0], found[1]


def test_pages_meet_contrast_rules_in_light_and_dark(opened: Any, joe: User, book: AddressBook) -> None:
    """Closed; with more names than there is room for, one of them active; without any."""
    for number in range(20):
        book.add(f"Jeffrey {number}", id=f"more-{number}")
    RecentContacts(str(joe.pk)).touch("2", label="Jenny")
    page = opened(contacts=True, context={"viewport": {"width": 900, "height": 420}})
    assert_accessible(page)

    type_je(page)
    expect(options(page)).to_have_count(10)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert_accessible(page)
    sheets = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        sheets.append(colours(page, ".complete-popup")[1])
    assert sheets[0] == "rgb(255, 255, 255)" != sheets[1]

    field(page).fill("nobody")
    expect(page.locator(".complete-note")).to_be_visible()
    assert_accessible(page)


@pytest.mark.slow
def test_forced_colours_show_which_name_is_active_and_where_the_list_ends(opened: Any) -> None:
    page = opened(context={"forced_colors": "active"})
    type_je(page)
    page.keyboard.press("ArrowDown")

    system = page.evaluate(
        """() => {
            const node = document.body.appendChild(document.createElement("i"));
            return ["Highlight", "HighlightText", "CanvasText"].map((name) => {
                node.style.color = name;
                return getComputedStyle(node).color;
            });
        }"""
    )

    assert colours(page, "[aria-selected=true]") == (system[1], system[0])
    assert colours(page, "[aria-selected=true] mark")[0] == system[1]
    assert colours(page, "[aria-selected=false]")[1] != system[0]
    expect(page.locator(".complete-popup")).to_have_css("border-top-color", system[2])
    expect(page.locator("mark").first).to_have_css("text-decoration-line", "underline")
    assert_accessible(page, within="complete-field")


@pytest.mark.parametrize("how", ["all of the page", "its text"])
def test_nothing_is_lost_at_twice_the_size(opened: Any, book: AddressBook, how: str) -> None:
    """A window of 1280 by 1024 has half of the width and height when all is twice as large; 320 is the smallest."""
    book.add(WIDE_NAME, id="7")
    page = opened()
    width, height = (640, 512) if how == "all of the page" else (320, 1024)
    metrics = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": False}
    debugger(page).send("Emulation.setDeviceMetricsOverride", metrics)
    if how == "its text":
        page.evaluate("() => { document.documentElement.style.fontSize = '200%'; }")
        expect(field(page)).to_be_visible()
    type_je(page)
    expect(options(page)).to_have_count(5)
    page.keyboard.press("ArrowUp")

    assert page.evaluate(HIDDEN) == []
    assert active(page).evaluate(
        "(node) => { const box = node.getBoundingClientRect(), list = node.closest('.complete-popup')"
        ".getBoundingClientRect(); return box.bottom <= list.bottom + 1 && box.top >= list.top - 1 "
        "|| box.height > list.height; }"
    )


def test_enlarged_by_two_fingers_the_list_is_where_there_is_room(opened: Any) -> None:
    page = opened(context={"viewport": {"width": 400, "height": 700}, "has_touch": True, "is_mobile": True})
    page.evaluate("() => { document.querySelector('form').style.marginTop = '260px'; }")
    session = debugger(page)
    session.send("Emulation.setPageScaleFactor", {"pageScaleFactor": 2})
    page.wait_for_function("() => visualViewport.scale === 2")
    field(page).focus()
    page.keyboard.type("je")
    expect(options(page)).to_have_count(4)

    found = page.evaluate(IN_SIGHT)

    assert found["isAbove"] == (found["above"] > found["below"]), found


@pytest.mark.parametrize("dir", ["ltr", "rtl"])
def test_names_are_written_in_their_own_direction(opened: Any, book: AddressBook, dir: str) -> None:
    book.load([("8", HEBREW), ("9", ARABIC), ("10", f"{HEBREW} Smith")])
    page = opened(dir=dir)
    field(page).focus()
    page.keyboard.type("ש")
    expect(options(page)).to_have_text([HEBREW, f"{HEBREW} Smith"])
    expect(page.locator("mark")).to_have_text(["ש", "ש"])
    label = page.locator(".complete-label").first
    first, rest = label.evaluate(
        """(node) => [...node.childNodes].filter((each) => each.textContent).map((each) => {
            const range = document.createRange();
            range.selectNodeContents(each);
            return range.getBoundingClientRect().left;
        })"""
    )
    edge = "right" if dir == "rtl" else "left"
    edges = [
        page.locator(selector).first.evaluate("(node, edge) => node.getBoundingClientRect()[edge]", edge)
        for selector in ("complete-field", ".complete-popup")
    ]

    expect(label).to_have_css("direction", "rtl")
    assert first > rest  # what is typed stands at the right
    assert edges[0] == pytest.approx(edges[1], abs=1)
    assert page.evaluate(HIDDEN) == []

    page.keyboard.type("רה ")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value(HEBREW)
