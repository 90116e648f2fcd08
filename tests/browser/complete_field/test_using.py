"""The field that offers names, in a real browser: by keys, by touch, and without scripts."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from components.services.autocomplete import AddressBook, RecentContacts
from tests.browser.complete_field.parts import active, chosen_id, field, options

#: After "jen", for which Jenny and Ann Jensen are offered: keys pressed one after the other; what is active
#: then; where the caret is; whether the list is open.
KEYS = [
    ("ArrowDown", "Jenny", 3, True),
    ("ArrowDown", "Ann Jensen", 3, True),
    ("ArrowDown", None, 3, True),  # after the last comes the text, and then the first
    ("ArrowDown", "Jenny", 3, True),
    ("ArrowUp", None, 3, True),
    ("ArrowUp", "Ann Jensen", 3, True),
    ("ArrowLeft", None, 2, True),  # back in the text, and moved in it
    ("ArrowDown", "Jenny", 2, True),
    ("ArrowRight", None, 3, True),
    ("ArrowUp", "Ann Jensen", 3, True),
    ("Home", None, 0, True),
    ("ArrowDown", "Jenny", 0, True),
    ("End", None, 3, True),
    ("Shift+ArrowUp", None, 0, True),  # selects text
    ("End", None, 3, True),
    ("ArrowDown", "Jenny", 3, True),
    ("Alt+ArrowDown", "Jenny", 3, True),  # opens, and it is open
    ("Alt+ArrowUp", None, 3, False),
    ("Alt+ArrowDown", None, 3, True),
    ("Escape", None, 3, False),
    ("Escape", None, 3, False),
    ("ArrowUp", "Ann Jensen", 3, True),
    ("Escape", None, 3, False),
    ("ArrowDown", "Jenny", 3, True),
]


def test_a_name_is_chosen_by_keys_alone_and_told_to_the_book(opened: Any, book: AddressBook) -> None:
    page = opened()
    expect(field(page)).to_have_role("combobox")
    expect(field(page)).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Tab")

    page.keyboard.type("je")
    expect(options(page)).to_have_text(["Jeff", "<b>Jekyll</b>", "Jenny", "Ann Jensen"])
    expect(page.locator("mark")).to_have_text(["Je", "Je", "Je", "Je"])
    expect(field(page)).to_have_attribute("aria-expanded", "true")
    assert field(page).get_attribute("aria-activedescendant") is None  # nothing is chosen by itself
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(active(page)).to_have_text("Jenny")
    assert field(page).get_attribute("aria-activedescendant") == active(page).get_attribute("id")
    with page.expect_response("**/select") as told:
        page.keyboard.press("Enter")

    expect(field(page)).to_have_value("Jenny")
    expect(field(page)).to_be_focused()
    expect(options(page)).to_have_count(0)
    assert chosen_id(page) == "2"
    assert told.value.status == 204
    assert book.complete("je")[0].label == "Jenny"
    page.keyboard.press("Backspace")
    assert chosen_id(page) == ""


def test_each_key_does_what_the_authoring_practices_say(opened: Any) -> None:
    page = opened()
    field(page).focus()
    page.keyboard.type("jen")
    expect(options(page)).to_have_text(["Jenny", "Ann Jensen"])

    seen = []
    for key, *_expected in KEYS:
        page.keyboard.press(key)
        shown = active(page).text_content() if active(page).count() else None
        caret = field(page).evaluate("(node) => node.selectionStart")
        is_open = field(page).get_attribute("aria-expanded") == "true"
        assert (field(page).get_attribute("aria-activedescendant") is None) == (shown is None)
        assert (options(page).count() > 0) == is_open
        seen.append((key, shown, caret, is_open))

    assert seen == KEYS
    expect(field(page)).to_be_focused()
    expect(field(page)).to_have_value("jen")
    page.keyboard.press("End")
    page.keyboard.press("Backspace")  # types on: nothing is active, and the list is that of what is typed now
    expect(options(page)).to_have_count(4)
    assert active(page).count() == 0


def test_recent_contacts_are_offered_at_once_and_fetched_once(opened: Any, joe: User) -> None:
    RecentContacts(str(joe.pk)).touch("2", label="Jenny")
    RecentContacts(str(joe.pk)).touch("9", label="Bruce")
    page = opened(contacts=True)
    asked: list[str] = []
    page.on("request", lambda request: "/contacts" in request.url and asked.append(request.url))

    field(page).click()
    expect(options(page)).to_have_text(["Bruce recent", "Jenny recent"])
    page.keyboard.type("je")
    expect(options(page)).to_have_text(["Jenny recent", "Jeff", "<b>Jekyll</b>", "Ann Jensen"])
    field(page).fill("")
    expect(options(page)).to_have_text(["Bruce recent", "Jenny recent"])

    assert len(asked) == 1


def test_without_scripts_it_is_an_input_and_no_more(opened: Any) -> None:
    page: Page = opened(context={"java_script_enabled": False})

    expect(field(page)).to_have_role("textbox")
    field(page).fill("Jeff")
    with page.expect_navigation(url=re.compile(r"to=Jeff&to-id=$")):
        field(page).press("Enter")
