"""The flash sale of the day: who may buy, what is shown, and days that come without any task."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from redis import Redis

from components.services.rows.models import cached_rows
from components.services.rows.worker import RowWorker
from project.market import flash, trading
from project.market.ledger import NotEnoughFunds, PriceChanged, Refusal, SaleOver, SoldOut
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


# Days


def test_a_day_comes_though_no_task_has_run(
    redis: Redis, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = flash.keys_of(DAY)
    FlashSale.cached.get_many(keys)  # it is remembered that there are none
    monkeypatch.setattr(timezone, "localdate", lambda: DAY)

    assert len(shown(client)) == 3
    assert set(FlashSale.objects.values_list("slug", flat=True)) == set(keys)
