"""The flash sale in a real browser: a number that falls while somebody looks, and the page without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect
from redis import Redis

from project.market import trading
from project.market.models import FlashSale
from tests.project.market.conftest import player

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = reverse("market:flash")
FITS = "() => document.documentElement.scrollWidth <= innerWidth"
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
    opened.page.clock.install()  # it goes on as it would, until the end
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
