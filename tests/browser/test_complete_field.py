"""The field that offers names, in a real browser: by keys, by touch, with an input method, on a bad network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings
from playwright.sync_api import Page, Route, expect

from components.people import Users
from components.services.autocomplete import AddressBook, RecentContacts
from components.widgets import CompleteInput

pytestmark = pytest.mark.django_db(transaction=True)

BOOK = "guild:7"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'"
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Letter</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">{media}</head>
<body><main><h1>Letter</h1><form action="/letter" method="get">
<input type="hidden" name="csrfmiddlewaretoken" value="{token}">{field}<button>Send</button></form></main>
</body></html>"""
TOKEN = "a" * 32
#: Of all texts in the list, how their colour stands out from what is behind them.
CONTRASTS = """() => {
    const luminance = (text) => {
        const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        const [r, g, b] = text.match(/[0-9.]+/g).map((c) => linear(c / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (node) => {
        while (getComputedStyle(node).backgroundColor === "rgba(0, 0, 0, 0)") node = node.parentElement;
        return getComputedStyle(node).backgroundColor;
    };
    const found = [];
    const walker = document.createTreeWalker(document.querySelector("[role=listbox]"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim()) continue;
        const [one, two] = [luminance(getComputedStyle(parent).color), luminance(behind(parent))];
        found.push((Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05));
    }
    return found;
}"""
NAMES = {"1": "Jeff", "2": "Jenny", "3": "Ann Jensen", "4": "Élodie", "5": "李小龙", "6": "<b>Jekyll</b>"}


class Unnamed(Users):
    """Contacts go by their labels: the ids of these tests are not those of users."""

    def names(self, ids: Iterable[str]) -> dict[str, str]:
        return {}


class Everybody:
    def may_search(self, user: str, book: str) -> bool:
        return True


@pytest.fixture
def book(redis: Any) -> Iterator[AddressBook]:
    book = AddressBook(BOOK)
    book.load(NAMES.items())
    here = "tests.browser.test_complete_field"
    with override_settings(COMPONENTS={"BOOKS": f"{here}.Everybody", "PEOPLE": f"{here}.Unnamed"}):
        yield book


@pytest.fixture
def joe(db: None) -> User:
    return User.objects.create_user("joe")


@pytest.fixture
def opened(book: AddressBook, joe: User, client: Client, window: Callable[..., Any]) -> Iterator[Any]:
    """opened(**options of the widget): a page with the field, under a strict policy, that complains of nothing."""
    client.force_login(joe)
    windows = []

    def open_page(*, attrs: Any = None, context: Any = None, **options: Any) -> Page:
        form = type(
            "Form", (forms.Form,), {"to": forms.Field(widget=CompleteInput(BOOK, attrs, **options))}
        )()
        shown = window(client, **(context or {}))
        shown.page.context.add_cookies([{"name": "csrftoken", "value": TOKEN, "url": shown.base}])
        html = PAGE.format(media=form.media, field=form.as_p(), token=TOKEN)
        headers = {"Content-Security-Policy": POLICY, "Content-Type": "text/html"}
        shown.page.route("**/letter*", lambda route: route.fulfill(body=html, headers=headers))
        windows.append(shown)
        shown.open("/letter")
        if (context or {}).get("java_script_enabled", True):
            shown.page.locator("complete-field[data-live]").wait_for()
        return shown.page

    yield open_page
    for each in windows:
        assert [text for text in each.complaints if "Failed to load resource" not in text] == []


def field(page: Page) -> Any:
    return page.locator("#id_to")


def options(page: Page) -> Any:
    return page.get_by_role("option")


def chosen_id(page: Page) -> str:
    return str(page.locator("input[name=to-id]").input_value())


