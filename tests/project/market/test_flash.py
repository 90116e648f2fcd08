"""The flash sale of the day: who may buy, what is shown, and days that come without any task."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.test.utils import override_settings
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from components.services.rows import RowReader
from components.services.rows.models import cached_rows
from components.services.rows.worker import RowWorker
from project.market import flash, tasks, trading
from project.market.ledger import NotEnoughFunds, OneEach, PriceChanged, Refusal, SaleOver, SoldOut
from project.market.models import FlashPurchase, FlashSale, Item, Player
from tests.project.market.conftest import player
from tests.support.rows import let_pass

DAY = date(2026, 11, 21)
PAGE = reverse("market:flash")
REMAINING = reverse("market:flash-remaining")

pytestmark = pytest.mark.django_db(transaction=True)


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


def remaining(sale: FlashSale) -> int:
    sale.refresh_from_db()
    return sale.remaining


# Buying


def test_one_of_what_remains_is_the_buyers(redis: Redis, sale: FlashSale) -> None:
    jack = player("jack", funds=150)

    purchase = trading.buy_flash(jack, sale.slug, 100)

    jack.refresh_from_db()
    assert (purchase.sale, purchase.buyer, purchase.price) == (sale, jack, 100)
    assert [(item.name, item.kind) for item in jack.items.all()] == [("Sword", "weapon")]
    assert (jack.funds, remaining(sale)) == (50, 2)


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


def test_each_buys_one(redis: Redis, sale: FlashSale) -> None:
    jack = player("jack")
    trading.buy_flash(jack, sale.slug, 100)

    with pytest.raises(OneEach):
        trading.buy_flash(jack, sale.slug, 100)

    assert remaining(sale) == 2


@pytest.mark.parametrize("number", [-1, 4])
def test_the_database_itself_refuses_what_must_not_be(sale: FlashSale, number: int) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        FlashSale.objects.update(remaining=number)


def test_buying_needs_no_redis(sale: FlashSale) -> None:
    trading.buy_flash(player("jack"), sale.slug, 100)

    assert remaining(sale) == 2


# What is seen


def shown(client: Client) -> list[str]:
    return re.findall(r'data-remaining="(\d+)"', client.get(PAGE).content.decode())


def test_hundreds_look_without_a_query(
    redis: Redis, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
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
    let_pass(redis, 1.001)
    RowWorker(cached_rows()).tick()

    assert unchanged == before
    assert shown(client) == ["1", "1", "1"]


def test_the_json_tells_everybody_what_remains_and_nothing_else(
    redis: Redis, client: Client, sale: FlashSale
) -> None:
    [row] = client.get(REMAINING, {"pk": sale.slug}).json()["rows"].values()

    assert row == {"remaining": 3, "ends_at": sale.ends_at.isoformat()}


def test_sold_out_items_have_no_button(redis: Redis, client: Client, sale: FlashSale) -> None:
    client.force_login(player("jack").user)
    with_one = client.get(PAGE).content.decode()
    sale.remaining = 0
    sale.save()
    without = client.get(PAGE).content.decode()

    assert re.search(r"data-gone[^>]* hidden>", card(with_one))
    assert not re.search(r"data-gone[^>]* hidden>", card(without))
    assert re.search(r"data-open hidden>", card(without))


def card(page: str) -> str:
    """That of the first sale."""
    return page.split("data-key=")[1]


def test_a_buyer_is_told_what_they_got_and_that_they_have_one(
    redis: Redis, client: Client, sale: FlashSale
) -> None:
    client.force_login(player("jack").user)
    url = reverse("market:buy-flash", args=[sale.slug])

    page = client.post(url, {"price": 100}, follow=True).content.decode()
    again = client.post(url, {"price": 100}, follow=True).content.decode()

    assert "Sword is yours, for 100 gold." in page
    assert "You have one" in card(page)
    assert "each player may buy one. Nothing was bought." in again
    assert "The price is missing." in client.post(url, follow=True).content.decode()
    assert client.get(url).status_code == 405
    assert Client().post(url, {"price": 100})["Location"].startswith(reverse("market:login"))


def test_without_redis_the_page_asks_the_database(client: Client) -> None:
    assert len(shown(client)) == 3
    assert client.get(REMAINING, {"pk": "x"}).status_code == 503


# Days


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/New_York"])
def test_a_day_is_from_midnight_to_midnight(redis: Redis, zone: str) -> None:
    with override_settings(TIME_ZONE=zone):
        sales = flash.on_sale(date(2026, 11, 1))  # when the clocks are put back in New York

    here = ZoneInfo(zone)
    assert {each.opens_at for each in sales} == {datetime(2026, 11, 1, tzinfo=here)}
    assert {each.ends_at for each in sales} == {datetime(2026, 11, 2, tzinfo=here)}


def test_each_day_has_other_things(redis: Redis) -> None:
    days = [{each.name for each in flash.on_sale(DAY + timedelta(days=number))} for number in range(7)]

    assert all(len(names) == 3 for names in days)
    assert all(today != tomorrow for today, tomorrow in pairwise(days))


def test_a_day_comes_though_no_task_has_run(
    redis: Redis, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = flash.keys_of(DAY)
    FlashSale.cached.get_many(keys)  # it is remembered that there are none
    monkeypatch.setattr(timezone, "localdate", lambda: DAY)

    assert len(shown(client)) == 3
    assert set(FlashSale.objects.values_list("slug", flat=True)) == set(keys)


def test_the_task_is_a_day_ahead_and_changes_nothing_that_is_there(redis: Redis) -> None:
    tasks.prepare_flash_sales.call()
    today = timezone.localdate()
    FlashSale.objects.filter(slug__startswith=str(today)).update(remaining=1)
    tasks.prepare_flash_sales.call()

    tomorrow = today + timedelta(days=1)
    slugs = set(FlashSale.objects.values_list("slug", flat=True))
    assert slugs == {*flash.keys_of(today), *flash.keys_of(tomorrow)}
    assert {each.remaining for each in flash.on_sale(today)} == {1}


def test_only_what_can_be_bought_is_on_the_schedule(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    flash.look_after()
    first = timezone.localdate()
    later = timezone.now() + timedelta(days=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    flash.look_after()

    on_schedule = {info.key for info in RowReader().page()}
    assert on_schedule == set(flash.keys_of(first + timedelta(days=1)))
