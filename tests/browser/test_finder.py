"""The search of the control room in a real browser: Ctrl-K, the keyboard alone, names and roles, and no scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from components.services.mailboxes import Mailbox
from tests.browser.axe import assert_accessible
from tests.queues.admin import scene

ROOT = "/admin/components/queue/"


@pytest.fixture(autouse=True)
def _things(redis):
    scene.ready("mail")
    scene.ready("mailing lists")
    Mailbox("mailer").push("joe", "hello")


def test_ctrl_k_finds_and_enter_opens(window, admin):
    opened = window(admin)
    page = opened.open(ROOT)

    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name=re.compile("Name or id of a queue"))
    expect(box).to_be_focused()
    expect(page.get_by_role("option", name="Locks Page")).to_be_visible()
    box.press_sequentially("mail")
    expect(page.get_by_role("option", name="mailing lists Queue")).to_be_visible()
    first = page.get_by_role("dialog").get_by_role("option").first
    expect(first).to_have_attribute("aria-selected", "true")
    expect(box).to_have_attribute("aria-expanded", "true")

    wanted = page.get_by_role("option", name="mailing lists Queue")
    while wanted.get_attribute("aria-selected") != "true":
        box.press("ArrowDown")
    expect(box).to_have_attribute("aria-activedescendant", wanted.get_attribute("id"))
    box.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("Queue mailing lists")
    assert opened.complaints == []


@pytest.mark.slow
def test_the_dialog_says_what_it_finds_shuts_nobody_out_fits_and_gives_the_focus_back(window, admin):
    opened = window(admin)
    page = opened.open(ROOT)
    link = page.get_by_role("link", name="Find…")
    link.click()
    dialog = page.get_by_role("dialog", name="Find")
    expect(dialog.get_by_role("option").first).to_be_visible()
    before = dialog.bounding_box()

    dialog.get_by_role("combobox").fill("nowhere")
    expect(dialog.get_by_role("status")).to_have_text("Nothing that you may view contains this text.")
    expect(dialog.get_by_role("option")).to_have_count(0)
    assert dialog.bounding_box()["y"] == before["y"]  # nothing has moved

    dialog.get_by_role("combobox").fill("mail")
    expect(page.get_by_role("option", name="mailer Mailbox")).to_be_visible()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(link).to_be_focused()
    assert opened.complaints == []


def test_without_scripts_the_link_leads_to_a_page_that_finds(window, admin):
    page = window(admin, java_script_enabled=False).open(ROOT)

    page.get_by_role("link", name="Find…").click()
    page.get_by_role("searchbox", name="Name or id").fill("mailer")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("link", name="mailer").click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("mailer")
