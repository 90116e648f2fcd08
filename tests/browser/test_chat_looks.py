"""The chat page without scripts; and what people write is shown as what it is: text."""

import re

import pytest
from playwright.sync_api import Page, expect

from components.services.chat import Chat, ChatSettings, Inbox
from components.services.chat.rich import plain, rich
from tests.browser.payloads import HOSTILE_NAMES, PAYLOADS

pytestmark = pytest.mark.slow


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


# Hostile texts, names and titles

#: Whatever on the page is not of the page's own making.
FOREIGN = r"""() => {
    const elements = "script iframe object embed img video audio style base meta math".split(" ");
    const isScript = ({ name, value }) => name.startsWith("on")
        || (["href", "src", "action", "formaction"].includes(name) && /^\s*(javascript|data|vbscript):/i.test(value));
    const nodes = [...document.querySelectorAll(".chat *")].filter(
        (node) => elements.includes(node.localName) || [...node.attributes].some(isScript));
    const links = [...document.querySelectorAll(".chat-text a, .chat-picture a")].filter(
        (link) => !["http:", "https:"].includes(link.protocol));
    return [...nodes, ...links].map((node) => node.outerHTML);
}"""
#: A title with other characters is refused.
TITLES = [payload for payload in PAYLOADS if payload.isprintable()]
OWNED = "() => typeof owned !== 'undefined'"


@pytest.fixture
def hostile(served):
    """All payloads as messages of people with such names, and as titles of chats."""
    joe, *others = (served.ids[name] for name in ("joe", *HOSTILE_NAMES))
    settings = ChatSettings(rate_limit=0, max_messages=1_000)
    for title in TITLES:
        Chat.create(joe, title=title, text=title)
    chat = Chat.create(joe, members=others, title=PAYLOADS[0], settings=settings)
    for number, text in enumerate(PAYLOADS):
        sender = others[number % len(others)]
        chat.send(sender, text, data={"url": text, "title": text}, mentions=[sender, joe])
    for name in HOSTILE_NAMES:
        chat.send(joe, f"@{name} {name}", mentions=others)
    return chat


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_text_from_people_is_inert(enter, hostile, scripts):
    window = enter("joe", java_script_enabled=scripts)
    dialogs = []
    window.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page = (window.chat if scripts else window.open)(f"/chat/{hostile.id}/")
    shown = page.locator(".chat-message .chat-text")
    written = [plain(rich(text)) for text in (*PAYLOADS, *(f"@{name} {name}" for name in HOSTILE_NAMES))]
    if scripts:
        page.locator(".chat-scroller").evaluate("node => { node.scrollTop = -node.scrollHeight; }")
        expect(shown).to_have_count(len(written))
        assert not page.evaluate(OWNED)
        assert page.evaluate(FOREIGN) == []

    assert shown.evaluate_all("nodes => nodes.map((node) => node.textContent)") == (
        written if scripts else written[-50:]
    )
    titles = _titles(page)
    while (more := page.locator(".chat-more-chats a")).count() and not scripts:
        more.click()
        titles += _titles(page)
    assert sorted(titles) == sorted([*TITLES, PAYLOADS[0]])
    assert set(page.locator(".chat-message:not(.mine) .chat-by b").all_text_contents()) == set(HOSTILE_NAMES)
    assert page.title().endswith(f"{PAYLOADS[0]} · Fake Game")
    assert dialogs == window.complaints == []


def test_names_lie_inert_among_members_and_where_they_are_mentioned(enter, hostile):
    window = enter("joe")
    page = window.open(f"/chat/{hostile.id}/members/")
    names = page.locator(".chat-member b").all_text_contents()
    assert sorted(names) == sorted(["joe", *HOSTILE_NAMES])
    assert page.evaluate(FOREIGN) == []

    page = window.chat(f"/chat/{hostile.id}/")
    page.get_by_role("textbox", name="Message to").press_sequentially("@<")
    expect(page.get_by_role("option")).to_have_accessible_name(HOSTILE_NAMES[0])
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")

    expect(page.locator(".chat-message").last.locator("mark")).to_have_text(f"@{HOSTILE_NAMES[0]}")
    assert not page.evaluate(OWNED)
    assert window.complaints == []


def _titles(page: Page) -> list[str]:
    return page.locator(".chat-item-title").evaluate_all("nodes => nodes.map((node) => node.textContent)")
