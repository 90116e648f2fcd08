"""
The market's transactions: one function per thing that can happen; it happens wholly or not at all.

Rows are locked in one order everywhere, so that no two transactions wait for each other: listings, then
the item, then players by ascending key. (SQLite has one writer at a time: BEGIN IMMEDIATE.) The clock is
read after the lock, so nobody buys what ended while they waited. Changes that a single condition decides
(a listing opens, a listing ends) are one conditional UPDATE and may be repeated without harm.

Nothing here knows of tasks: trading.py says what follows from a transaction.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from .models import Item, Listing, ListingQuerySet, Player, Sale


class Refusal(Exception):
    """The market does not do what was asked; the text tells the player why. Do not raise directly."""


class ListingClosed(Refusal):
    """The listing is sold, withdrawn, over, or has not opened yet."""


class PriceChanged(Refusal):
    """The price is not the one that the buyer saw."""


class NotEnoughFunds(Refusal):
    """The buyer's purse holds less than the price."""


class OwnListing(Refusal):
    """The buyer is the seller."""


class NotYours(Refusal):
    """The item or listing belongs to somebody else."""


class AlreadyListed(Refusal):
    """The item is on offer already."""


@transaction.atomic(durable=True)
def offer(
    seller_id: int, item_id: int, price: int, opens_at: datetime | None, ends_at: datetime | None
) -> Listing:
    """Put an item on offer. Raises NotYours, AlreadyListed."""
    earlier = list(Listing.objects.live().filter(item_id=item_id).select_for_update().order_by("pk"))
    item = Item.objects.select_for_update().get(pk=item_id)
    now = timezone.now()
    if item.owner_id != seller_id:
        raise NotYours(f"{item.name} does not belong to you.")
    end_due(Listing.objects.filter(pk__in=[listing.pk for listing in earlier]))
    if Listing.objects.live().filter(item=item).exists():
        raise AlreadyListed(f"{item.name} is listed already.")
    opens_at = opens_at or now
    status = Listing.Status.SCHEDULED if opens_at > now else Listing.Status.OPEN
    return Listing.objects.create(
        item=item, seller_id=seller_id, price=price, opens_at=opens_at, ends_at=ends_at, status=status
    )


@transaction.atomic(durable=True)
def take_back(seller_id: int, listing_id: int) -> Listing:
    """Withdraw a listing. Raises NotYours, ListingClosed."""
    listing = _locked(listing_id)
    if listing.seller_id != seller_id:
        raise NotYours("This listing belongs to somebody else.")
    if listing.status not in Listing.LIVE or listing.has_ended_at(timezone.now()):
        raise ListingClosed(f"The listing of {listing.item.name} is over already.")
    listing.status = Listing.Status.WITHDRAWN
    listing.save(update_fields=["status"])
    return listing


@transaction.atomic(durable=True)
def sell(listing_id: int, buyer_id: int, price: int) -> Sale:
    """Gold, item and listing change hands together. Raises the Refusal that fits."""
    listing = _locked(listing_id)
    item = Item.objects.select_for_update().get(pk=listing.item_id)
    parties = Player.objects.select_for_update().order_by("pk").in_bulk([buyer_id, listing.seller_id])
    buyer, seller = parties[buyer_id], parties[listing.seller_id]
    _refuse(listing, buyer, price)

    Player.objects.filter(pk=buyer.pk).update(funds=F("funds") - price)
    Player.objects.filter(pk=seller.pk).update(funds=F("funds") + price)
    item.owner = buyer
    item.save(update_fields=["owner"])
    listing.status = Listing.Status.SOLD
    listing.save(update_fields=["status"])
    return Sale.objects.create(listing=listing, buyer=buyer, seller=seller, price=price)


def open_due(listings: ListingQuerySet) -> int:
    """Open those of *listings* whose time has come; how many."""
    due = listings.filter(status=Listing.Status.SCHEDULED, opens_at__lte=timezone.now())
    return due.update(status=Listing.Status.OPEN)


def end_due(listings: ListingQuerySet) -> int:
    """End those of *listings* whose time is over; how many."""
    return listings.live().filter(ends_at__lte=timezone.now()).update(status=Listing.Status.EXPIRED)


def _locked(listing_id: int) -> Listing:
    rows = Listing.objects.select_for_update(of=("self",)).select_related("item")
    listing = rows.filter(pk=listing_id).first()
    if listing is None:
        raise ListingClosed("This listing does not exist any more.")
    return listing


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
