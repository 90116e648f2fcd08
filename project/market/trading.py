"""
What the pages call: a ledger transaction, between the guard before it and the tasks after it.

The guard comes first. If Redis is away, RedisUnavailable is raised there and nothing has happened. Once a
transaction is committed nothing is raised any more: what cannot be enqueued now, the guard makes good.
A listing without opening and ending times needs no task, and works without Redis.
"""

from __future__ import annotations

from datetime import datetime

from . import ledger
from .models import Item, Listing, Player, Sale
from .tasks import announce_sale, healed_by_sweep, plan, set_guard


def list_item(
    seller: Player,
    item: Item,
    price: int,
    *,
    opens_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> Listing:
    """Offer *item* from *opens_at* (else now) until *ends_at* (else until sold). Raises as buy() does."""
    if opens_at is None and ends_at is None:
        return ledger.offer(seller.pk, item.pk, price, None, None)
    set_guard()
    listing = ledger.offer(seller.pk, item.pk, price, opens_at, ends_at)
    with healed_by_sweep(f"listing {listing.pk}"):
        plan(listing)
    return listing


def withdraw(seller: Player, listing_id: int) -> Listing:
    """Take a listing back. Raises a Refusal."""
    return ledger.take_back(seller.pk, listing_id)


def buy(buyer: Player, listing_id: int, price: int) -> Sale:
    """Buy at the price that the buyer saw. Raises a Refusal or RedisUnavailable; then nothing happened."""
    set_guard()
    sale = ledger.sell(listing_id, buyer.pk, price)
    with healed_by_sweep(f"sale {sale.pk}"):
        announce_sale(sale)
    return sale
