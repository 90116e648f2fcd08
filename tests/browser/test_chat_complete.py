"""Names in the chat page, in a real browser: whom one writes to is offered, and "@" offers the members."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from components.services.autocomplete import RecentContacts
from components.services.chat import Chat
from tests.support.waiting import eventually

ANN, ANNA, ELODIE = "901", "902", "903"
NAMES = {ANN: "Ann", ANNA: "Ann Smith", ELODIE: "Élodie"}


@pytest.fixture
def chat(served):
    people = [served.ids["jack"], served.ids["jill"], *NAMES]
    return Chat.create(served.ids["joe"], members=people, title="Keepers", text="Who has the key?")


@pytest.fixture
def opened(enter, served, chat):
    """Joe's page of the chat, in which some have names that no user of this site has; it complains of nothing."""
    window = enter("joe")
    names = {**{id: name for name, id in served.ids.items()}, **NAMES}

    def named(route):
        told = route.fetch().json()
        members = [{**each, "name": names[each["id"]]} for each in told["members"]]
        route.fulfill(json={"members": members})

    window.page.route("**/members?*", named)
    window.chat(f"/chat/{chat.id}/")
    composer(window.page).focus()
    yield window
    assert window.complaints == []


def composer(page):
    return page.get_by_role("textbox", name="Message to")


def offered(page):
    """The names that are offered, the initials before them left out."""
    return page.locator("[role=option] .complete-label")


def active(page):
    return page.locator("[role=option][aria-selected=true] .complete-label")


def mentions(chat, user):
    return [message.mentions for message in chat.history(user).messages if message.sender == user]


@pytest.mark.slow
def test_a_member_is_mentioned_by_keys_alone(opened, served, chat):
    page = opened.page
    page.keyboard.type("hi @")
    expect(offered(page)).to_have_text(["Ann", "Ann Smith", "Élodie", "jack", "jill"])
    expect(active(page)).to_have_text("Ann")
    page.keyboard.type("el")
    expect(offered(page)).to_have_text(["Élodie"])
    expect(page.locator(".chat-composer mark")).to_have_text("Él")
    page.keyboard.press("Tab")
    expect(composer(page)).to_have_value("hi @Élodie ")
    expect(composer(page)).to_be_focused()

    page.keyboard.type("and @sm")
    expect(offered(page)).to_have_text(["Ann Smith"])
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    for _ in "@sm":
        page.keyboard.press("Backspace")
    page.keyboard.type("@ann s")
    expect(offered(page)).to_have_text(["Ann Smith"])
    page.keyboard.press("Enter")
    expect(composer(page)).to_have_value("hi @Élodie and @Ann Smith ")
    page.keyboard.press("Enter")

    expect(page.locator(".chat-message:not(.pending) .chat-text").last).to_have_text(
        "hi @Élodie and @Ann Smith"
    )
    joe = served.ids["joe"]
    assert mentions(chat, joe)[-1] == (ANNA, ELODIE)
    assert eventually(lambda: [each.id for each in RecentContacts(joe).list()] == [ANNA, ELODIE])


#: Keys that come faster than any answer: what is in the text area after each.
TYPED = """(node, texts) => {
    for (const text of texts) {
        node.value = text;
        node.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
}"""


@pytest.mark.slow
def test_members_of_a_large_chat_are_searched_when_typing_pauses(enter, served):
    large = Chat.create(served.ids["joe"], members=[f"p{number:03}" for number in range(220)], text="hi")
    page = enter("joe").chat(f"/chat/{large.id}/")
    asked, held = [], []
    page.on(
        "request", lambda request: "/members?" in request.url and asked.append(request.url.partition("?")[2])
    )
    composer(page).focus()
    composer(page).evaluate(TYPED, ["@", "@p", "@p2", "@p21"])
    expect(offered(page)).to_have_text([f"p21{digit}" for digit in range(8)])
    assert asked == ["limit=9&q=p21"]
    page.keyboard.type("9")
    expect(offered(page)).to_have_text(["p219"])
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".chat-message:not(.pending) mark")).to_have_text("@p219")
    assert mentions(large, served.ids["joe"])[-1] == ("p219",)

    page.route("**/members?*q=p0", lambda route: held.append(route))
    with page.expect_request("**/members?*q=p0"):
        page.keyboard.type("@p0")
    page.keyboard.press("Backspace")
    page.keyboard.type("1")
    expect(offered(page)).to_have_text([f"p10{digit}" for digit in range(8)])
    with page.expect_response("**/members?*q=p0"):
        held[0].fulfill(json={"members": [{"id": "p000", "name": "p000"}]})
    page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 50))")
    expect(offered(page)).to_have_text([f"p10{digit}" for digit in range(8)])
