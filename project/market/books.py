"""
The market's address books, which its rows feed: players and items for the admin, and the names of what is for sale.

market.player, market.item   for users who may view them in the admin
market.listing               for all users who are logged in; one entry for each name that listings have

A listing that opens or ends by the clock sends no signal; the task that marks it updates the book. A search asks the
database which of the names are for sale at this moment. So an outdated book can at worst offer a name without a
listing.
"""

from __future__ import annotations

import logging

from django.db.models import Q
from django.utils import timezone

from components.exceptions import BookNotFound, InvalidValue, RedisUnavailable
from components.services.autocomplete import fold
from components.services.autocomplete.models import ModelBook
from components.services.autocomplete.widgets import Typed

from .models import Item, Listing, Player

logger = logging.getLogger(__name__)

#: The most names that one search shows: the best, by the ranking of the book.
MOST = 100

players = ModelBook(Player, "user__username")
items = ModelBook(Item, "name")
for_sale = ModelBook(
    Listing,
    "item__name",
    name="market.listing",
    id="item__name",
    rows=lambda: Listing.objects.open_at(timezone.now()),
)


def search(typed: Typed) -> tuple[Q, bool]:
    """
    Return the listings with the chosen name, or with names that begin like the text, and whether these are all.

    While Redis is away, names match that contain the text anywhere.
    """
    if typed.id and "\0" not in typed.id and fold(typed.id) == fold(typed.text):
        return Q(item__name=typed.id), True
    try:
        found = for_sale.book.complete(typed.text, limit=MOST)
    except InvalidValue:
        return Q(pk__in=[]), True
    except (BookNotFound, RedisUnavailable) as error:
        logger.warning("searching the market without its address book (%s)", error)
        return Q(item__name__icontains=typed.text.replace("\0", "")), True
    return Q(item__name__in=[each.id for each in found]), found.is_whole
