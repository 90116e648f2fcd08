"""The tour of the demo in a real browser: log in by one click, buy, and see what it did without reloading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect
from redis import Redis

from components.testing import run_tasks
from project.market.models import Listing
from tests.browser.axe import assert_accessible
from tests.project.tour.conftest import listing, to_files, toured  # noqa: F401

pytestmark = pytest.mark.django_db(transaction=True)

FITS = "() => document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture
def page(window: Callable[..., Any], redis: Redis, listing: Listing) -> Iterator[Page]:  # noqa: F811
    opened = window()
    yield opened.page
    assert opened.complaints == []


def buy(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_role("button", name="jack").click()
    page.get_by_role("button", name="Buy Moonlit Dagger").click()


def test_a_newcomer_buys_and_watches_the_mail_go_out(page: Page, live_server: Any, tmp_path: Path) -> None:
    buy(page, live_server.url)
    tour = page.get_by_role("complementary", name="Tour of this demo")
    expect(tour.get_by_text("It waits for a worker.")).to_be_visible()
    expect(tour.get_by_text("1 of 10")).to_be_visible()

    with to_files(tmp_path / "mail"):
        run_tasks()

    expect(tour.get_by_role("link", name="A mail went to joe@fakegame.example")).to_be_visible()


def test_the_keyboard_reaches_the_buttons_beside_the_page(page: Page, live_server: Any) -> None:
    page.goto(live_server.url)
    page.get_by_role("button", name="Break the mail server").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_text("The mail server is broken for 60 seconds.")).to_be_visible()


def test_it_fits_every_width(page: Page, live_server: Any) -> None:
    buy(page, live_server.url)
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.wait_for_load_state()  # its style sheets come one by one
    for width, lines in ((1440, 1), (1280, 1), (1200, 1), (1024, 2), (768, 2), (390, 3)):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.get_by_role("banner").bounding_box()["height"] < 30 + 45 * lines
        assert page.evaluate(FITS)
        if width in (1440, 390):
            assert_accessible(page)

    page.goto(live_server.url + reverse("components:chats"))
    for width in (390, 768, 1024, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        chat = page.locator(".chat").bounding_box()
        tour = page.get_by_role("complementary", name="Tour of this demo").bounding_box()
        assert chat["height"] > 400
        assert tour["x"] >= chat["x"] + chat["width"] or tour["y"] >= chat["y"] + chat["height"]
        assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")


@pytest.mark.slow
def test_a_newcomer_finds_why_a_task_died_and_sends_it_again(
    page: Page, live_server: Any, tmp_path: Path
) -> None:
    page.goto(live_server.url)
    page.get_by_role("button", name="Break the mail server").click()
    page.get_by_role("button", name="jack").click()
    page.get_by_role("button", name="Buy Moonlit Dagger").click()
    with to_files(tmp_path / "mail"):
        run_tasks()
    page.get_by_role("button", name="admin", exact=True).click()
    page.goto(f"{live_server.url}/admin/components/overview/")

    page.get_by_role("listitem").filter(has_text="failed").get_by_role(
        "link", name="Dead tasks"
    ).first.click()
    page.get_by_role("link", name=re.compile("^smtplib.SMTPServerDisconnected: The tour has broken")).click()
    page.get_by_role("link", name=re.compile("send_sold_email$")).click()
    expect(page.get_by_text(re.compile("mail server")).filter(visible=True).first).to_be_visible()
    page.get_by_role("link", name="Send again").click()
    page.get_by_role("button", name="Send again").click()

    expect(page.locator(".messagelist .success")).to_be_visible()
