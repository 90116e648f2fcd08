"""
The address books of guilds, one for each: the book's guild directory, and its rule against mail that nobody wants.

They follow who is in which guild, and what players are called; the ids in them are those of users, as everywhere.
Only a member of a guild may search it, and that is looked up at each search: who has left it finds nobody any more.
"""

from __future__ import annotations

from components.services.autocomplete.access import Readers
from components.services.autocomplete.models import ModelBooks
from project.market.books import for_sale

from .models import Membership

guilds = ModelBooks(Membership, "player__user__username", by="guild", name="guild:{}", id="player__user")


class GuildBooks(Readers):
    """COMPONENTS["BOOKS"] of the demo: guilds for their members, what is for sale for all, the rest for staff."""

    def may_search(self, user: str, book: str) -> bool:
        guild = guilds.value_of(book)
        if guild is not None and Membership.objects.filter(guild=guild, player__user_id=user).exists():
            return True
        return book == for_sale.name or super().may_search(user, book)
