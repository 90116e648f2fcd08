"""Each room of the control room with the keyboard alone and without scripts, on a small screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.control_room.every_page import ROOTS, one_periodic_task, query  # noqa: F401

FOCUSED = """() => {
    const node = document.activeElement, style = getComputedStyle(node);
    const isOurs = Boolean(node.closest("#live, .live-control"));
    return [node.ariaLabel ?? node.value ?? node.textContent.trim(), !isOurs || style.outlineStyle !== "none"];
}"""
FITS = "() => document.documentElement.scrollWidth <= innerWidth"
#: Where it begins; what is pressed, one after the other; what is said then.
JOURNEYS = {
    "addressbook": ("", ["market.item", "Remove the book…", "Remove the book"], "market.item"),
    "cachedrow": ("row/?row=items:1", ["Remove from the cache…", "Remove from the cache"], "items:1"),
    "chat": ("", ["Lantern Keepers", "Remove from the chat: jack", "Remove from the chat"], "jack"),
    "lock": ("", ["item:42", "Release by force…", "Release by force"], "item:42"),
    "logjob": ("job/?job=default", ["Remove: places", "Remove"], "places"),
    "mailbox": ("", ["jack", "Empty the mailbox…", "Empty the mailbox"], "jack"),
    "queue": ("", ["Pause: mail", "Pause"], "mail"),
    "semaphore": ("", ["api", "Take away: jill", "Take away"], "jill"),
}


def press_tab_until(page, name):
    """Whatever has the focus meanwhile, it is seen that it has."""
    for _attempt in range(100):
        page.keyboard.press("Tab")
        label, is_seen = page.evaluate(FOCUSED)
        assert is_seen, label
        if label == name or label.startswith(f"{name}, "):
            return
    pytest.fail(f"{name} cannot be reached")


@pytest.mark.slow
@pytest.mark.parametrize("room", JOURNEYS)
def test_the_keyboard_is_enough_and_no_script_is_needed(window, admin, query, room):  # noqa: F811
    path, names, said = JOURNEYS[room]
    opened = window(admin, java_script_enabled=False, viewport={"width": 360, "height": 640})
    page = opened.open(ROOTS[room] + path)
    expect(page.get_by_label("Refresh")).to_be_hidden()

    for name in names:
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.evaluate(FITS)

    expect(page.locator(".messagelist .success")).to_contain_text(said)
