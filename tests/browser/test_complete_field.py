"""The field that offers names, in a real browser, under a strict policy; and in the demo's admin."""

import re
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings
from django.urls import reverse
from playwright.sync_api import Locator, Page, Route, expect

from components.people import Users
from components.services.autocomplete import AddressBook, RecentContacts
from components.services.autocomplete.folding import fold, is_found, spell
from components.services.autocomplete.widgets import CompleteInput
from project.market.models import Item
from tests.browser.axe import assert_accessible
from tests.browser.conftest import stop_clock
from tests.project.market.conftest import player
from tests.support.names import NAMES as ANY_NAMES
from tests.support.names import NOT_OTHERWISE, OTHERWISE

BOOK = "guild:7"
NAMES = {"1": "Jeff", "2": "Jenny", "3": "Ann Jensen", "4": "Élodie", "5": "李小龙", "6": "<b>Jekyll</b>"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'"
HTML = """<!doctype html><html lang="en" dir="{dir}"><head><meta charset="utf-8"><title>Letter</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">{media}</head>
<body><main><h1>Letter</h1><form action="/letter" method="get">
<input type="hidden" name="csrfmiddlewaretoken" value="{token}">{field}<button>Send</button></form></main>
</body></html>"""
TOKEN = "a" * 32


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
    with override_settings(COMPONENTS={"BOOKS": f"{__name__}.Everybody", "PEOPLE": f"{__name__}.Unnamed"}):
        yield book


@pytest.fixture
def joe(transactional_db: None) -> User:
    return User.objects.create_user("joe")


@pytest.fixture
def opened(book: AddressBook, joe: User, client: Client, window: Callable[..., Any]) -> Iterator[Any]:
    """opened(**options of the widget): the page; dir= is its direction, script= runs before its own."""
    client.force_login(joe)
    windows = []

    def open_page(
        *, attrs: Any = None, context: Any = None, dir: str = "ltr", script: str = "", **options: Any
    ) -> Page:
        widget = CompleteInput(BOOK, attrs, **options)
        form = type("Form", (forms.Form,), {"to": forms.Field(widget=widget)})()
        shown = window(client, **(context or {}))
        shown.page.context.add_cookies([{"name": "csrftoken", "value": TOKEN, "url": shown.base}])
        html = HTML.format(media=form.media, field=form.as_p(), token=TOKEN, dir=dir)
        headers = {"Content-Security-Policy": POLICY, "Content-Type": "text/html"}
        shown.page.route("**/letter*", lambda route: route.fulfill(body=html, headers=headers))
        if script:
            shown.page.add_init_script(script)
        windows.append(shown)
        shown.open("/letter")
        if (context or {}).get("java_script_enabled", True):
            shown.page.locator("complete-field[data-live]").wait_for()
        return shown.page

    yield open_page
    for each in windows:
        assert [text for text in each.complaints if "Failed to load resource" not in text] == []


def field(page: Page) -> Locator:
    return page.locator("#id_to")


def options(page: Page) -> Locator:
    return page.get_by_role("option")


def active(page: Page) -> Locator:
    return page.locator("[role=option][aria-selected=true]")


def chosen_id(page: Page) -> str:
    return page.locator("input[name=to-id]").input_value()


def requests(page: Page) -> list[str]:
    """A list that grows with each request of names: what was asked for."""
    asked: list[str] = []

    def note(request: Any) -> None:
        if "?q=" in request.url:
            asked.append(request.url.partition("?q=")[2].partition("&")[0])

    page.on("request", note)
    return asked


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


# What it asks for and when, and what it does with answers that are late, out of order or refused

#: As in a browser that has none: an answer that is overtaken comes nevertheless.
NO_ABORT = "AbortController.prototype.abort = () => {};"
#: Whether the browser finds a name by what is typed, of each pair.
FOUND = """async (pairs) => {
    const { find } = await import("/static/components/autocomplete/matching.js");
    return pairs.map(([label, typed]) => Boolean(find(label, typed)));
}"""


class Held:
    """Answers of the book that come when they are told to; answer(prefix, *labels) is one of them."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._routes: dict[str, Route] = {}
        page.route(re.compile(r"\?q="), self._hold)

    def _hold(self, route: Route) -> None:
        self._routes[re.findall(r"q=([^&]*)", route.request.url)[0]] = route

    def type(self, text: str) -> None:
        """Type *text*, until what is in the field then is asked for."""
        whole = field(self.page).input_value() + text
        with self.page.expect_request(re.compile(rf"q={whole}&")):
            self.page.keyboard.type(text)
        while whole not in self._routes:  # it is under way
            self.page.evaluate("() => undefined")

    def answer(self, prefix: str, *labels: str) -> None:
        entries = [{"id": label, "label": label} for label in labels]
        with self.page.expect_event(
            "requestfinished", lambda request: request.url.partition("?q=")[2].startswith(f"{prefix}&")
        ):
            self._routes[prefix].fulfill(json={"entries": entries, "is_complete": False})
        self.page.evaluate("() => new Promise((done) => setTimeout(done, 20))")  # what follows it has run


@pytest.fixture
def held(opened: Any) -> Held:
    return Held(opened(script=NO_ABORT))


@pytest.mark.slow
def test_an_answer_opens_no_list_that_was_closed_or_left_and_undoes_no_choice(held: Held) -> None:
    page = held.page
    field(page).focus()
    held.type("j")
    page.keyboard.press("Escape")
    held.answer("j", "Joe")
    expect(options(page)).to_have_count(0)

    held.type("e")
    page.keyboard.press("Tab")
    held.answer("je", "Jeff")
    expect(options(page)).to_have_count(0)

    field(page).focus()
    page.keyboard.press("End")
    held.type("n")
    held.answer("jen", "Jenny", "Jens")
    page.keyboard.type("n")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # what was known is chosen before the answer for "jenn" comes
    expect(field(page)).to_have_value("Jenny")
    assert chosen_id(page) == "Jenny"
    expect(options(page)).to_have_count(0)


def test_names_refused_for_haste_come_when_allowed(opened: Any) -> None:
    page = opened()
    stop_clock(page)
    page.route(
        "**/api/books/**", lambda route: route.fulfill(status=429, headers={"Retry-After": "7"}), times=1
    )
    asked = requests(page)
    field(page).focus()
    page.keyboard.type("je")
    with page.expect_response("**/api/books/**"):
        page.clock.run_for(200)
    page.evaluate(
        "() => fetch(location.href).then((answer) => answer.text())"
    )  # the page has seen the one before
    page.clock.run_for(6_900)
    assert asked == ["je"]

    page.clock.run_for(200)

    expect(options(page)).to_have_count(4)
    assert asked == ["je", "je"]


@pytest.mark.slow
def test_the_browser_finds_by_a_prefix_whom_the_server_finds(opened: Any) -> None:
    """Names in twelve scripts; and beginnings of words in them, as they are and otherwise written."""
    chosen, pairs = Random(10), []
    for _ in range(2_000):
        label, other = (chosen.choice(ANY_NAMES)(chosen) for _ in range(2))
        start = chosen.choice((0, 0, chosen.randrange(len(label))))
        typed = chosen.choice((label, label, other))[start:][: chosen.randint(1, 6)].strip()
        if chosen.random() < 0.2:
            typed = " ".join(word[: chosen.randint(1, 6)] for word in reversed(re.split("[ -]", label)))
        pairs.append([label, chosen.choice((str, str.upper, str.lower))(typed)])
    pairs += [
        ["\u1112\u1161\u11ab\u1100\u1173\u11af", "한"],
        ["한글", "\u1112\u1161\u11ab"],
        ["Straße", "STRASSE"],
        *([label, typed] for label, typed in OTHERWISE + NOT_OTHERWISE),
        *([label, chosen.choice(OTHERWISE)[1]] for label, _typed in OTHERWISE for _ in range(5)),
    ]
    pairs = [[label, typed] for label, typed in pairs if fold(typed)]

    found = opened().evaluate(FOUND, pairs)

    for (label, typed), answer in zip(pairs, found, strict=True):
        assert answer == is_found(spell(label), spell(typed)), (label, typed)
    assert 500 < sum(found) < len(pairs) - 500


# Its looks

HEBREW = "שרה"


def test_pages_meet_contrast_rules_in_light_and_dark(opened: Any, joe: User, book: AddressBook) -> None:
    """Closed; with more names than there is room for, one of them active; without any."""
    for number in range(20):
        book.add(f"Jeffrey {number}", id=f"more-{number}")
    RecentContacts(str(joe.pk)).touch("2", label="Jenny")
    page = opened(contacts=True, context={"viewport": {"width": 900, "height": 420}})
    assert_accessible(page)

    field(page).focus()
    page.keyboard.type("je")
    expect(options(page)).to_have_count(10)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert_accessible(page)

    field(page).fill("nobody")
    expect(page.locator(".complete-note")).to_be_visible()
    assert_accessible(page)


@pytest.mark.parametrize("dir", ["ltr", "rtl"])
def test_names_are_written_in_their_own_direction(opened: Any, book: AddressBook, dir: str) -> None:
    book.load([("8", HEBREW), ("10", f"{HEBREW} Smith")])
    page = opened(dir=dir)
    field(page).focus()
    page.keyboard.type("ש")
    expect(options(page)).to_have_text([HEBREW, f"{HEBREW} Smith"])
    expect(page.locator("mark")).to_have_text(["ש", "ש"])
    expect(page.locator(".complete-label").first).to_have_css("direction", "rtl")
    edge = "right" if dir == "rtl" else "left"
    edges = [
        page.locator(selector).first.evaluate("(node, edge) => node.getBoundingClientRect()[edge]", edge)
        for selector in ("complete-field", ".complete-popup")
    ]
    assert edges[0] == pytest.approx(edges[1], abs=1)


# In the demo's admin

OFFERED = ".complete-popup [role=option]"
#: Whether the middle of the element is in sight: nothing lies above it, and no box cuts it off.
IN_SIGHT = """(node) => {
    const { left, top, width, height } = node.getBoundingClientRect();
    return node.contains(document.elementFromPoint(left + width / 2, top + height / 2));
}"""


@pytest.mark.slow
def test_rows_of_the_admin_do_not_cut_the_names_off(window, admin, redis):
    for name in ("jack", "jeff", "jill", "joe", "june"):
        player(name)
    opened = window(admin)
    page = opened.open(reverse("admin:market_item_add"))
    page.locator("complete-field[data-live]").first.wait_for()
    options = page.locator(OFFERED)
    page.locator("#id_name").fill("Acorn")
    page.locator("#id_owner").click()
    page.keyboard.type("j")
    expect(options).to_have_text(["jack", "jeff", "jill", "joe", "june"])
    assert options.last.evaluate(IN_SIGHT)
    options.last.click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    assert str(Item.objects.get().owner) == "june"

    opened.open(reverse("admin:guilds_guild_add"))
    page.get_by_text("Add another Membership").click()
    page.locator("#id_memberships-0-player").click()
    page.keyboard.type("ji")
    expect(options).to_have_text(["jill"])
    assert options.last.evaluate(IN_SIGHT)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("[name=memberships-0-player-id]")).not_to_have_value("")
    assert page.locator("#memberships-0 .complete-popup").count() == 1
    assert opened.complaints == []
