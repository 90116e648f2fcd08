"""
AddressBook: names that are found by how they begin (chapter 6.1.2 of the book).

Nothing is written to find them: one script that only reads answers, and a replica can run it. What was selected often
and lately comes first, the others by the alphabet of their search keys (folding.py). How a book stands in Redis is in
core.py. A load with replace=True builds the new book beside the old, which answers until one step puts it away
(loading.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from components.kit.at_once import at_once
from components.kit.client import get_async_client, get_client
from components.services.autocomplete.loading import Loading
from components.services.autocomplete.records import BookInfo, Completions, Entry, RankedEntry

#: What load() takes: ids and labels.
Entries = Iterable[tuple[str | int, str]]
#: What it tells: how many are done.
Progress = Callable[[int], object]


class AddressBook(Loading):
    """
    The address book *name*: one for each guild, tenant or model.

    Raises InvalidName. Every method raises RedisUnavailable.
    """

    def add(self, label: str, *, id: str | int, words: bool = True) -> bool:
        """
        Let *id* join under *label*, found by each word in it, or by its beginning alone; whether it is new.

        One that is there is renamed. Raises InvalidEntry.
        """
        return at_once(self._add(get_client(), label, id, words))

    async def aadd(self, label: str, *, id: str | int, words: bool = True) -> bool:
        """add(), awaited."""
        return await self._add(get_async_client(), label, id, words)

    def remove(self, id: str | int) -> bool:
        """Let *id* leave; whether it was there. Raises InvalidEntry."""
        return at_once(self._remove(get_client(), id))

    async def aremove(self, id: str | int) -> bool:
        """remove(), awaited."""
        return await self._remove(get_async_client(), id)

    def rename(self, id: str | int, label: str, *, words: bool = True) -> bool:
        """Give *id* another label, if it is there; whether it is. Raises InvalidEntry."""
        return at_once(self._rename(get_client(), id, label, words))

    async def arename(self, id: str | int, label: str, *, words: bool = True) -> bool:
        """rename(), awaited."""
        return await self._rename(get_async_client(), id, label, words)

    def get(self, id: str | int) -> Entry | None:
        """The entry *id*. Raises InvalidEntry."""
        return at_once(self._get(get_client(), id))

    async def aget(self, id: str | int) -> Entry | None:
        """get(), awaited."""
        return await self._get(get_async_client(), id)

    def complete(self, prefix: str, *, limit: int = 10) -> Completions:
        """
        The entries of which a word begins with *prefix*: the best selected first, then by the alphabet.

        Raises BookNotFound, InvalidPrefix, InvalidLimit.
        """
        return at_once(self._complete(get_client(), prefix, limit))

    async def acomplete(self, prefix: str, *, limit: int = 10) -> Completions:
        """complete(), awaited."""
        return await self._complete(get_async_client(), prefix, limit)

    def called(self, name: str, *, limit: int = 10) -> list[Entry]:
        """
        The entries whose whole label folds to what *name* does: "ann smith" calls for "Ann Smith" and not for "Ann
        Smithson". By id; among the first 1,000 of which a last part is that.

        Raises BookNotFound, InvalidPrefix, InvalidLimit.
        """
        return at_once(self._called(get_client(), name, limit))

    async def acalled(self, name: str, *, limit: int = 10) -> list[Entry]:
        """called(), awaited."""
        return await self._called(get_async_client(), name, limit)

    def select(self, id: str | int) -> bool:
        """*id* was chosen, so it comes before others; whether it is there. Raises BookNotFound, InvalidEntry."""
        return at_once(self._select(get_client(), id))

    async def aselect(self, id: str | int) -> bool:
        """select(), awaited."""
        return await self._select(get_async_client(), id)

    def top(self, limit: int = 10) -> list[RankedEntry]:
        """Those that were selected most, and lately. Raises InvalidLimit."""
        return at_once(self._top(get_client(), limit))

    async def atop(self, limit: int = 10) -> list[RankedEntry]:
        """top(), awaited."""
        return await self._top(get_async_client(), limit)

    def count(self) -> int:
        """How many entries there are."""
        return at_once(self._count(get_client()))

    async def acount(self) -> int:
        """count(), awaited."""
        return await self._count(get_async_client())

    def info(self) -> BookInfo:
        """How it stands. Raises BookNotFound."""
        return at_once(self._info(get_client()))

    async def ainfo(self) -> BookInfo:
        """info(), awaited."""
        return await self._info(get_async_client())

    def load(
        self,
        entries: Entries,
        *,
        replace: bool = False,
        words: bool = True,
        progress: Progress | None = None,
    ) -> int:
        """
        Add many, ids and labels; how many were given. *progress* is told how many are done, now and then.

        With *replace* they become the book once all are there: whoever is not among them leaves, unless he joined
        meanwhile. What changes meanwhile counts, and not what is loaded. Raises InvalidEntry, LoadSuperseded.
        """
        return at_once(self._load(get_client(), entries, replace, words, progress))

    async def aload(
        self,
        entries: Entries,
        *,
        replace: bool = False,
        words: bool = True,
        progress: Progress | None = None,
    ) -> int:
        """load(), awaited."""
        return await self._load(get_async_client(), entries, replace, words, progress)

    def vacate(self) -> bool:
        """Remove the book if all have left it and none is loaded. Return whether there is no such book now."""
        return at_once(self._vacate(get_client()))

    async def avacate(self) -> bool:
        """vacate(), awaited."""
        return await self._vacate(get_async_client())

    def erase(self) -> None:
        """Remove the book, and all that is known of it."""
        at_once(self._erase(get_client()))

    async def aerase(self) -> None:
        """erase(), awaited."""
        await self._erase(get_async_client())
