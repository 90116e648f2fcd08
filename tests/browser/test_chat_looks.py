"""The chat page's looks: without scripts, on small screens, in light and dark, and for those who cannot see it."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from components.services.chat import Chat, Inbox
from tests.browser.axe import assert_accessible
from tests.browser.themes import measured

#: Of all texts in sight, how their colour stands out from what is behind them.
CONTRASTS = r"""() => {
    const rgb = (text) => {
        const numbers = text.match(/-?[\d.]+/g).map(Number);
        const scale = text.startsWith("color(srgb") ? 255 : 1;
        return numbers.map((number, index) => (index < 3 ? number * scale : number));
    };
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const background = (node) => {
        for (; node; node = node.parentElement) {
            const colour = rgb(getComputedStyle(node).backgroundColor);
            if (colour.length === 3 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const found = {};
    const walker = document.createTreeWalker(document.getElementById("chat"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const parent = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !parent.checkVisibility() || parent.closest(".chat-hidden")) continue;
        const [one, two] = [luminance(rgb(getComputedStyle(parent).color)), luminance(background(parent))];
        found[walker.currentNode.data.trim()] = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    }
    return found;
}"""
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
@pytest.mark.parametrize("colours", ["of the site", "its own"])
def test_text_has_the_contrast_of_wcag_aa(enter, pages, colours):
    window = enter("joe", viewport=WIDE)
    if colours == "its own":
        window.page.route("**/market.css", lambda route: route.fulfill(body="", content_type="text/css"))

    contrasts = {
        (path, *text): ratio
        for path in pages
        for text, ratio in measured(window.chat(path), CONTRASTS).items()
    }

    assert len(contrasts) > 120
    assert {where: ratio for where, ratio in contrasts.items() if ratio < 4.5} == {}


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_small_screen_shows_all_of_it_with_targets_for_thumbs(enter, pages, scripts):
    window = enter("joe", viewport=NARROW, has_touch=True, java_script_enabled=scripts)
    for path in pages:
        page = (window.chat if scripts else window.open)(path)
        widths = [page.locator(part).evaluate("node => node.scrollWidth") for part in ("html", ".chat-main")]

        assert max(widths) <= NARROW["width"], path
        assert page.evaluate(TARGETS) == [], path


def test_a_small_screen_shows_one_thing_at_a_time(enter, chat):
    page = enter("joe", viewport=NARROW).chat("/chat/")
    expect(page.locator(".chat-main")).to_be_hidden()

    page.get_by_role("link", name=re.compile("Lantern Keepers")).click()
    expect(page.get_by_role("navigation", name="Chats")).to_be_hidden()
    expect(page.get_by_role("banner")).to_be_hidden()
    page.get_by_role("link", name="All chats").click()

    expect(page.get_by_role("link", name=re.compile("Lantern Keepers"))).to_be_focused()


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


@pytest.mark.slow
def test_the_structure_says_what_is_what(enter, pages):
    window = enter("joe", viewport=WIDE)
    for path in pages:
        page = window.chat(path)
        levels = page.eval_on_selector_all(
            "main :is(h1, h2, h3)", "nodes => nodes.map(n => Number(n.tagName[1]))"
        )
        unnamed = page.eval_on_selector_all(
            "main :is(a, button, summary, input:not([type=hidden]), textarea, [role=region], nav, section)",
            """nodes => nodes.filter(n => !(n.ariaLabel || n.textContent.trim() || n.labels?.length
                || document.getElementById(n.getAttribute("aria-labelledby")))).map(n => n.outerHTML)""",
        )
        identified = page.eval_on_selector_all("[id]", "nodes => nodes.map(n => n.id)")

        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert unnamed == []
        assert len(identified) == len(set(identified))
        assert_accessible(page)
    assert window.complaints == []


@pytest.mark.slow
def test_the_policy_allows_nothing_that_is_not_from_here(enter, pages):
    window = enter("joe")
    for path in pages:
        policy = window.page.goto(window.base + path).headers["content-security-policy"]

        assert "default-src 'self'" in policy
        assert "unsafe" not in policy


def test_reduced_motion_is_respected(enter, chat):
    page = enter("joe", reduced_motion="reduce").chat(f"/chat/{chat.id}/")
    page.get_by_role("textbox", name="Message to").fill("calm")
    page.keyboard.press("Enter")
    expect(page.locator(".chat-live .chat-message")).to_have_css("animation-name", "none")


@pytest.mark.slow
def test_while_the_messages_are_on_their_way_each_link_has_a_name(enter, served, chat):
    opened, held = enter("joe"), []
    page = opened.page
    page.route(f"**/chats/{chat.id}/messages?*", lambda route: held.append(route))

    with page.expect_request(f"**/chats/{chat.id}/messages?*"):
        page.goto(f"{served.url}/chat/{chat.id}/")
    link = page.locator(".chat-bar a[href$='/members/']")
    expect(link).to_have_accessible_name("Members")
    assert_accessible(page)

    held[0].continue_()
    expect(link).to_have_accessible_name("3 members")
