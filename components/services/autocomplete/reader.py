"""
AddressBookReader: the list of all address books, in pages, for the control room.

A sorted set of equal scores lists the names of all books. A page of books, also of those that share a prefix, is
therefore a range. Reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from components.kit.client import AnyRedis, get_client
from components.kit.scripts import idempotent
from components.kit.stored import number_of, text_of
from components.kit.twins import at_once
from components.kit.values import check_several
from components.services.autocomplete.address_book import look
from components.services.autocomplete.facts import BookInfo
from components.services.autocomplete.keys import ALL, BookKeys, names


class AddressBookReader:
    """All address books. Every method raises RedisUnavailable."""

    def count(self, beginning: str = "") -> int:
        """Return how many books have a name with this *beginning*."""
        client = get_client()
        return int(at_once(idempotent(lambda: client.zlexcount(names(ALL), *_range(beginning)))))

    def page(self, beginning: str = "", *, offset: int = 0, limit: int = 50) -> list[BookInfo]:
        """Return a page of the books whose names have this *beginning*, ordered by name, from the *offset*-th on."""
        client = get_client()
        found = at_once(_names(client, beginning, offset, limit))
        return [info for info in at_once(look(client, found)) if info]

    def names(self) -> list[str]:
        """Return the names of all books, in order."""
        return at_once(_names(get_client(), "", 0, -1))

    def find(self, name: str) -> BookInfo | None:
        """Return the book with this name; None if there is none."""
        return self.look([name])[0] if name else None

    def look(self, names: Sequence[str]) -> list[BookInfo | None]:
        """Return the state of these books, None for each that does not exist, in one round trip to each node."""
        return at_once(look(get_client(), check_several("books", names)))

    def loading(self, name: str) -> int | None:
        """
        Return how many entries the running load of a book has, which may not exist yet; None if no load is running.
        """
        client, key = get_client(), BookKeys(name).loading
        token, count = at_once(idempotent(lambda: client.hmget(key, "token", "count")))
        return number_of(count) if token else None


def _range(beginning: str) -> tuple[bytes, bytes]:
    """Return the bounds of the names with this *beginning*. The last byte of the upper one never occurs in UTF-8."""
    begun = b"[" + beginning.encode()
    return (begun, begun + b"\xff") if beginning else (b"-", b"+")


async def _names(client: AnyRedis, beginning: str, offset: int, limit: int) -> list[str]:
    first, last = _range(beginning)
    found = await idempotent(lambda: client.zrangebylex(names(ALL), first, last, start=offset, num=limit))
    return [text_of(name) for name in found]
