"""What the field asks for and when; and what it does with answers that are late, out of order, refused or missing."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from components.services.autocomplete.folding import fold, is_found, spell
from tests.browser.clock import stop_clock
from tests.browser.complete_field.parts import (
    active,
    chosen_id,
    compose,
    debugger,
    field,
    options,
    requests,
)
from tests.support.names import NAMES, NOT_OTHERWISE, OTHERWISE

#: As in a browser that has none: an answer that is overtaken comes nevertheless.
NO_ABORT = "AbortController.prototype.abort = () => {};"
#: Whether the browser finds a name by what is typed, of each pair.
FOUND = """async (pairs) => {
    const { find } = await import("/static/components/autocomplete/matching.js");
    return pairs.map(([label, typed]) => Boolean(find(label, typed)));
}"""
#: What of names is marked: of each pair.
MARKED = """async (pairs) => {
    const { find } = await import("/static/components/autocomplete/matching.js");
    return pairs.map(([label, typed]) => find(label, typed).places.map(({ start, end }) => label.slice(start, end)));
}"""
#: Whether a key that an input method is about to handle may do what it does.
IME_KEY = """(node, key) => node.dispatchEvent(
    new KeyboardEvent("keydown", { key, isComposing: true, bubbles: true, cancelable: true })
)"""


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


def refuse_next(page: Page, status: int | None) -> None:
    """With this status, or by no answer at all."""
    page.route(
        re.compile(r"\?q="),
        lambda route: route.fulfill(status=status) if status else route.abort(),
        times=1,
    )


@pytest.fixture
def held(opened: Any) -> Held:
    return Held(opened(script=NO_ABORT))


@pytest.mark.slow
def test_typing_on_asks_nobody_where_all_is_known(opened: Any) -> None:
    page = opened()
    asked = requests(page)
    field(page).focus()
    page.keyboard.type("j")
    expect(options(page)).to_have_count(4)

    page.keyboard.type("en")

    expect(options(page)).to_have_text(["Jenny", "Ann Jensen"])
    assert asked == ["j"]


def test_typing_on_after_a_hyphen_alone_asks_again(opened: Any) -> None:
    """A hyphen finds what begins with one; before a word it does not count."""
    page = opened()
    asked = requests(page)
    field(page).focus()
    with page.expect_event("requestfinished", lambda request: "?q=-&" in request.url):
        page.keyboard.type("-")
    expect(options(page)).to_have_count(0)

    page.keyboard.type("jen")

    expect(options(page)).to_have_text(["Jenny", "Ann Jensen"])
    assert asked[0] == "-"
    assert len(asked) > 1


@pytest.mark.slow
def test_an_answer_that_is_overtaken_is_dropped_by_its_number_alone(held: Held) -> None:
    """All of them arrive: none is aborted. What is offered is always what fits the text that is in the field."""
    page = held.page
    field(page).focus()
    for text in ("j", "e", "n"):
        held.type(text)

    held.answer("je", "Jeff")
    expect(options(page)).to_have_count(0)
    held.answer("jen", "Jenny")
    expect(options(page)).to_have_text(["Jenny"])
    held.answer("j", "Joe")

    expect(options(page)).to_have_text(["Jenny"])
    expect(field(page)).to_have_attribute("aria-expanded", "true")


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


def test_the_active_name_stays_so_when_an_answer_brings_more(held: Held) -> None:
    page = held.page
    field(page).focus()
    held.type("j")
    held.answer("j", "Jack", "Jeff", "Jenny")
    held.type("e")
    expect(options(page)).to_have_text(["Jeff", "Jenny"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")

    held.answer("je", "Jean", "Jeff", "Jenny")

    expect(active(page)).to_have_text("Jenny")
    assert field(page).get_attribute("aria-activedescendant") == active(page).get_attribute("id")


@pytest.mark.slow
def test_an_overtaken_request_is_given_up(opened: Any) -> None:
    page = opened()
    page.route("**/api/books/**", lambda route: None if "q=j&" in route.request.url else route.fallback())
    field(page).focus()
    with page.expect_request(re.compile(r"q=j&")):
        page.keyboard.type("j")

    with page.expect_event("requestfailed") as failed:
        page.keyboard.type("en")

    assert "q=j&" in failed.value.url
    expect(options(page)).to_have_text(["Jenny", "Ann Jensen"])


@pytest.mark.slow
def test_an_unfinished_composition_asks_for_nothing_and_keeps_its_keys(opened: Any) -> None:
    page = opened()
    field(page).focus()
    page.keyboard.type("je")
    expect(options(page)).to_have_count(4)
    page.keyboard.press("ArrowDown")
    asked = requests(page)
    method = debugger(page)

    for text in ("l", "li", "李", "li"):
        compose(method, text)
        page.keyboard.press("ArrowDown")
        assert field(page).evaluate(IME_KEY, "Enter")  # is left to the input method
        expect(active(page)).to_have_text("Jeff")
    assert asked == []
    compose(method, "")  # given up
    expect(field(page)).to_have_value("je")
    field(page).fill("")
    compose(method, "li")
    method.send("Input.insertText", {"text": "李"})

    expect(options(page)).to_have_text(["李小龙"])
    assert asked == ["%E6%9D%8E"]
    assert chosen_id(page) == ""


def test_the_keyboard_of_a_touch_screen_composes_all_and_gets_names_meanwhile(opened: Any) -> None:
    page = opened(context={"has_touch": True, "is_mobile": True, "viewport": {"width": 360, "height": 640}})
    field(page).tap()
    method = debugger(page)
    for text in ("j", "je", "jen"):
        compose(method, text)

    expect(options(page)).to_have_text(["Jenny", "Ann Jensen"])
    options(page).first.tap()
    field(page).dispatch_event("compositionend")  # as some browsers tell that the choice has ended it

    expect(field(page)).to_have_value("Jenny")
    assert chosen_id(page) == "2"
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
def test_where_no_answer_comes_the_field_is_an_input(opened: Any) -> None:
    page = opened()
    away = "Names cannot be looked up now. You can type the whole name."
    field(page).focus()
    for text, status, says in (("j", None, away), ("e", 503, away), ("f", 404, "No names found.")):
        refuse_next(page, status)
        page.keyboard.type(text)

        expect(page.locator(".complete-note")).to_have_text(says)
        expect(field(page)).to_have_attribute("aria-expanded", "false")
        page.keyboard.press("Escape")
        expect(page.locator(".complete-note")).to_be_hidden()
    with page.expect_navigation(url=re.compile(r"to=jef&to-id=$")):
        page.keyboard.press("Enter")


def test_typed_text_is_marked_wherever_it_stands_in_the_name(opened: Any) -> None:
    marked = {
        ("Ann Smith", "smith a"): ["A", "Smith"],
        ("Jean-Paul Smith", "jeanpa"): ["Jean-Pa"],
        ("Tim O\u2019Neil", "oneil"): ["O\u2019Neil"],
        ("An❤na", "anna"): ["An❤na"],
        ("❤ Ann", "ann ❤"): ["❤", "Ann"],
        ("St. John", "st john"): ["St. John"],
        ("Þór", "th"): ["Þ"],
        ("한국", "하"): ["한"],
    }

    found = opened().evaluate(MARKED, [list(pair) for pair in marked])

    assert dict(zip(marked, found, strict=True)) == marked


@pytest.mark.slow
def test_the_browser_finds_by_a_prefix_whom_the_server_finds(opened: Any) -> None:
    """Names in twelve scripts; and beginnings of words in them, as they are and otherwise written."""
    chosen, pairs = Random(10), []
    for _ in range(2_000):
        label, other = (chosen.choice(NAMES)(chosen) for _ in range(2))
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
