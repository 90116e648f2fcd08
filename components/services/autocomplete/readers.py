"""
AddressBookReader: all books, by page, for the control room.

Their names are one index of equal scores: there is a book for each guild, tenant or model, and a page of them, or of
those whose names begin alike, is a range. Nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_client
from components.kit.scripts import reading
from components.kit.stored import number_of, text_of
from components.services.autocomplete import keys, usage
from components.services.autocomplete.core import ALL, Keys, look
from components.services.autocomplete.records import BookInfo
from components.services.autocomplete.usage import BookUsage


class AddressBookReader:
    """What there is. Every method raises RedisUnavailable."""

    def count(self, beginning: str = "") -> int:
        """How many there are whose names begin so."""
        return at_once(_count(get_client(), beginning))

    def page(self, beginning: str = "", *, offset: int = 0, limit: int = 50) -> list[BookInfo]:
        """Some of them, from the *offset*-th on, by name."""
        client = get_client()
        names = at_once(_names(client, beginning, offset, limit))
        return [info for info in at_once(look(client, names)) if info]

    def names(self) -> list[str]:
        """Those of all, in order."""
        return at_once(_names(get_client(), "", 0, -1))

    def find(self, name: str) -> BookInfo | None:
        """The one of this name; None if there is none."""
        return self.look([name])[0] if name else None

    def look(self, names: Sequence[str]) -> list[BookInfo | None]:
        """How those of these names stand; None for one that is not there. One round trip to each node."""
        return at_once(look(get_client(), names))

    def loading(self, name: str) -> int | None:
        """How many entries the load has that makes the book *name*; None if none does. It need not be there yet."""
        return at_once(_loading(get_client(), Keys(name)))

    def usage(self, names: Sequence[str]) -> list[BookUsage]:
        """How these are searched. One round trip to each node."""
        return at_once(usage.read(get_client(), names))


def _range(beginning: str) -> tuple[bytes, bytes]:
    """Of names that begin so: no UTF-8 has the last byte."""
    begun = b"[" + beginning.encode()
    return (begun, begun + b"\xff") if beginning else (b"-", b"+")


async def _count(client: AnyRedis, beginning: str) -> int:
    return int(await reading(lambda: client.zlexcount(keys.book_names(ALL), *_range(beginning))))


async def _names(client: AnyRedis, beginning: str, offset: int, limit: int) -> list[str]:
    names = await reading(
        lambda: client.zrangebylex(keys.book_names(ALL), *_range(beginning), start=offset, num=limit)
    )
    return [text_of(name) for name in names]


async def _loading(client: AnyRedis, its: Keys) -> int | None:
    token, count = await reading(lambda: client.hmget(its.loading, "token", "count"))
    return number_of(count) if token else None
