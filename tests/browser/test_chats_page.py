"""The Chats page in a real browser: policy, keyboard, no scripts, refresh, colours, small screens."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from components.services.chat import Chat, ChatReader
from tests.browser.clock import stop_clock
from tests.browser.looks import assert_good_looks
from tests.browser.test_queues_page import press_tab_until, refreshed
from tests.chat.admin.conversations import guild
from tests.locks.admin.test_locks_page import AWKWARD

ROOT = "/admin/components/chat/"
PAGES = {
    "chats": ROOT,
    "chat found by nobody": f"{ROOT}?q=nowhere",
    "chat": f"{ROOT}chat/?chat=guild:7",
    "odd people": f"{ROOT}chat/?chat=odd",
    "closed": f"{ROOT}chat/?chat=closed",
    "messages": f"{ROOT}messages/?chat=guild:7",
    "odd messages": f"{ROOT}messages/?chat=odd",
    "close": f"{ROOT}close/?chat=guild:7",
    "mute": f"{ROOT}mute/?chat=guild:7&user=jack",
    "mute an odd one": f"{ROOT}mute/?chat=odd&{urlencode({'user': max(AWKWARD, key=len)})}",
    "trim": f"{ROOT}trim/?chat=guild:7",
    "kick": f"{ROOT}kick/?chat=guild:7&user=jack",
    "nobody to kick": f"{ROOT}kick/?chat=guild:7&user=jenny",
    "delete message": f"{ROOT}delete-message/?chat=guild:7&seq={{seq}}",
    "missing": f"{ROOT}chat/?chat=gone",
    "history": f"{ROOT}guild%3A7/history/",
}


@pytest.fixture
def pages(redis):
    """The address of each page, of chats of every kind."""
    chat = guild()
    chat.mute("jill", seconds=600)
    chat.block("jenny")
    guild("closed").close()
    odd = Chat.create("joe", members=AWKWARD, id="odd", title="<b>" + "x" * 60)
    for name in AWKWARD:
        odd.send(name, "x" * 300, data={name: "y" * 300})
    odd.send("joe", "two\nlines \u202eturned")
    seq = chat.send("jack", "one more").seq
    return {name: path.format(seq=seq) for name, path in PAGES.items()}


def said(page):
    return page.locator(".messagelist")


@pytest.mark.slow
def test_all_pages_keep_the_policy_have_contrast_fit_and_say_what_is_what(window, admin, pages):
    assert_good_looks(window(admin), pages)


@pytest.mark.slow
def test_a_member_is_kicked_with_the_keyboard_alone_and_the_focus_is_always_seen(window, admin, redis):
    guild()
    page = window(admin).open(ROOT)

    for name in ("Lantern Keepers", "Remove from the chat: jack", "Remove from the chat"):
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")

    expect(said(page)).to_contain_text("Removed jack from the chat")


@pytest.mark.slow
def test_all_works_without_scripts(window, admin, redis):
    guild()
    page = window(admin, java_script_enabled=False).open(ROOT)

    page.get_by_role("link", name="Lantern Keepers").click()
    page.get_by_role("link", name="Mute: jack").click()
    page.get_by_label("Duration").select_option("an hour")
    page.get_by_role("button", name="Mute").click()
    expect(said(page)).to_contain_text("for 1 h.")
    page.get_by_role("link", name="Read the messages").click()
    page.get_by_role("row", name="look").get_by_role("link", name="Delete the message").click()
    page.get_by_role("button", name="Delete the message").click()
    expect(said(page)).to_contain_text("Deleted message")
    page.get_by_role("link", name="Chat Lantern Keepers").click()
    page.get_by_role("link", name="Delete old messages…").click()
    page.get_by_label("Number of the first message to keep").fill("1000")
    page.get_by_role("button", name="Delete old messages").click()
    expect(said(page)).to_contain_text("old messages and events of the chat")

    assert list(ChatReader().messages("guild:7").messages) == []


def test_the_figures_are_renewed_every_five_seconds(window, admin, redis):
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(ROOT)
    expect(page.locator("#live tbody a")).to_have_count(0)

    guild()
    refreshed(page)

    expect(page.locator("#live tbody a")).to_have_count(1)
