"""What a purchase checks, and what it moves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import IntegrityError, transaction
from django.db.models.signals import post_save
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.testing import redis_at
from project.market import trading
from project.market.ledger import ListingClosed, PriceChanged
from project.market.models import Listing, Player, Sale
from tests.project.market.conftest import queued


def assert_nothing_happened(listing: Listing, *, purses: int = 1_000) -> None:
    assert not Sale.objects.exists()
    assert Listing.objects.get(pk=listing.pk).item.owner_id == listing.seller_id
    assert set(Player.objects.values_list("funds", flat=True)) == {purses}


def test_gold_item_and_listing_change_hands_together(redis: Redis, listing: Listing, jack: Player) -> None:
    sale = trading.buy(jack, listing.pk, 100)

    listing.refresh_from_db()
    assert listing.status == Listing.Status.SOLD
    assert listing.item.owner == jack
    assert Player.objects.get(pk=jack.pk).funds == 900
    assert Player.objects.get(pk=listing.seller_id).funds == 1_100
    assert (sale.buyer, sale.seller_id, sale.price) == (jack, listing.seller_id, 100)


def test_a_purchase_enqueues_the_mail_and_says_so_in_the_sale(
    redis: Redis, listing: Listing, jack: Player
) -> None:
    sale = trading.buy(jack, listing.pk, 100)

    (task,) = queued()
    assert (task.name, task.args) == ("project.market.tasks.send_sold_email", [sale.pk])
    assert (task.queue, task.priority) == ("mail", 10)
    assert Sale.objects.get().mail_enqueued_at is not None


@pytest.mark.parametrize("seen", [99, 101, -100, 0])
def test_buyers_pay_only_the_price_they_saw(redis: Redis, listing: Listing, jack: Player, seen: int) -> None:
    with pytest.raises(PriceChanged, match="now 100 gold"):
        trading.buy(jack, listing.pk, seen)

    assert_nothing_happened(listing)


def test_a_thing_is_sold_once(redis: Redis, listing: Listing, jack: Player, jill: Player) -> None:
    trading.buy(jack, listing.pk, 100)

    with pytest.raises(ListingClosed):
        trading.buy(jill, listing.pk, 100)

    assert Sale.objects.get().buyer == jack
    assert Player.objects.get(pk=jill.pk).funds == 1_000


def test_without_redis_nothing_is_bought(listing: Listing, jack: Player) -> None:
    with pytest.raises(RedisUnavailable):
        trading.buy(jack, listing.pk, 100)

    assert_nothing_happened(listing)


def test_a_purchase_stands_even_if_redis_dies_after_it(
    tmp_path: Path, listing: Listing, jack: Player, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedServer(tmp_path / "redis") as server, redis_at(server.url):

        def kill(**kwargs: object) -> None:
            server.kill()

        post_save.connect(kill, sender=Sale)
        try:
            sale = trading.buy(jack, listing.pk, 100)
        finally:
            post_save.disconnect(kill, sender=Sale)

    assert Sale.objects.get(pk=sale.pk).mail_enqueued_at is None
    assert Player.objects.get(pk=jack.pk).funds == 900
    assert "the sweep will enqueue them" in caplog.text


@pytest.mark.parametrize(
    "impossible",
    [
        lambda listing: Player.objects.update(funds=-1),
        lambda listing: Listing.objects.update(price=0),
        lambda listing: Listing.objects.update(ends_at=listing.opens_at),
        lambda listing: Listing.objects.create(item=listing.item, seller=listing.seller, price=5),
        lambda listing: Sale.objects.create(
            listing=listing, buyer=listing.seller, seller=listing.seller, price=5
        ),
    ],
    ids=["debts", "gifts", "an end at the opening", "two live listings of one item", "a sale to oneself"],
)
def test_the_database_itself_refuses(listing: Listing, impossible: Callable[[Listing], object]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        impossible(listing)
