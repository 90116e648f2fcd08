"""The field's looks: in light and dark, in forced colours, enlarged, from right to left."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from components.services.autocomplete import AddressBook, RecentContacts
from tests.browser.axe import assert_accessible
from tests.browser.complete_field.parts import field, options

HEBREW, ARABIC = "שרה", "محمد علي"
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
