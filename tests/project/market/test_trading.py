"""Listings and purchases: what they check and move, under which lock, and the tasks that follow."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.db.models.signals import post_save
from django.utils import timezone
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable, StaleFence
from components.services.locks import lock
from components.testing import redis_at
from project.market import ledger, tasks, trading
from project.market.ledger import Busy, ListingClosed, NotYours, Overtaken, PriceChanged
from project.market.models import Item, Listing, Player, Sale
from tests.project.market.conftest import ends_in, names, opens_in, queued


def assert_nothing_happened(listing: Listing) -> None:
    assert not Sale.objects.exists()
    assert Listing.objects.get(pk=listing.pk).item.owner_id == listing.seller_id
    assert set(Player.objects.values_list("funds", flat=True)) == {1_000}


def test_gold_item_and_listing_change_hands_together_once_and_the_mail_is_enqueued(
    redis: Redis, listing: Listing, jack: Player, jill: Player
) -> None:
    sale = trading.buy(jack, listing.pk, 100)
    with pytest.raises(ListingClosed):
        trading.buy(jill, listing.pk, 100)

    listing.refresh_from_db()
    assert listing.status == Listing.Status.SOLD
    assert listing.item.owner == jack
    assert Player.objects.get(pk=jack.pk).funds == 900
    assert Player.objects.get(pk=listing.seller_id).funds == 1_100
    assert Player.objects.get(pk=jill.pk).funds == 1_000
    assert (sale.buyer, sale.seller_id, sale.price) == (jack, listing.seller_id, 100)
    (task,) = queued()
    assert (task.name, task.args) == ("project.market.tasks.send_sold_email", [sale.pk])
    assert (task.queue, task.priority) == ("mail", 10)
    assert Sale.objects.get().mail_enqueued_at is not None


@pytest.mark.parametrize("seen", [99, 101, -100, 0])
def test_buyers_pay_only_the_price_they_saw(redis: Redis, listing: Listing, jack: Player, seen: int) -> None:
    with pytest.raises(PriceChanged, match="now 100 gold"):
        trading.buy(jack, listing.pk, seen)

    assert_nothing_happened(listing)


def test_without_redis_nothing_is_bought_or_listed(listing: Listing, jack: Player) -> None:
    with pytest.raises(RedisUnavailable):
        trading.buy(jack, listing.pk, 100)
    assert_nothing_happened(listing)

    Listing.objects.all().delete()
    for ends_at in (None, timezone.now() + timedelta(hours=1)):
        with pytest.raises(RedisUnavailable):
            trading.list_item(listing.seller, listing.item, 100, ends_at=ends_at)
    assert not Listing.objects.exists()


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


def test_a_listing_for_later_is_opened_and_ended_by_tasks_at_their_time(redis: Redis, dagger: Item) -> None:
    opens_at = timezone.now() + timedelta(hours=1)
    ends_at = opens_at + timedelta(hours=1)

    listing = trading.list_item(dagger.owner, dagger, 100, opens_at=opens_at, ends_at=ends_at)

    due = {task.name.rpartition(".")[2]: task.run_after for task in queued()}
    assert due == {"open_listing": opens_at, "end_listing": ends_at}
    assert listing.status == Listing.Status.SCHEDULED
    assert Listing.objects.get().tasks_enqueued_at is not None


def test_people_list_only_their_own_things(redis: Redis, dagger: Item, jack: Player) -> None:
    with pytest.raises(NotYours):
        trading.list_item(jack, dagger, 100)

    assert not Listing.objects.exists()


def test_the_list_and_the_purchase_agree_on_what_is_open(listing: Listing) -> None:
    now = timezone.now()
    for opens, ends in [(-9, None), (-9, 9), (-9, -1), (9, None), (0, 9), (-9, 0)]:
        Listing.objects.update(
            opens_at=now + timedelta(hours=opens),
            ends_at=None if ends is None else now + timedelta(hours=ends),
        )
        listing.refresh_from_db()

        assert Listing.objects.open_at(now).exists() == listing.is_open_at(now)


def fence_of(item: Item) -> int:
    return Item.objects.get(pk=item.pk).fence


def trades(listing: Listing, buyer: Player) -> list[Callable[[], object]]:
    return [
        lambda: trading.buy(buyer, listing.pk, 100),
        lambda: trading.withdraw(listing.seller, listing.pk),
        lambda: trading.list_item(listing.seller, listing.item, 5),
    ]


def test_each_trade_of_a_thing_has_a_newer_fence(redis: Redis, dagger: Item, jack: Player) -> None:
    fences = [fence_of(dagger)]
    for seller, trade in ((dagger.owner, "buy"), (jack, "withdraw")):
        listing = trading.list_item(seller, dagger, 100)
        fences.append(fence_of(dagger))
        trading.buy(jack, listing.pk, 100) if trade == "buy" else trading.withdraw(seller, listing.pk)
        fences.append(fence_of(dagger))

    assert fences[0] == 0
    assert fences == sorted(set(fences))


def test_only_one_trades_a_thing_at_a_time(
    redis: Redis, listing: Listing, jack: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trading, "PATIENCE", 0.01)
    with lock(f"item:{listing.item_id}", timeout=60):
        for trade in trades(listing, jack):
            with pytest.raises(Busy, match="Somebody else is buying or changing Moonlit Dagger right now"):
                trade()

    assert_nothing_happened(listing)
    assert Listing.objects.get().status == Listing.Status.OPEN


def test_an_offer_that_was_held_up_is_refused_if_the_thing_was_listed_and_withdrawn_since(
    redis: Redis, dagger: Item
) -> None:
    """The rows look as they did before: nothing but the fence tells that the player has changed their mind."""
    with lock(f"item:{dagger.pk}", timeout=60) as held:
        late = held.fence
    trading.withdraw(dagger.owner, trading.list_item(dagger.owner, dagger, 100).pk)

    with pytest.raises(StaleFence):
        ledger.offer(dagger.owner_id, dagger.pk, 5, None, None, fence=late)

    assert not Listing.objects.live().exists()


def test_an_overtaken_change_has_no_effect(redis: Redis, listing: Listing, jack: Player) -> None:
    newer = 2**62
    Item.objects.fenced(newer).update()

    for trade in trades(listing, jack):
        with pytest.raises(Overtaken, match="Somebody else was faster"):
            trade()

    assert not Sale.objects.exists()
    assert Listing.objects.get().status == Listing.Status.OPEN
    assert fence_of(listing.item) == newer


def test_the_seller_is_told_who_bought_what_for_how_much(
    redis: Redis, listing: Listing, jack: Player
) -> None:
    sale = trading.buy(jack, listing.pk, 100)
    assert tasks.send_sold_email.call(sale.pk) is True

    (message,) = mail.outbox
    assert message.extra_headers == {"Message-ID": f"<market-sold-{sale.pk}@fakegame.example>"}
    assert message.to == ["joe@fakegame.example"]
    assert message.subject == "Sold: Moonlit Dagger for 100 gold"
    assert "jack has bought your Moonlit Dagger for 100 gold." in message.body


def test_a_listing_whose_time_is_over_ends_and_its_seller_is_told_once(
    redis: Redis, listing: Listing
) -> None:
    ends_in(listing, seconds=-1)

    tasks.end_listing.call(listing.pk)
    tasks.end_listing.call(listing.pk)

    (task,) = queued()
    assert (task.name, task.args) == ("project.market.tasks.send_expired_email", [listing.pk])
    assert (task.queue, task.priority) == ("mail", -10)
    assert Listing.objects.get().status == Listing.Status.EXPIRED
    assert Listing.objects.get().mail_enqueued_at is not None


def test_the_sweep_opens_and_ends_what_is_due(redis: Redis, listing: Listing, jill: Player) -> None:
    ends_in(listing, seconds=-1)
    ring = jill.items.create(name="Glass Acorn")
    later = opens_in(Listing(item=ring, seller=jill, price=5), seconds=-1)

    done = tasks.sweep.call()

    assert (done["opened"], done["ended"]) == (1, 1)
    assert Listing.objects.get(pk=listing.pk).status == Listing.Status.EXPIRED
    assert Listing.objects.get(pk=later.pk).status == Listing.Status.OPEN
    assert names(queued()) == {"send_expired_email"}


def test_the_sweep_plans_a_listing_whose_tasks_got_lost(redis: Redis, listing: Listing) -> None:
    opens_in(listing, hours=1)
    ends_in(listing, hours=2)
    Listing.objects.update(created_at=timezone.now() - timedelta(minutes=2))

    assert tasks.sweep.call()["planned"] == 1
    assert tasks.sweep.call()["planned"] == 0

    assert names(queued()) == {"open_listing", "end_listing"}
