"""The market's pages, for visitors and for players, with Redis and without."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from redis import Redis

from components.services.locks import lock
from project.market import trading
from project.market.models import Item, Listing, Player, Sale
from tests.project.market.conftest import ends_in, opens_in, player

BROWSE = reverse("market:browse")
OFFER = reverse("market:offer")
MINE = reverse("market:mine")
PREFERENCES = reverse("market:preferences")
LOGIN = reverse("market:login")


def buy_url(listing: Listing) -> str:
    return reverse("market:buy", args=[listing.pk])


def withdraw_url(listing: Listing) -> str:
    return reverse("market:withdraw", args=[listing.pk])


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


@pytest.mark.parametrize("url_of", [buy_url, withdraw_url])
def test_views_that_change_something_take_post_only(
    listing: Listing, jack: Player, url_of: Callable[[Listing], str]
) -> None:
    assert as_player(jack).get(url_of(listing)).status_code == 405


@pytest.mark.parametrize("url_of", [buy_url, withdraw_url])
def test_a_visitor_who_posts_is_sent_to_log_in_and_then_to_the_market(
    client: Client, listing: Listing, url_of: Callable[[Listing], str]
) -> None:
    response = client.post(url_of(listing), {"price": 100})

    assert response.url == f"{LOGIN}?next={BROWSE}"
    assert not Sale.objects.exists()


def test_posting_needs_the_csrf_token(listing: Listing, jack: Player) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(jack.user)

    assert client.post(buy_url(listing), {"price": 100}).status_code == 403


def test_a_user_becomes_a_player_at_the_first_visit(client: Client, db: None) -> None:
    user = User.objects.create(username="newcomer")
    client.force_login(user)

    page = client.get(BROWSE)

    assert user.player.funds == Player.STARTING_FUNDS
    assert "1,000 gold" in text(page)


def test_log_in_and_out(client: Client, joe: Player) -> None:
    joe.user.set_password("moon")
    joe.user.save()

    entered = client.post(LOGIN, {"username": "joe", "password": "moon"})
    left = client.post(reverse("market:logout"))

    assert entered.url == left.url == BROWSE
    assert "Log in" in text(client.get(BROWSE))


# --- buying


def test_buying_says_what_one_got_for_how_much(redis: Redis, listing: Listing, jack: Player) -> None:
    page = as_player(jack).post(buy_url(listing), {"price": 100}, follow=True)

    assert "Moonlit Dagger is yours, for 100 gold." in text(page)
    assert "900 gold" in text(page)


def test_after_buying_one_is_back_where_one_searched(redis: Redis, listing: Listing, jack: Player) -> None:
    response = as_player(jack).post(buy_url(listing), {"price": 100, "next": "/?q=moon"})

    assert response.url == "/?q=moon"


def test_no_purchase_leads_to_another_site(redis: Redis, listing: Listing, jack: Player) -> None:
    response = as_player(jack).post(buy_url(listing), {"price": 100, "next": "https://evil.example/"})

    assert response.url == BROWSE


def test_a_changed_price_is_told_and_nothing_bought(redis: Redis, listing: Listing, jack: Player) -> None:
    Listing.objects.update(price=5_000)

    page = as_player(jack).post(buy_url(listing), {"price": 100}, follow=True)

    assert "The price of Moonlit Dagger is now 5,000 gold, not 100. Nothing was bought." in text(page)


def test_buying_what_is_gone_is_reported(redis: Redis, listing: Listing, jack: Player, jill: Player) -> None:
    as_player(jill).post(buy_url(listing), {"price": 100})

    page = as_player(jack).post(buy_url(listing), {"price": 100}, follow=True)

    assert "Moonlit Dagger is no longer for sale. Nothing was bought." in text(page)


@pytest.mark.parametrize("price", ["", "cheap", "1e2"])
def test_a_purchase_without_a_price_is_refused(listing: Listing, jack: Player, price: str) -> None:
    page = as_player(jack).post(buy_url(listing), {"price": price}, follow=True)

    assert "Nothing was bought." in text(page)
    assert not Sale.objects.exists()


def test_the_button_carries_the_price_that_is_shown(listing: Listing, jack: Player) -> None:
    Listing.objects.update(price=1_000)

    page = as_player(jack).get(BROWSE).content.decode()

    assert 'name="price" value="1000"' in page
    assert "Moonlit Dagger for 1,000 gold" in page


def test_items_that_cost_too_much_have_no_button(listing: Listing, jack: Player) -> None:
    Listing.objects.update(price=1_001)

    page = as_player(jack).get(BROWSE)

    assert "Costs more than you have" in text(page)
    assert buy_url(listing) not in page.content.decode()


def test_ones_own_listing_has_no_button(listing: Listing) -> None:
    page = as_player(listing.seller).get(BROWSE)

    assert "Yours" in text(page)
    assert buy_url(listing) not in page.content.decode()


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


def test_listings_not_open_yet_or_over_are_hidden(listing: Listing, acorn: Listing, client: Client) -> None:
    opens_in(listing, seconds=30)
    ends_in(acorn, seconds=-1)

    assert "Nothing is for sale yet." in text(client.get(BROWSE))


def test_many_listings_come_page_by_page_and_keep_the_search(joe: Player, client: Client) -> None:
    items = Item.objects.bulk_create(Item(name=f"Pebble {number}", owner=joe) for number in range(30))
    Listing.objects.bulk_create(Listing(item=item, seller=joe, price=1) for item in items)

    page = client.get(f"{BROWSE}?q=pebble&page=2")

    assert page.content.decode().count("<h2>") == 6
    assert 'href="?q=pebble&amp;page=1"' in page.content.decode()


def test_the_number_of_queries_does_not_grow_with_the_page(
    joe: Player, client: Client, django_assert_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    items = Item.objects.bulk_create(Item(name=f"Pebble {number}", owner=joe) for number in range(20))
    Listing.objects.bulk_create(Listing(item=item, seller=joe, price=1) for item in items)

    with django_assert_num_queries(2):
        client.get(BROWSE)


def test_a_name_cannot_bring_markup(client: Client, listing: Listing) -> None:
    Item.objects.update(name="<script>alert(1)</script>")

    assert "<script>" not in client.get(BROWSE).content.decode()


# --- selling


def offer_form(item: Item, **changes: object) -> dict[str, object]:
    return {"item": item.pk, "price": 100, "opens": 0, "ends": 0, **changes}


def test_listing_a_thing_now(redis: Redis, joe: Player, dagger: Item) -> None:
    page = as_player(joe).post(OFFER, offer_form(dagger), follow=True)

    assert "Moonlit Dagger is listed." in text(page)
    assert Listing.objects.get().status == Listing.Status.OPEN


def test_listing_a_thing_for_later(redis: Redis, joe: Player, dagger: Item) -> None:
    page = as_player(joe).post(OFFER, offer_form(dagger, opens=3_600, ends=86_400), follow=True)

    listing = Listing.objects.get()
    assert "Moonlit Dagger will be listed." in text(page)
    assert "opens in" in text(page)
    assert listing.ends_at is not None
    assert listing.ends_at - listing.opens_at == timedelta(days=1)
    assert listing.opens_at - timezone.now() > timedelta(minutes=59)


@pytest.mark.parametrize("price", [0, -5, 1_000_000_001, "much", ""])
def test_a_price_that_cannot_be_is_explained(joe: Player, dagger: Item, price: object) -> None:
    page = as_player(joe).post(OFFER, offer_form(dagger, price=price))

    assert 'class="errorlist"' in page.content.decode()
    assert 'aria-invalid="true"' in page.content.decode()
    assert not Listing.objects.exists()


@pytest.mark.parametrize("whose", ["somebody else's", "listed"])
def test_only_ones_own_unlisted_things_can_be_chosen(listing: Listing, jack: Player, whose: str) -> None:
    seller = jack if whose == "somebody else's" else listing.seller

    page = as_player(seller).post(OFFER, offer_form(listing.item))

    assert page.status_code == 200
    assert Listing.objects.count() == 1


def test_the_page_of_a_thing_leads_to_selling_it(joe: Player, dagger: Item) -> None:
    link = f"{OFFER}?item={dagger.pk}"

    assert link in as_player(joe).get(MINE).content.decode()
    assert f'<option value="{dagger.pk}" selected>' in as_player(joe).get(link).content.decode()


# --- my things


def test_a_player_sees_what_they_offer_have_sold_and_bought(
    redis: Redis, listing: Listing, acorn: Listing, joe: Player, jill: Player
) -> None:
    as_player(jill).post(buy_url(listing), {"price": 100})

    sold, bought = text(as_player(joe).get(MINE)), text(as_player(jill).get(MINE))

    assert "Moonlit Dagger to jill, now +100 gold" in sold
    assert "Moonlit Dagger from joe, now \N{MINUS SIGN}100 gold" in bought
    assert "Glass Acorn open until sold 20 gold" in bought


def test_withdrawing_brings_the_thing_back(redis: Redis, listing: Listing) -> None:
    page = as_player(listing.seller).post(withdraw_url(listing), follow=True)

    assert "Moonlit Dagger is no longer for sale." in text(page)
    assert "You have nothing for sale at the moment." in text(page)


def test_a_token_withdraws_only_its_own_request(redis: Redis, listing: Listing, jack: Player) -> None:
    page = as_player(jack).post(withdraw_url(listing), follow=True)

    assert "This listing belongs to somebody else." in text(page)
    assert Listing.objects.get().status == Listing.Status.OPEN


def test_mail_is_switched_on_and_off(joe: Player) -> None:
    page = as_player(joe).post(PREFERENCES, {"wants_expired_mail": "on"}, follow=True)

    joe.refresh_from_db()
    assert "Your mail settings are saved." in text(page)
    assert (joe.wants_sold_mail, joe.wants_expired_mail) == (False, True)


# --- while Redis is away


def test_without_redis_looking_around_goes_on(listing: Listing, jack: Player) -> None:
    for url in (BROWSE, OFFER, MINE, PREFERENCES):
        assert as_player(jack).get(url).status_code == 200


def test_without_redis_a_purchase_says_plainly_that_nothing_was_bought(
    listing: Listing, jack: Player
) -> None:
    page = as_player(jack).post(buy_url(listing), {"price": 100})

    assert page.status_code == 503
    assert page["Retry-After"]
    assert "Nothing was bought, and your gold is untouched." in text(page)
    assert "1,000 gold" in text(page)


@pytest.mark.parametrize("ends", [0, 3_600])
def test_without_redis_a_listing_says_plainly_that_it_was_not_made(
    joe: Player, dagger: Item, ends: int
) -> None:
    page = as_player(joe).post(OFFER, offer_form(dagger, ends=ends))

    assert page.status_code == 503
    assert "Moonlit Dagger was not listed." in text(page)
    assert not Listing.objects.exists()


def test_without_redis_a_withdrawal_says_plainly_that_it_was_not_made(listing: Listing) -> None:
    page = as_player(listing.seller).post(withdraw_url(listing))

    assert page.status_code == 503
    assert page["Retry-After"]
    assert "Nothing was withdrawn." in text(page)
    assert Listing.objects.get().status == Listing.Status.OPEN


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


def test_other_things_can_be_bought_meanwhile(
    redis: Redis, listing: Listing, acorn: Listing, jack: Player, impatient: None
) -> None:
    with lock(f"item:{listing.item_id}", timeout=60):
        page = as_player(jack).post(buy_url(acorn), {"price": 20}, follow=True)

    assert "Glass Acorn is yours" in text(page)


def test_a_thing_that_somebody_trades_is_neither_listed_nor_withdrawn_meanwhile(
    redis: Redis, listing: Listing, joe: Player, impatient: None
) -> None:
    shield = Item.objects.create(name="Old Shield", owner=joe)

    with lock(f"item:{listing.item_id}", timeout=60), lock(f"item:{shield.pk}", timeout=60):
        withdrawn = as_player(joe).post(withdraw_url(listing))
        listed = as_player(joe).post(OFFER, offer_form(shield))

    assert (withdrawn.status_code, listed.status_code) == (409, 409)
    assert "Nothing was withdrawn." in text(withdrawn)
    assert "It was not listed." in text(listed)
    assert Listing.objects.get().status == Listing.Status.OPEN


def test_an_overtaken_change_is_reported(redis: Redis, listing: Listing, jack: Player) -> None:
    Item.objects.fenced(2**62).update()

    page = as_player(jack).post(buy_url(listing), {"price": 100}, follow=True)

    assert "Somebody else was faster: Moonlit Dagger was traded meanwhile. Nothing was bought." in text(page)
    assert not Sale.objects.exists()


# --- what every page owes to its readers


def test_no_page_needs_inline_code_or_style(redis: Redis, listing: Listing, jack: Player) -> None:
    for url in (BROWSE, OFFER, MINE, PREFERENCES):
        page = as_player(jack).get(url)

        assert "default-src 'self'" in page["Content-Security-Policy"]
        assert not re.search(r"<style|\sstyle=|<script(?![^>]* src=)|\son\w+=", page.content.decode())


@pytest.mark.parametrize("model", ["player", "item", "listing", "sale"])
def test_the_admin_shows_the_market(
    admin_client: Client, redis: Redis, listing: Listing, jack: Player, model: str
) -> None:
    as_player(jack).post(buy_url(listing), {"price": 100})

    page = admin_client.get(reverse(f"admin:market_{model}_changelist"), {"q": "joe"})

    assert page.status_code == 200


def test_sales_are_history_in_the_admin(admin_client: Client, db: None) -> None:
    assert admin_client.get(reverse("admin:market_sale_add")).status_code == 403


def test_players_are_named_as_they_log_in(db: None) -> None:
    assert str(player("jeff")) == "jeff"
