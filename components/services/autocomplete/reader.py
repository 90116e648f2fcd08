"""
AddressBookReader: all address books, by page, for the control room.

There is a book for each guild, tenant or model, and one index of equal scores lists their names. So a page of them,
or of those whose names begin alike, is a range. Reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_client
from components.kit.scripts import idempotent
from components.kit.stored import number_of, text_of
from components.services.autocomplete import usage
from components.services.autocomplete.address_book import look
from components.services.autocomplete.facts import BookInfo
from components.services.autocomplete.keys import ALL, BookKeys, names
from components.services.autocomplete.usage import BookUsage


class AddressBookReader:
    """The address books that there are. Every method raises RedisUnavailable."""

    def count(self, beginning: str = "") -> int:
        """Return how many books have names that begin so."""
        return at_once(_count(get_client(), beginning))

    def page(self, beginning: str = "", *, offset: int = 0, limit: int = 50) -> list[BookInfo]:
        """Return some of the books whose names begin so, from the *offset*-th on, by name."""
        client = get_client()
        found = at_once(_names(client, beginning, offset, limit))
        return [info for info in at_once(look(client, found)) if info]

    def names(self) -> list[str]:
        """Return the names of all books, in order."""
        return at_once(_names(get_client(), "", 0, -1))

    def find(self, name: str) -> BookInfo | None:
        """Return the book of this name; None if there is none."""
        return self.look([name])[0] if name else None

    def look(self, names: Sequence[str]) -> list[BookInfo | None]:
        """Return the state of these books, None for one that is not there. It is one round trip to each node."""
        return at_once(look(get_client(), names))

    def loading(self, name: str) -> int | None:
        """Return how many entries the running load of the book *name* has; None if none is running. The book need
        not exist yet.
        """
        return at_once(_loading(get_client(), BookKeys(name).loading))

    def usage(self, names: Sequence[str]) -> list[BookUsage]:
        """Return the usage of these books. It is one round trip to each node."""
        return at_once(usage.read(get_client(), names))


def _range(beginning: str) -> tuple[bytes, bytes]:
    """Return the bounds of the names that begin so. No UTF-8 has the last byte of the upper bound."""
    begun = b"[" + beginning.encode()
    return (begun, begun + b"\xff") if beginning else (b"-", b"+")


async def _count(client: AnyRedis, beginning: str) -> int:
    return int(await idempotent(lambda: client.zlexcount(names(ALL), *_range(beginning))))


async def _names(client: AnyRedis, beginning: str, offset: int, limit: int) -> list[str]:
    first, last = _range(beginning)
    found = await idempotent(lambda: client.zrangebylex(names(ALL), first, last, start=offset, num=limit))
    return [text_of(name) for name in found]


async def _loading(client: AnyRedis, key: str) -> int | None:
    token, count = await idempotent(lambda: client.hmget(key, "token", "count"))
    return number_of(count) if token else None
