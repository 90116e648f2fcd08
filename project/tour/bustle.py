"""
The townsfolk, who visit the market and trade with each other, so that a demo that was born a minute ago has figures.

No figure is made up: each visit is a request, and each trade a purchase as the pages make it, with its lock, its row
and its tasks. They trade only among themselves, and offer again what they have bought, at the same price and at the
same place in the list. So what visitors find stays the same. Old trades are deleted.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from http.client import HTTPException
from itertools import count
from random import Random
from urllib.request import urlopen

from django.db.models import QuerySet
from django.utils import timezone

from components.exceptions import RedisUnavailable
from project.market import ledger, townsfolk, trading
from project.market.models import Listing, Player, Sale

#: Seconds between two visits, and visits between two trades.
PAUSE, TRADE = 1.0, 10
#: For how long a trade is kept.
_KEPT = timedelta(hours=1)
_PAGES = ("/", "/", "/?q=lantern", "/?q=elixir&kind=potion", "/flash/", "/players/")


def run(port: int) -> None:
    """Visit and trade until a signal arrives."""
    rng = Random()
    for number in count(1):
        visit(f"http://127.0.0.1:{port}{rng.choice(_PAGES)}")
        if not number % TRADE:
            trade(rng)
            forget()
        time.sleep(PAUSE * rng.uniform(0.5, 1.5))


def visit(url: str) -> None:
    """Open a page, if the site answers."""
    with suppress(OSError, HTTPException), urlopen(url, timeout=5) as page:
        page.read()


def trade(rng: Random) -> Sale | None:
    """Let one of them buy from another, and offer it again. Return the sale; None if nothing could be sold."""
    offers = Listing.objects.filter(status=Listing.Status.OPEN, seller__in=_people())
    listing = rng.choice([*offers.select_related("seller", "item")] or [None])
    if listing is None:
        return None
    buyers = _people().exclude(pk=listing.seller_id).filter(funds__gte=listing.price)
    buyer = rng.choice([*buyers] or [None])
    if buyer is None:
        return None
    with suppress(ledger.Refusal, RedisUnavailable):  # a visitor was faster, or has killed Redis
        sale = trading.buy(buyer, listing.pk, listing.price)
        trading.list_item(buyer, listing.item, listing.price, opens_at=listing.opens_at)
        return sale
    return None


def forget() -> int:
    """Delete their old sales. Return how many there were."""
    old = Sale.objects.filter(sold_at__lt=timezone.now() - _KEPT, seller__in=_people(), buyer__in=_people())
    listings = [*old.values_list("listing", flat=True)[:100]]
    Sale.objects.filter(listing__in=listings).delete()
    return Listing.objects.filter(pk__in=listings).delete()[0]


def _people() -> QuerySet[Player]:
    return Player.objects.filter(user__username__in=list(townsfolk.names()))
