"""Presence, typing and the search in a real browser, with two people in a chat."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from components.services.chat import Chat, Presence
from tests.browser.axe import assert_accessible
from tests.browser.test_chat_page import composer, said
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow
SAID = """() => {
    const region = document.querySelector(".chat-typing + [role=status]");
    window.said = [];
    new MutationObserver(() => window.said.push(region.textContent)).observe(region, { childList: true });
}"""


@pytest.fixture
def chat(served):
    return Chat.create(
        served.ids["joe"], members=[served.ids["jack"]], title="Keepers", text="Who has the Schlüssel?"
    )


def here(page):
    return page.locator(".chat-here")


def typing(page):
    return page.locator(".chat-typing")


def test_two_people_see_each_other_come_type_send_and_go(enter, served, chat):
    joe, jack = enter("joe"), enter("jack")
    jacks = jack.chat(f"/chat/{chat.id}/")
    assert eventually(lambda: Presence(chat.id).look(served.ids["joe"]).count == 1)
    page = joe.chat(f"/chat/{chat.id}/")
    expect(here(page)).to_have_text("Here now: jack")
    page.evaluate(SAID)

    composer(jacks).press_sequentially("I h")
    expect(typing(page)).to_have_text("jack is typing…")
    expect(typing(jacks)).to_be_empty()
    assert page.evaluate("() => window.said") == ["jack is typing…"]
    composer(jacks).press_sequentially("ave it")
    composer(jacks).press("Enter")
    expect(said(page)).to_have_text(["Who has the Schlüssel?", "I have it"])
    expect(typing(page)).to_be_empty()

    composer(jacks).press_sequentially("or not")
    expect(typing(page)).to_have_text("jack is typing…")
    assert page.evaluate("() => window.said") == ["jack is typing…", ""]  # not again so soon
    expect(typing(page)).to_be_empty()  # after six seconds without a key
    assert [each.text for each in chat.history(served.ids["joe"]).messages if not each.event] == [
        "Who has the Schlüssel?",
        "I have it",
    ]
    composer(page).press_sequentially("so")
    expect(here(jacks)).to_have_text("Here now: joe")  # whoever types wakes those who wait
    chat.kick(served.ids["jack"])
    expect(jacks.locator("#chat[data-view=list]")).to_have_count(1)
    assert Presence(chat.id).look(served.ids["joe"]).count == 0
    assert joe.complaints == []


def test_a_search_leads_to_the_message_with_scripts_and_without(enter, served, chat):
    for number in range(130):
        chat.configure(rate_limit=0)
        chat.send(served.ids["jack"], f"text {number}")
    for options in ({}, {"java_script_enabled": False}):
        joe = enter("joe", viewport={"width": 390, "height": 800}, **options)
        page = joe.open(f"/chat/{chat.id}/")
        if not options:
            page.locator("#chat[data-live]").wait_for()
        page.get_by_role("link", name="Search in this chat").click()
        field = page.get_by_role("searchbox", name="Words in the messages")
        field.fill("schlu")
        field.press("Enter")
        expect(page.locator(".chat-found mark")).to_have_text(["Schlüssel"])
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        if not options:
            assert_accessible(page)
        page.locator(".chat-found a").click()
        expect(page.locator(".chat-message.wanted .chat-text")).to_have_text("Who has the Schlüssel?")
        assert joe.complaints == []
