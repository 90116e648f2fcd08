"""The market's pages, its search, and the flash sale of the day, with Redis and without."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from html import unescape

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from components.services.locks import lock
from components.services.rows.models import cached_rows
from components.services.rows.worker import RowWorker
from project.market import books, flash, trading
from project.market.ledger import NotEnoughFunds, PriceChanged, Refusal, SaleOver, SoldOut
from project.market.models import FlashPurchase, FlashSale, Item, Listing, Player, Sale
from tests.project.market.conftest import as_player, ends_in, player, text
from tests.support.rows import let_pass

pytestmark = pytest.mark.django_db(transaction=True)

BROWSE = reverse("market:browse")
API = reverse("components:api-book", args=["market.listing"])


def buy_url(listing: Listing) -> str:
    return reverse("market:buy", args=[listing.pk])


def test_visitors_may_look_around_and_are_asked_to_log_in(
    client: Client, listing: Listing, jack: Player
) -> None:
    page = client.get(BROWSE)

    assert "Moonlit Dagger" in text(page)
    assert "Log in to buy" in text(page)
    assert buy_url(listing) not in page.content.decode()
    assert as_player(jack).get(BROWSE).status_code == 200
    for url in map(reverse, ("market:offer", "market:mine", "market:preferences")):
        assert client.get(url).url == f"{reverse('market:login')}?next={url}"
        assert as_player(jack).get(url).status_code == 200


def test_search_filter_and_order(listing: Listing, jill: Player, jack: Player) -> None:
    item = Item.objects.create(name="Glass Acorn", kind=Item.Kind.CURIO, owner=jill)
    Listing.objects.create(item=item, seller=jill, price=20)
    ends_in(listing, hours=1)
    Player.objects.filter(pk=jack.pk).update(funds=50)
    client, acorn, dagger = as_player(jack), "Glass Acorn", "Moonlit Dagger"
    for query, shown in {
        "": [acorn, dagger],
        "q=dag": [dagger],
        "q=ACORN": [acorn],
        "kind=weapon": [dagger],
        "affordable=on": [acorn],
        "order=cheap": [acorn, dagger],
        "order=dear": [dagger, acorn],
        "order=ending": [dagger, acorn],
        "order=nonsense&kind=nonsense&page=nonsense": [acorn, dagger],
        "q=nothing+like+it": [],
    }.items():
        page = client.get(f"{BROWSE}?{query}").content.decode()
        assert re.findall(r"<h2>(.+)</h2>", page) == shown, query


def test_without_redis_a_purchase_says_plainly_that_nothing_was_bought(
    listing: Listing, jack: Player
) -> None:
    page = as_player(jack).post(buy_url(listing), {"price": 100})

    assert page.status_code == 503
    assert page["Retry-After"]
    assert "Nothing was bought, and your gold is untouched." in text(page)
    assert "1,000 gold" in text(page)


def test_a_purchase_while_somebody_else_buys_offers_to_try_again(
    redis: Redis, listing: Listing, jack: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trading, "PATIENCE", 0.01)
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


@pytest.fixture(autouse=True)
def the_demos_readers() -> Iterator[None]:
    with override_settings(COMPONENTS={**settings.COMPONENTS, "BOOKS": "project.guilds.books.GuildBooks"}):
        yield


def test_a_name_is_offered_once_however_many_sell_it_and_until_the_last_is_sold(
    redis: Redis, joe: Player, jack: Player
) -> None:
    items = [Item.objects.create(name="Glass Acorn", owner=joe) for _ in range(2)]
    first, second = (Listing.objects.create(item=item, seller=joe, price=20) for item in items)
    books.for_sale.rebuild()
    client = as_player(jack)

    def names() -> list[str]:
        return [each["label"] for each in client.get(API, {"q": "glas"}).json()["entries"]]

    assert names() == ["Glass Acorn"]
    trading.buy(jack, first.pk, 20)
    assert names() == ["Glass Acorn"]
    trading.withdraw(joe, second.pk)
    assert names() == []
    trading.list_item(jack, first.item, 30)
    assert names() == ["Glass Acorn"]


DAY = date(2026, 11, 21)
FLASH = reverse("market:flash")
REMAINING = reverse("market:flash-remaining")


@pytest.fixture
def sale() -> FlashSale:
    """Three swords for 100 gold each, today."""
    now = timezone.now()
    return FlashSale.objects.create(
        slug=flash.keys_of(timezone.localdate())[0],
        name="Sword",
        kind=Item.Kind.WEAPON,
        price=100,
        stock=3,
        remaining=3,
        opens_at=now - timedelta(hours=1),
        ends_at=now + timedelta(hours=1),
    )


@pytest.mark.parametrize(
    ("change", "price", "refusal"),
    [
        ({"remaining": 0}, 100, SoldOut),
        ({"ends_at": timezone.now() - timedelta(seconds=1)}, 100, SaleOver),
        ({"opens_at": timezone.now() + timedelta(minutes=30)}, 100, SaleOver),
        ({"slug": "another"}, 100, SaleOver),
        ({}, 99, PriceChanged),
        ({"price": 2_000}, 2_000, NotEnoughFunds),
    ],
)
def test_a_refused_buyer_has_bought_nothing(
    redis: Redis, sale: FlashSale, change: dict[str, object], price: int, refusal: type[Refusal]
) -> None:
    jack, key = player("jack"), sale.slug
    FlashSale.objects.update(**change)
    before = FlashSale.objects.get().remaining

    with pytest.raises(refusal):
        trading.buy_flash(jack, key, price)

    assert FlashSale.objects.get().remaining == before
    assert (jack.items.count(), FlashPurchase.objects.count()) == (0, 0)
    assert Player.objects.get().funds == 1_000


def shown(client: Client) -> list[str]:
    return re.findall(r'data-remaining="(\d+)"', client.get(FLASH).content.decode())


def test_hundreds_look_without_a_query(
    redis: Redis,
    client: Client,
    django_assert_num_queries: DjangoAssertNumQueries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FlashSale.cached, "delay", 86_400)  # more than a slow machine takes
    before = shown(client)

    with django_assert_num_queries(0):
        again = shown(client)
        answer = client.get(REMAINING, {"pk": flash.keys_of(timezone.localdate())})

    assert len(before) == 3
    assert again == before == [str(row["remaining"]) for row in answer.json()["rows"].values()]


def test_a_purchase_is_seen_at_once_by_everybody(redis: Redis, client: Client) -> None:
    before = shown(client)
    first = FlashSale.objects.earliest("slug")
    question = {"pk": [first.slug]}
    etag = client.get(REMAINING, question)["ETag"]

    trading.buy_flash(player("jack"), first.slug, first.price)

    answer = client.get(REMAINING, question, headers={"If-None-Match": etag})
    assert answer.json()["rows"][first.slug]["remaining"] == int(before[0]) - 1
    assert shown(client)[0] == str(int(before[0]) - 1)


def test_a_write_of_another_program_is_seen_after_the_delay(redis: Redis, client: Client) -> None:
    flash.look_after()
    RowWorker(cached_rows()).tick()
    before = shown(client)

    FlashSale.objects.update(remaining=1)
    unchanged = shown(client)
    let_pass(redis, FlashSale.cached.delay + 0.001)
    RowWorker(cached_rows()).tick()

    assert unchanged == before
    assert shown(client) == ["1", "1", "1"]


def test_a_day_comes_though_no_task_has_run(
    redis: Redis, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = flash.keys_of(DAY)
    FlashSale.cached.get_many(keys)  # it is remembered that there are none
    monkeypatch.setattr(timezone, "localdate", lambda: DAY)

    assert len(shown(client)) == 3
    assert set(FlashSale.objects.values_list("slug", flat=True)) == set(keys)
