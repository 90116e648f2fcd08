"""
The market's transactions. Each function is one transaction, which happens completely or not at all.

Rows are locked in one order everywhere, so that no two transactions wait for each other: listings, then
the item, then players by ascending key. (SQLite has one writer at a time: BEGIN IMMEDIATE.) The clock is
read after the lock, so nobody buys what ended while they waited. Changes that a single condition decides
(a listing opens, a listing ends) are one conditional UPDATE and may be repeated without harm.

A function that trades an item takes the fence of the item's lock, and stores it in the item's row. So if a process
was suspended while it held the lock, and continues after others have held it, it is refused (StaleFence) and changes
nothing. The lock only saves others useless work; it is not what prevents selling an item twice.

A flash sale needs no such lock: its row contains the number that remains, and one condition decides.

This module does not use tasks: trading.py enqueues the tasks that follow from a transaction.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from .models import FlashPurchase, FlashSale, Item, Listing, ListingQuerySet, Player, Sale


class Refusal(Exception):
    """The market refuses a request; the text tells the player why. Do not raise directly."""


class ListingClosed(Refusal):
    """The listing is sold, withdrawn, over, or has not opened yet."""


class PriceChanged(Refusal):
    """The price is no longer the one that the buyer saw."""


class NotEnoughFunds(Refusal):
    """The buyer's purse holds less than the price."""


class SaleOver(Refusal):
    """The flash sale has ended, or has not begun."""


class SoldOut(Refusal):
    """Nothing is left in the flash sale."""


class OneEach(Refusal):
    """The buyer has already bought one in this flash sale."""


class OwnListing(Refusal):
    """The buyer is the seller."""


class NotYours(Refusal):
    """The item or listing belongs to somebody else."""


class AlreadyListed(Refusal):
    """The item is already on offer."""


class Busy(Refusal):
    """Somebody else trades the item at this moment."""


class Overtaken(Refusal):
    """Somebody else has traded the item since this trade began."""


@transaction.atomic(durable=True)
def offer(
    seller_id: int,
    item_id: int,
    price: int,
    opens_at: datetime | None,
    ends_at: datetime | None,
    *,
    fence: int,
) -> Listing:
    """Put an item on offer. Raises NotYours, AlreadyListed, StaleFence."""
    earlier = list(Listing.objects.live().filter(item_id=item_id).select_for_update().order_by("pk"))
    item = _marked(item_id, fence)
    now = timezone.now()
    if item.owner_id != seller_id:
        raise NotYours(f"{item.name} does not belong to you.")
    end_due(Listing.objects.filter(pk__in=[listing.pk for listing in earlier]))
    if Listing.objects.live().filter(item=item).exists():
        raise AlreadyListed(f"{item.name} is already listed.")
    opens_at = opens_at or now
    status = Listing.Status.SCHEDULED if opens_at > now else Listing.Status.OPEN
    return Listing.objects.create(
        item=item, seller_id=seller_id, price=price, opens_at=opens_at, ends_at=ends_at, status=status
    )


@transaction.atomic(durable=True)
def take_back(seller_id: int, listing_id: int, *, fence: int) -> Listing:
    """Withdraw a listing. Raises NotYours, ListingClosed, StaleFence."""
    listing = _locked(listing_id)
    _marked(listing.item_id, fence)
    if listing.seller_id != seller_id:
        raise NotYours("This listing belongs to somebody else.")
    if listing.status not in Listing.LIVE or listing.has_ended_at(timezone.now()):
        raise ListingClosed(f"The listing of {listing.item.name} is already over.")
    listing.status = Listing.Status.WITHDRAWN
    listing.save(update_fields=["status"])
    return listing


