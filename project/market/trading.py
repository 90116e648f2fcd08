"""
Functions for the pages: set a guard, run a ledger transaction under the item's lock, then enqueue the tasks that
follow.

If Redis is away, the guard or the lock raises RedisUnavailable and nothing has happened. After the commit nothing is
raised any more: the guard's sweep enqueues the tasks that cannot be enqueued now, and a lock that cannot be released
expires. One item's lock does not delay the trade in others. The transaction stores the lock's fence in the item's row
(ledger.py), which protects the item even if a holder outlives its lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from components.exceptions import LockLost, RedisUnavailable, StaleFence
from components.services.locks import Lock, lock

from . import ledger
from .models import FlashPurchase, FlashSale, Item, Listing, Player, Sale
from .tasks import announce_sale, healed_by_sweep, plan, set_guard
from .trace import note

logger = logging.getLogger(__name__)

#: Seconds that an item stays locked if the holder of its lock dies. A trade takes hundredths of a second.
LEASE = 10
#: Seconds that a player waits for others who trade the same item, before the page reports that the item is busy.
PATIENCE = 5


def list_item(
    seller: Player,
    item: Item,
    price: int,
    *,
    opens_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> Listing:
    """
    Offer *item* from *opens_at* (default: now) until *ends_at* (default: until it is sold). Raises the errors of
    buy().
    """
    has_tasks = opens_at is not None or ends_at is not None
    if has_tasks:
        set_guard()
    with _alone(item.pk, seller) as fence:
        listing = ledger.offer(seller.pk, item.pk, price, opens_at, ends_at, fence=fence)
    if has_tasks:
        with healed_by_sweep(f"listing {listing.pk}"):
            plan(listing)
    return listing


def withdraw(seller: Player, listing_id: int) -> Listing:
    """Withdraw a listing. Raises the errors of buy()."""
    with _alone(_item_of(listing_id), seller) as fence:
        return ledger.take_back(seller.pk, listing_id, fence=fence)


def buy(buyer: Player, listing_id: int, price: int) -> Sale:
    """
    Buy at the price that the buyer saw. Raises a Refusal or RedisUnavailable; in both cases nothing has happened.
    """
    set_guard()
    with _alone(_item_of(listing_id), buyer) as fence:
        sale = ledger.sell(listing_id, buyer.pk, price, fence=fence)
        note("row", item=sale.listing.item_id, name=sale.listing.item.name, fence=fence)
    with healed_by_sweep(f"sale {sale.pk}"):
        announce_sale(sale)
    return sale


def buy_flash(buyer: Player, slug: str, price: int) -> FlashPurchase:
    """
    Buy one piece in a flash sale, at the price that the buyer saw. Raises a Refusal, in which case nothing has
    happened.

    There is no lock: hundreds buy the same thing, and the database decides. So this works while Redis is away, too.
    The cached number is invalidated, so that everybody sees the new one at once instead of after the next load.
    """
    purchase = ledger.sell_flash(slug, buyer.pk, price)
    note("piece", sale=slug)
    try:
        FlashSale.cached.invalidate(slug)  # the UPDATE sent no signal
    except RedisUnavailable as error:
        logger.warning("flash sale %s: the new number is shown after the next load (%s)", slug, error)
    return purchase


def _item_of(listing_id: int) -> int:
    item_id = Listing.objects.filter(pk=listing_id).values_list("item_id", flat=True).first()
    if item_id is None:
        raise ledger.ListingClosed("This listing does not exist any more.")
    return item_id


@contextmanager
def _alone(item_id: int, player: Player) -> Iterator[int]:
    """
    Keep others from trading the item in the block, and yield the fence. Raises Busy, Overtaken, RedisUnavailable.
    """
    held = lock(f"item:{item_id}", timeout=LEASE, blocking_timeout=PATIENCE, owner=f"player {player.pk}")
    began = time.perf_counter()
    if not held.acquire():
        raise ledger.Busy(f"Somebody else is buying or changing {_name_of(item_id)} right now.")
    acquired, fence = time.perf_counter(), held.fence
    try:
        yield fence
    except StaleFence:
        raise ledger.Overtaken(
            f"Somebody else was faster: {_name_of(item_id)} was traded meanwhile."
        ) from None
    finally:
        _give_back(held)
        waited, kept = acquired - began, time.perf_counter() - acquired
        note("lock", key=held.name, fence=fence, waited=waited * 1_000, held=kept * 1_000)


def _give_back(held: Lock) -> None:
    try:
        held.release()
    except (LockLost, RedisUnavailable) as error:
        logger.warning("a lock could not be released, and will expire (%s)", error)


def _name_of(item_id: int) -> str:
    return Item.objects.get(pk=item_id).name
