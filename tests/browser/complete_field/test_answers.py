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
    chosen_id,
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
