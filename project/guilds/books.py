"""
The address books of guilds, one for each: the guild directory of *Redis in Action*, and its rule against unwanted
mail.

They follow the members of guilds and the names of players; their ids are those of users. Only members of a guild may
search its book. Membership is looked up at each search, so former members find nobody.
"""

from __future__ import annotations

from components.services.autocomplete.access import Readers
from components.services.autocomplete.models import ModelBooks
from project.market.books import for_sale

from .models import Membership

guilds = ModelBooks(Membership, "player__user__username", by="guild", name="guild:{}", id="player__user")


class GuildBooks(Readers):
    """COMPONENTS["BOOKS"] of the demo: guilds for their members, listings for everybody, the rest for staff."""

    def may_search(self, user: str, book: str) -> bool:
        guild = guilds.value_of(book)
        if guild is not None and Membership.objects.filter(guild=guild, player__user_id=user).exists():
            return True
        return book == for_sale.name or super().may_search(user, book)
