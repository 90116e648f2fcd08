"""Who trades a thing holds its lock, and leaves the lock's fence in the thing's row."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from components.exceptions import StaleFence
from components.services.locks import lock
from project.market import ledger, trading
from project.market.ledger import Busy, Overtaken
from project.market.models import Item, Listing, Player, Sale


def fence_of(item: Item) -> int:
    return Item.objects.get(pk=item.pk).fence


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
