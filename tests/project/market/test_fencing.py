"""Who trades a thing holds its lock, and leaves the lock's fence in the thing's row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db.models.signals import post_save
from redis import Redis

from components.exceptions import StaleFence
from components.services.locks import lock
from components.services.locks.named import key_of
from project.market import ledger, trading
from project.market.ledger import Busy, Overtaken, Refusal
from project.market.models import Item, Listing, Player, Sale


def fence_of(item: Item) -> int:
    return Item.objects.get(pk=item.pk).fence


def lock_of(item: Item) -> str:
    name = f"item:{item.pk}"
    return key_of(name)


@contextmanager
def when_sold(act: Callable[[], object]) -> Iterator[None]:
    """*act* happens in the middle of a sale's transaction."""

    def receiver(**kwargs: object) -> None:
        act()

    post_save.connect(receiver, sender=Sale)
    try:
        yield
    finally:
        post_save.disconnect(receiver, sender=Sale)


def test_each_trade_of_a_thing_has_a_newer_fence(redis: Redis, dagger: Item, jack: Player) -> None:
    fences = [fence_of(dagger)]
    listing = trading.list_item(dagger.owner, dagger, 100)
    fences.append(fence_of(dagger))
    trading.buy(jack, listing.pk, 100)
    fences.append(fence_of(dagger))
    listing = trading.list_item(jack, dagger, 100)
    fences.append(fence_of(dagger))
    trading.withdraw(jack, listing.pk)
    fences.append(fence_of(dagger))

    assert fences[0] == 0
    assert fences == sorted(set(fences))


def test_a_refused_save_leaves_no_fence_and_no_lock(redis: Redis, listing: Listing, jack: Player) -> None:
    for refused in (
        lambda: trading.buy(jack, listing.pk, 99),
        lambda: trading.withdraw(jack, listing.pk),
        lambda: trading.list_item(jack, listing.item, 5),
    ):
        with pytest.raises(Refusal):
            refused()

    assert fence_of(listing.item) == 0
    assert not redis.exists(lock_of(listing.item))


@pytest.mark.parametrize("trade", ["buy", "withdraw", "list"])
def test_only_one_trades_a_thing_at_a_time(
    redis: Redis, listing: Listing, jack: Player, monkeypatch: pytest.MonkeyPatch, trade: str
) -> None:
    monkeypatch.setattr(trading, "PATIENCE", 0.01)
    trades: dict[str, Callable[[], object]] = {
        "buy": lambda: trading.buy(jack, listing.pk, 100),
        "withdraw": lambda: trading.withdraw(listing.seller, listing.pk),
        "list": lambda: trading.list_item(listing.seller, listing.item, 5),
    }

    with (
        lock(f"item:{listing.item_id}", timeout=60),
        pytest.raises(Busy, match="Somebody else is buying or changing Moonlit Dagger right now"),
    ):
        trades[trade]()

    listing.refresh_from_db()
    assert listing.status == Listing.Status.OPEN


def test_a_lock_says_for_whom_it_is(redis: Redis, listing: Listing, jack: Player) -> None:
    owners: list[bytes] = []
    with when_sold(lambda: owners.append(redis.get(lock_of(listing.item)) or b"")):
        trading.buy(jack, listing.pk, 100)

    assert f"player {jack.pk}".encode() in owners[0].replace(b"%20", b" ")


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

    for trade in (
        lambda: trading.buy(jack, listing.pk, 100),
        lambda: trading.withdraw(listing.seller, listing.pk),
        lambda: trading.list_item(listing.seller, listing.item, 5),
    ):
        with pytest.raises(Overtaken, match="Somebody else was faster"):
            trade()

    assert not Sale.objects.exists()
    assert Listing.objects.get().status == Listing.Status.OPEN
    assert fence_of(listing.item) == newer


def test_a_purchase_stands_even_if_its_lock_has_ended_meanwhile(
    redis: Redis, listing: Listing, jack: Player, caplog: pytest.LogCaptureFixture
) -> None:
    with when_sold(lambda: redis.delete(lock_of(listing.item))):
        trading.buy(jack, listing.pk, 100)

    assert Item.objects.get().owner == jack
    assert "a lock could not be released" in caplog.text


def test_edits_in_the_admin_leave_the_fence(redis: Redis, listing: Listing) -> None:
    old = Item.objects.get()
    Item.objects.fenced(7).update()
    old.name = "Sunlit Dagger"
    old.save()

    assert (Item.objects.get().name, fence_of(old)) == ("Sunlit Dagger", 7)
