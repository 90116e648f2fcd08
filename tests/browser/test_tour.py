"""The tour of the demo in a real browser: log in by one click, buy, and see what it did without reloading."""

from __future__ import annotations

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


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_all_can_use_it(page: Page, live_server: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    buy(page, live_server.url)

    assert page.evaluate(FITS)
    assert_accessible(page)


def test_the_keyboard_reaches_the_buttons_beside_the_page(page: Page, live_server: Any) -> None:
    page.goto(live_server.url)
    page.get_by_role("button", name="Break the mail server").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_text("The mail server is broken for 60 seconds.")).to_be_visible()


@pytest.mark.parametrize(("width", "lines"), [(1200, 1), (1280, 1), (1440, 1), (1024, 2), (768, 2), (390, 3)])
def test_the_header_is_as_low_as_the_width_allows(
    page: Page, live_server: Any, width: int, lines: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(live_server.url)
    page.get_by_role("button", name="jack").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.wait_for_load_state()  # its style sheets come one by one

    assert page.get_by_role("banner").bounding_box()["height"] < 30 + 45 * lines
    assert page.evaluate(FITS)


@pytest.mark.parametrize("width", [390, 768, 1024, 1280])
def test_a_chat_and_the_tour_do_not_cover_each_other(page: Page, live_server: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(live_server.url)
    page.get_by_role("button", name="jack").click()
    page.goto(live_server.url + reverse("components:chats"))

    chat = page.locator(".chat").bounding_box()
    tour = page.get_by_role("complementary", name="Tour of this demo").bounding_box()
    assert chat["height"] > 400
    assert tour["x"] >= chat["x"] + chat["width"] or tour["y"] >= chat["y"] + chat["height"]
    assert page.evaluate("() => document.documentElement.scrollHeight <= innerHeight")
