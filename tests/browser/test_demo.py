"""Pages of the demo in a real browser: its tour, the flash sale, and the badge of the chat."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect
from redis import Redis

from components.services.chat import Chat
from components.testing import redis_at, run_tasks
from project.market import trading
from project.market.models import FlashSale, Listing
from tests.browser.axe import assert_accessible
from tests.project.market.conftest import player
from tests.project.test_tour import listing, to_files, toured  # noqa: F401
from tests.support.chats import FREE
from tests.support.waiting import eventually

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
    page.get_by_role("button", name="Break the mail server").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The mail server is broken for 60 seconds.")).to_be_visible()
    page.get_by_role("button", name="jack").click()
    page.get_by_role("button", name="Buy Moonlit Dagger").click()
    with to_files(tmp_path / "mail"):
        run_tasks()
    page.get_by_role("button", name="admin", exact=True).click()
    page.goto(f"{live_server.url}/admin/components/overview/")

    page.get_by_role("row").filter(has_text="failed").get_by_role("link", name="Dead tasks").first.click()
    page.get_by_role("link", name=re.compile("^smtplib.SMTPServerDisconnected: The tour has broken")).click()
    page.get_by_role("link", name=re.compile("send_sold_email$")).click()
    expect(page.get_by_text(re.compile("mail server")).filter(visible=True).first).to_be_visible()
    page.get_by_role("link", name="Send again").click()
    page.get_by_role("button", name="Send again").click()

    expect(page.locator(".messagelist .success")).to_be_visible()


PAGE = reverse("market:flash")
#: What is put into the region that is read out, in turn.
LISTEN = """() => {
    const news = document.querySelector("[data-news]");
    window.said = [];
    new MutationObserver(() => window.said.push(news.textContent)).observe(news, { childList: true });
}"""


def first(page: Page) -> Any:
    return page.locator("[data-key]").first


def is_asked(page: Page) -> None:
    """Wait for an answer to the script."""
    with page.expect_response(lambda answer: "/flash/remaining" in answer.url):
        pass


@pytest.mark.slow
def test_the_number_falls_by_anothers_purchase(
    window: Callable[..., Any], client: Client, redis: Redis
) -> None:
    jack, jill = player("jack"), player("jill")
    client.force_login(jack.user)
    opened = window(client, viewport={"width": 360, "height": 700}, color_scheme="dark")
    opened.page.clock.install()  # it goes on as it would
    page = opened.open(PAGE)
    sale = FlashSale.objects.earliest("slug")
    FlashSale.objects.filter(pk=sale.pk).update(remaining=2)
    FlashSale.cached.invalidate(sale.slug)
    page.reload()
    page.evaluate(LISTEN)
    expect(first(page).locator("[data-remaining]")).to_have_text("2")

    is_asked(page)
    is_asked(page)
    assert page.evaluate("() => window.said") == []  # nothing has changed
    trading.buy_flash(jill, sale.slug, sale.price)
    expect(first(page).locator("[data-remaining]")).to_have_text("1")
    assert page.evaluate("() => window.said") == [f"{sale.name}: 1 left."]
    first(page).get_by_role("button").focus()
    trading.buy_flash(player("june"), sale.slug, sale.price)

    expect(first(page).get_by_text("Sold out")).to_be_focused()
    expect(first(page).get_by_role("button")).to_have_count(0)
    assert page.evaluate(FITS)
    assert opened.complaints == []

    page.route("**/flash/remaining*", lambda route: route.abort())
    page.clock.fast_forward(6_000)
    expect(page.get_by_text("the market does not answer")).to_be_visible()
    expect(first(page).locator("[data-remaining]")).to_have_text("?")  # and no number that grows old


@pytest.mark.slow
def test_the_badge_follows_messages_without_loading_the_page(
    window: Callable[..., Any], client: Client, redis: Redis
) -> None:
    jack = player("jack")
    me = str(jack.user_id)
    chat = Chat.create("jill", members=[me], text="hello", settings=FREE)
    client.force_login(jack.user)
    opened = window(client, viewport={"width": 390, "height": 700})
    opened.page.clock.install()
    page = opened.open(reverse("market:mine"))
    link = page.get_by_role("navigation", name="Market").get_by_role("link", name="Chat")
    expect(link).to_have_accessible_name("Chat 1 unread")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    chat.send("jill", "@jack", mentions=[me])
    page.clock.fast_forward(20_000)
    expect(link).to_have_accessible_name("Chat 2 unread, some mention you")
    with redis_at("unix:///nowhere/at-all"):
        page.clock.fast_forward(20_000)
        expect(link).to_have_accessible_name("Chat")
    chat.acknowledge(me, 3)
    page.clock.fast_forward(20_000)
    expect(link).to_have_accessible_name("Chat")

    page.context.clear_cookies()

    def is_gone() -> bool:
        page.clock.fast_forward(20_000)  # again, if the last answer had not come before the clock was set
        return page.locator(".components-chat-badge").count() == 0

    assert eventually(is_gone)
    assert opened.complaints == []
