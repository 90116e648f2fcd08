"""
AddressBookReader: all books, by page, for the control room.

Their names are one set: there is one for each guild, tenant or model. Nothing changes.
"""

from __future__ import annotations

from components import keys
from components.client import get_client, redis_errors
from components.services.autocomplete.core import ALL, look
from components.services.autocomplete.records import BookInfo
from components.twins import answer, at_once


class AddressBookReader:
    """What there is. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """How many there are."""
        return len(at_once(_names()))

    def page(self, *, offset: int = 0, limit: int = 50) -> list[BookInfo]:
        """Some of them, from the *offset*-th on, by name."""
        names = at_once(_names())[offset : offset + limit]
        return [info for info in at_once(look(get_client(), names)) if info]

    def find(self, name: str) -> BookInfo | None:
        """The one of this name; None if there is none."""
        return at_once(look(get_client(), [name]))[0] if name else None

    def names(self) -> list[str]:
        """Those of all, in order."""
        return at_once(_names())


async def _names() -> list[str]:
    with redis_errors():
        found = await answer(get_client().smembers(keys.book_names(ALL)))
    return sorted(name.decode() for name in found)