def test_a_name_is_chosen_by_keys_alone(opened: Any, book: AddressBook) -> None:
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
    active = page.locator("[role=option][aria-selected=true]")
    expect(active).to_have_text("Jenny")
    assert field(page).get_attribute("aria-activedescendant") == active.get_attribute("id")
    page.keyboard.press("Enter")

    expect(field(page)).to_have_value("Jenny")
    expect(field(page)).to_be_focused()
    expect(options(page)).to_have_count(0)
    assert chosen_id(page) == "2"
    page.keyboard.press("Backspace")
    assert chosen_id(page) == ""


def test_the_arrows_go_round_by_way_of_the_text(opened: Any) -> None:
    page = opened()
    field(page).focus()
    page.keyboard.type("jen")
    expect(options(page)).to_have_text(["Jenny", "Ann Jensen"])
    seen = []
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        active = page.locator("[role=option][aria-selected=true]")
        seen.append(active.text_content() if active.count() else None)

    assert seen == ["Ann Jensen", "Jenny", None, "Jenny", None]


def test_escape_closes_and_what_was_typed_is_sent_as_it_is(opened: Any) -> None:
    page = opened()
    field(page).focus()
    page.keyboard.type("je")
    expect(options(page)).to_have_count(4)

    page.keyboard.press("Escape")
    expect(options(page)).to_have_count(0)
    expect(field(page)).to_have_value("je")
    with page.expect_navigation(url=re.compile(r"to=je&to-id=$")):
        page.keyboard.press("Enter")


def test_leaving_the_field_chooses_nothing(opened: Any) -> None:
    page = opened()
    field(page).focus()
    page.keyboard.type("je")
    expect(options(page)).to_have_count(4)
    page.keyboard.press("ArrowDown")

    page.keyboard.press("Tab")

    expect(field(page)).to_have_value("je")
    expect(options(page)).to_have_count(0)
    assert chosen_id(page) == ""


def test_a_name_is_chosen_by_touch(opened: Any) -> None:
    page = opened(context={"has_touch": True, "viewport": {"width": 320, "height": 480}})
    field(page).tap()
    page.keyboard.type("李")

    assert options(page).first.bounding_box()["height"] >= 44
    options(page).first.tap()

    expect(field(page)).to_have_value("李小龙")
    assert chosen_id(page) == "5"


def test_typing_on_asks_nobody_where_all_is_known(opened: Any) -> None:
    page = opened()
    asked: list[str] = []
    page.on("request", lambda request: "?q=" in request.url and asked.append(request.url.partition("?q=")[2]))
    field(page).focus()
    page.keyboard.type("j")
    expect(options(page)).to_have_count(4)

    page.keyboard.type("en")

    expect(options(page)).to_have_text(["Jenny", "Ann Jensen"])
    assert asked == ["j&limit=10"]


def test_an_answer_that_comes_too_late_is_dropped(opened: Any) -> None:
    page = opened(limit=2)
    held: list[Route] = []

    def answer(route: Route) -> None:
        if "q=j&" in route.request.url:
            held.append(route)
        else:
            route.fallback()

    page.route("**/api/books/**", answer)
    field(page).focus()
    with page.expect_request(re.compile(r"q=j&")):
        page.keyboard.type("j")
    page.keyboard.type("enn")
    expect(options(page)).to_have_text(["Jenny"])

    for route in held:
        route.fulfill(json={"entries": [{"id": "1", "label": "Jeff"}], "is_complete": False})
    page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 50))")

    assert held
    expect(options(page)).to_have_text(["Jenny"])


def test_what_is_still_being_composed_asks_for_nothing(opened: Any) -> None:
    page = opened()
    asked: list[str] = []
    page.on("request", lambda request: "?q=" in request.url and asked.append(request.url))
    field(page).focus()
    method = page.context.new_cdp_session(page)
    for text in ("l", "li"):
        method.send(
            "Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
        )
    page.keyboard.press("ArrowDown")
    assert asked == []

    method.send("Input.insertText", {"text": "李"})

    expect(options(page)).to_have_text(["李小龙"])
    assert len(asked) == 1


