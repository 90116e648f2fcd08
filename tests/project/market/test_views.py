"""The market's pages, for visitors and for players, with Redis and without."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from redis import Redis

from components.services.locks import lock
from project.market import trading
from project.market.models import Item, Listing, Player, Sale
from tests.project.market.conftest import ends_in

BROWSE = reverse("market:browse")
OFFER = reverse("market:offer")
MINE = reverse("market:mine")
PREFERENCES = reverse("market:preferences")
LOGIN = reverse("market:login")


def buy_url(listing: Listing) -> str:
    return reverse("market:buy", args=[listing.pk])


def as_player(who: Player) -> Client:
    client = Client()
    client.force_login(who.user)
    return client


def text(response: HttpResponse) -> str:
    """The words of a page, as a reader sees them."""
    words = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"\s+", " ", words).replace("&#x27;", "'")


# --- who may see what


def test_visitors_may_look_around_and_are_asked_to_log_in_to_buy(client: Client, listing: Listing) -> None:
    page = client.get(BROWSE)

    assert "Moonlit Dagger" in text(page)
    assert "Log in to buy" in text(page)
    assert buy_url(listing) not in page.content.decode()


@pytest.mark.parametrize("url", [OFFER, MINE, PREFERENCES])
def test_pages_of_a_player_ask_visitors_to_log_in(client: Client, db: None, url: str) -> None:
    assert client.get(url).url == f"{LOGIN}?next={url}"


@pytest.mark.parametrize("url", [BROWSE, OFFER, MINE, PREFERENCES])
def test_every_page_opens_for_a_player(joe: Player, url: str) -> None:
    assert as_player(joe).get(url).status_code == 200


# --- buying


# --- looking around


@pytest.fixture
def acorn(jill: Player) -> Listing:
    """Jill's acorn, for 20 gold, listed after joe's dagger."""
    item = Item.objects.create(name="Glass Acorn", kind=Item.Kind.CURIO, owner=jill)
    return Listing.objects.create(item=item, seller=jill, price=20)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["Glass Acorn", "Moonlit Dagger"]),
        ("q=dag", ["Moonlit Dagger"]),
        ("q=ACORN", ["Glass Acorn"]),
        ("kind=weapon", ["Moonlit Dagger"]),
        ("affordable=on", ["Glass Acorn"]),
        ("order=cheap", ["Glass Acorn", "Moonlit Dagger"]),
        ("order=dear", ["Moonlit Dagger", "Glass Acorn"]),
        ("order=ending", ["Moonlit Dagger", "Glass Acorn"]),
        ("order=nonsense&kind=nonsense&page=nonsense", ["Glass Acorn", "Moonlit Dagger"]),
        ("q=nothing+like+it", []),
    ],
)
def test_search_filter_and_order(
    listing: Listing, acorn: Listing, jack: Player, query: str, shown: list[str]
) -> None:
    ends_in(listing, hours=1)
    Player.objects.filter(pk=jack.pk).update(funds=50)

    page = as_player(jack).get(f"{BROWSE}?{query}")

    assert re.findall(r"<h2>(.+)</h2>", page.content.decode()) == shown


def test_a_name_cannot_bring_markup(client: Client, listing: Listing) -> None:
    Item.objects.update(name="<script>alert(1)</script>")

    assert "<script>" not in client.get(BROWSE).content.decode()


# --- selling


# --- my things


# --- while Redis is away


def test_without_redis_a_purchase_says_plainly_that_nothing_was_bought(
    listing: Listing, jack: Player
) -> None:
    page = as_player(jack).post(buy_url(listing), {"price": 100})

    assert page.status_code == 503
    assert page["Retry-After"]
    assert "Nothing was bought, and your gold is untouched." in text(page)
    assert "1,000 gold" in text(page)


# --- while others trade the same thing


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trading, "PATIENCE", 0.01)


def test_a_purchase_while_somebody_else_buys_offers_to_try_again(
    redis: Redis, listing: Listing, jack: Player, impatient: None
) -> None:
    with lock(f"item:{listing.item_id}", timeout=60):
        page = as_player(jack).post(buy_url(listing), {"price": 100, "next": "/?q=moon&kind="})

    assert page.status_code == 409
    assert "Somebody else is buying or changing Moonlit Dagger right now." in text(page)
    assert "Nothing was bought, and your gold is untouched." in text(page)
    assert not Sale.objects.exists()
    form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.content.decode()))
    assert form.pop("csrfmiddlewaretoken", "")
    again = {name: unescape(value) for name, value in form.items()}
    assert again == {"price": "100", "next": "/?q=moon&kind="}
    assert f'action="{buy_url(listing)}"' in page.content.decode()
    assert as_player(jack).post(buy_url(listing), again).url == "/?q=moon&kind="
    assert Sale.objects.get().buyer == jack


# --- what every page owes to its readers


def test_no_page_needs_inline_code_or_style(redis: Redis, listing: Listing, jack: Player) -> None:
    for url in (BROWSE, OFFER, MINE, PREFERENCES):
        page = as_player(jack).get(url)

        assert "default-src 'self'" in page["Content-Security-Policy"]
        assert not re.search(r"<style|\sstyle=|<script(?![^>]* src=)|\son\w+=", page.content.decode())
