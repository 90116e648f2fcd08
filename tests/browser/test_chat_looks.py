"""The chat page's looks: without scripts, on small screens, in light and dark, and for those who cannot see it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from components.services.chat import Chat, Inbox

TARGETS = """() => [...document.querySelectorAll("#chat :is(a, button, summary, input:not([type=hidden]), textarea)")]
    .filter((node) => node.checkVisibility() && !node.closest(".chat-text, .chat-picture, .chat-status"))
    .map((node) => [node.textContent.trim() || node.ariaLabel, node.getBoundingClientRect()])
    .filter(([, box]) => box.width < 43.9 || box.height < 43.9).map(([name]) => name)"""
WIDE, NARROW = {"width": 1200, "height": 760}, {"width": 320, "height": 640}


@pytest.fixture
def chat(served):
    """A chat with a bit of everything, among others."""
    joe, jack, jill = (served.ids[name] for name in ("joe", "jack", "jill"))
    for title in ("Alpha", "x" * 200):
        Chat.create(jack, members=[joe], title=title, text="y" * 500)
    chat = Chat.create(
        joe, members=[jack, jill], title="Lantern Keepers of the very long title that has no end"
    )
    chat.send(jack, "Who has the map? https://example.org/maps/" + "z" * 300)
    chat.send(joe, "Not me.")
    chat.add([served.ids["__proto__"]], by=joe)
    chat.kick(served.ids["__proto__"], by=joe)
    chat.send(jill, "@joe you had it " + "w" * 200, mentions=[joe])
    chat.send(jill, "", data={"url": "https://example.org/map.png"})
    chat.acknowledge(jack, chat.news(jack).last_seq)
    return chat


@pytest.fixture
def pages(chat):
    return [
        "/chat/",
        f"/chat/{chat.id}/",
        f"/chat/{chat.id}/members/",
        f"/chat/{chat.id}/search/?q=map",
        "/chat/-/new/",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_small_screen_shows_all_of_it_with_targets_for_thumbs(enter, pages, scripts):
    window = enter("joe", viewport=NARROW, has_touch=True, java_script_enabled=scripts)
    for path in pages:
        page = (window.chat if scripts else window.open)(path)
        widths = [page.locator(part).evaluate("node => node.scrollWidth") for part in ("html", ".chat-main")]

        assert max(widths) <= NARROW["width"], path
        assert page.evaluate(TARGETS) == [], path


@pytest.mark.slow
def test_all_works_without_scripts(enter, served):
    window = enter("joe", java_script_enabled=False)
    page = window.open("/chat/")
    page.get_by_role("link", name="New chat").first.click()
    page.get_by_label("With whom").fill("jack, jill")
    page.get_by_label("First message").fill("one")
    page.get_by_role("button", name="Start the chat").click()
    expect(page.get_by_role("heading", level=2)).to_have_text("jack, jill")
    page.get_by_role("textbox", name="Message to").fill("two")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".chat-text")).to_have_text(["one", "two"])
    page.get_by_role("link", name="Reply to the message of joe").first.click()
    page.get_by_role("textbox", name="Message to").fill("three")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("a.chat-quote")).to_have_text("joe one")
    page.locator("a.chat-quote").click()
    expect(page.locator(".chat-message.wanted .chat-text")).to_have_text("one")
    page.get_by_role("link", name=re.compile("members")).click()
    page.get_by_text("Manage jill").click()
    page.get_by_role("button", name="Make moderator jill").click()
    expect(page.get_by_text("moderator", exact=True)).to_be_visible()

    jack = enter("jack", java_script_enabled=False).open("/chat/")
    jack.locator(".chat-items").get_by_role("link", name=re.compile("3 unread$")).click()
    expect(jack.locator(".chat-divider + .chat-message .chat-text")).to_have_text("one")
    jack.get_by_role("button", name="Mark as read").click()
    expect(jack.locator(".chat-divider, .chat-badge")).to_have_count(0)
    jack.get_by_role("link", name=re.compile("members")).click()
    jack.get_by_text("Leave the chat").click()
    jack.get_by_role("button", name="Leave").click()

    expect(jack.get_by_text("No chats yet.")).to_be_visible()
    assert Inbox(served.ids["jack"]).chats() == []
    assert window.complaints == []