def test_without_the_network_the_field_is_an_input(opened: Any) -> None:
    page = opened()
    page.route("**/api/books/**", lambda route: route.abort())
    field(page).focus()
    page.keyboard.type("je")

    expect(page.locator(".complete-note")).to_have_text(
        "Names cannot be looked up now. You can type the whole name."
    )
    expect(field(page)).to_have_attribute("aria-expanded", "false")


def test_the_list_is_told_to_who_does_not_see_it_also_twice_alike(opened: Any) -> None:
    page = opened()
    regions = page.locator("complete-field [role=status]")
    field(page).focus()
    page.keyboard.type("jen")
    expect(regions.filter(has_text="2 names")).to_have_count(1)
    first = regions.evaluate_all("(nodes) => nodes.findIndex((node) => node.textContent)")

    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")

    expect(regions.nth(1 - first)).to_contain_text("2 names")
    expect(regions.nth(first)).to_be_empty()
    page.keyboard.type("x")
    expect(regions.filter(has_text="No name is found.")).to_have_count(1)


def test_the_tree_that_a_screen_reader_gets(opened: Any) -> None:
    page = opened()
    field(page).focus()
    page.keyboard.type("jen")
    page.keyboard.press("ArrowDown")
    expect(options(page)).to_have_count(2)

    expect(page.locator("complete-field")).to_match_aria_snapshot("""
        - combobox "To:" [expanded]: jen
        - listbox "To:":
          - option "Jenny"
          - option "Ann Jensen"
    """)


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


def test_what_was_chosen_is_told_to_the_book(opened: Any, book: AddressBook) -> None:
    page = opened()
    field(page).focus()
    page.keyboard.type("je")
    expect(options(page)).to_have_count(4)
    for _ in range(3):
        page.keyboard.press("ArrowDown")

    with page.expect_response("**/select") as told:
        page.keyboard.press("Enter")

    assert told.value.status == 204
    assert book.complete("je")[0].label == "Jenny"


def test_of_a_list_the_part_at_the_caret_is_completed(opened: Any) -> None:
    page = opened()
    page.evaluate("() => document.querySelector('complete-field').setAttribute('separator', ',')")
    field(page).fill("Bruce, jen, Zoe")
    field(page).evaluate("(node) => node.setSelectionRange(10, 10)")
    page.keyboard.type("n")
    expect(options(page)).to_have_text(["Jenny"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    expect(field(page)).to_have_value("Bruce, Jenny, Zoe")
    assert field(page).evaluate("(node) => node.selectionStart") == len("Bruce, Jenny, ")
    assert chosen_id(page) == ""


def test_without_scripts_it_is_an_input_and_no_more(opened: Any) -> None:
    page = opened(context={"java_script_enabled": False})

    expect(field(page)).to_have_role("textbox")
    field(page).fill("Jeff")
    with page.expect_navigation(url=re.compile(r"to=Jeff&to-id=$")):
        field(page).press("Enter")


def test_nothing_overflows_at_twice_the_size(opened: Any, book: AddressBook) -> None:
    book.add("Jeff " + "W" * 190, id="7")
    page = opened(context={"viewport": {"width": 320, "height": 400}})
    field(page).focus()
    page.keyboard.type("jeff")
    expect(options(page)).to_have_count(2)

    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_stand_out_from_what_is_behind_them(opened: Any, joe: User, scheme: str) -> None:
    RecentContacts(str(joe.pk)).touch("2", label="Jenny")
    page = opened(contacts=True, context={"color_scheme": scheme})
    field(page).focus()
    page.keyboard.type("je")
    expect(options(page)).to_have_count(4)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")

    contrasts = page.evaluate(CONTRASTS)

    assert len(contrasts) == 11  # of four names the match and what is around it, and the hint
    assert min(contrasts) >= 4.5
    sheet = page.evaluate("() => getComputedStyle(document.querySelector('.complete-popup')).backgroundColor")
    assert (sheet != "rgb(255, 255, 255)") == (scheme == "dark")