@transaction.atomic(durable=True)
def sell(listing_id: int, buyer_id: int, price: int, *, fence: int) -> Sale:
    """Transfer gold, item and listing together. Raises the Refusal that fits, or StaleFence."""
    listing = _locked(listing_id)
    item = _marked(listing.item_id, fence)
    parties = Player.objects.select_for_update().order_by("pk").in_bulk([buyer_id, listing.seller_id])
    buyer, seller = parties[buyer_id], parties[listing.seller_id]
    _refuse(listing, buyer, price)

    Player.objects.filter(pk=buyer.pk).update(funds=F("funds") - price)
    Player.objects.filter(pk=seller.pk).update(funds=F("funds") + price)
    item.owner = buyer
    item.save(update_fields=["owner"], fence=fence)
    listing.status = Listing.Status.SOLD
    listing.save(update_fields=["status"])
    return Sale.objects.create(listing=listing, buyer=buyer, seller=seller, price=price)


@transaction.atomic(durable=True)
def sell_flash(slug: str, buyer_id: int, price: int) -> FlashPurchase:
    """
    Sell one piece of a flash sale. Raises the Refusal that fits.

    The condition of the UPDATE that takes a piece decides, even if many others buy at the same time. The buyer's row
    is locked first, so that the row that everybody wants is locked only briefly; no other transaction locks both.
    """
    buyer = Player.objects.select_for_update().get(pk=buyer_id)
    is_left = FlashSale.objects.filter(slug=slug, remaining__gt=0).update(remaining=F("remaining") - 1)
    sale = FlashSale.objects.filter(slug=slug).first()
    if sale is None:
        raise SaleOver("There is no such sale.")
    _refuse_flash(sale, buyer, price, is_left=bool(is_left))

    Player.objects.filter(pk=buyer.pk).update(funds=F("funds") - price)
    Item.objects.create(name=sale.name, kind=sale.kind, owner=buyer)
    return FlashPurchase.objects.create(sale=sale, buyer=buyer, price=price)


def open_due(listings: ListingQuerySet) -> int:
    """Open those of *listings* whose time has come, and return how many."""
    due = listings.filter(status=Listing.Status.SCHEDULED, opens_at__lte=timezone.now())
    return due.update(status=Listing.Status.OPEN)


def end_due(listings: ListingQuerySet) -> int:
    """End those of *listings* whose time is over, and return how many."""
    return listings.live().filter(ends_at__lte=timezone.now()).update(status=Listing.Status.EXPIRED)


def _locked(listing_id: int) -> Listing:
    rows = Listing.objects.select_for_update(of=("self",)).select_related("item")
    listing = rows.filter(pk=listing_id).first()
    if listing is None:
        raise ListingClosed("This listing does not exist any more.")
    return listing


def _marked(item_id: int, fence: int) -> Item:
    """Return the item, and lock its row by writing the fence into it. Raises StaleFence."""
    Item.objects.fenced(fence).filter(pk=item_id).update()
    return Item.objects.get(pk=item_id)


def _refuse(listing: Listing, buyer: Player, price: int) -> None:
    name = listing.item.name
    if not listing.is_open_at(timezone.now()):
        raise ListingClosed(f"{name} is no longer for sale.")
    if buyer.pk == listing.seller_id:
        raise OwnListing(f"{name} is your own listing.")
    if listing.price != price:
        raise PriceChanged(f"The price of {name} is now {listing.price:,} gold, not {price:,}.")
    if buyer.funds < price:
        raise NotEnoughFunds(f"{name} costs {price:,} gold; you have {buyer.funds:,}.")


def _refuse_flash(sale: FlashSale, buyer: Player, price: int, *, is_left: bool) -> None:
    if not sale.is_open_at(timezone.now()):
        raise SaleOver(f"The sale of {sale.name} is over.")
    if FlashPurchase.objects.filter(sale=sale, buyer=buyer).exists():
        raise OneEach(f"You have already bought {sale.name}; each player may buy one.")
    if not is_left:
        raise SoldOut(f"{sale.name} is sold out.")
    if sale.price != price:
        raise PriceChanged(f"The price of {sale.name} is now {sale.price:,} gold, not {price:,}.")
    if buyer.funds < price:
        raise NotEnoughFunds(f"{sale.name} costs {price:,} gold; you have {buyer.funds:,}.")
