"""The Mailboxes page and the demo's mail in a real browser: policy, no scripts, colours, small screens."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from components.services.mailboxes import Mailbox
from project.market import demo
from tests.browser.clock import stop_clock
from tests.browser.looks import assert_good_looks
from tests.browser.test_queues_page import press_tab_until, refreshed
from tests.locks.admin.test_locks_page import AWKWARD

ROOT = "/admin/components/mailbox/"
ADMIN_PAGES = {
    "mailboxes": ROOT,
    "found nobody": f"{ROOT}?q=nobody",
    "mailbox": f"{ROOT}mailbox/?mailbox=jack",
    "messages": f"{ROOT}messages/?mailbox=jack",
    "clear": f"{ROOT}clear/?mailbox=jack",
    "unblock": f"{ROOT}unblock/?mailbox=jack&sender=joe",
    "missing": f"{ROOT}mailbox/?mailbox=gone",
}
PLAYER_PAGES = {"guild": "/guild/", "mail": "/mail/"}


@pytest.fixture
def jack(redis, transactional_db):
    demo.load()
    return player("jack")


def player(name):
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


@pytest.fixture
def mailboxes(redis):
    """A full one of many kinds of messages, and some of odd names."""
    mailbox = Mailbox("jack", limit=5, when_full="drop_oldest")
    for text in ("one", "<script>alert(1)</script>", "two\nlines", "x" * 500, "turned \u202eround", "last"):
        mailbox.push("jill", text)
    mailbox.push("jill", data={"picture": "https://example.com/a.png"})
    mailbox.pull(2)
    mailbox.block("joe")
    for name in AWKWARD:
        Mailbox(name).push("jill", "hello")


@pytest.mark.slow
def test_all_pages_keep_the_policy_have_contrast_fit_and_say_what_is_what(window, admin, jack, mailboxes):
    assert_good_looks(window(admin), ADMIN_PAGES)
    assert_good_looks(window(jack), PLAYER_PAGES, within="#main")


@pytest.mark.slow
def test_a_mailbox_is_cleared_with_the_keyboard_alone(window, admin, redis):
    Mailbox("jack").push("jill", "hello")
    page = window(admin).open(ROOT)

    for name in ("jack", "Empty the mailbox…", "Empty the mailbox"):
        press_tab_until(page, name)
        with page.expect_navigation():
            page.keyboard.press("Enter")

    expect(page.locator(".messagelist")).to_contain_text(
        "Emptied the mailbox of jack: 1 message was deleted."
    )
    assert Mailbox("jack").depth() == 0


def test_the_figures_are_renewed(window, admin, redis):
    opened = window(admin)
    stop_clock(opened.page)
    page = opened.open(ROOT)
    expect(page.locator("#live tbody a")).to_have_count(0)

    Mailbox("jack").push("jill", "hello")
    refreshed(page)

    expect(page.locator("#live tbody a")).to_have_count(1)


@pytest.mark.slow
def test_mail_is_written_and_read_without_scripts(window, jack):
    page = window(player("joe"), java_script_enabled=False).open("/guild/")
    page.get_by_role("link", name="Write to jack").click()
    page.get_by_label("Message").fill("Bring oil.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status")).to_contain_text("Sent to jack.")

    reading = window(jack, java_script_enabled=False).open("/mail/")
    expect(reading.get_by_text("Bring oil.")).to_be_visible()
    reading.get_by_role("button", name="Mark as read").click()
    expect(reading.get_by_text("You have no mail.")).to_be_visible()

    page.reload()
    expect(page.get_by_text("was read")).to_be_visible()
