"""
How an AddressBook is loaded: one part is on its way while the next is prepared, so client and server work at once.
A part is sent by the alphabet: neighbours share most of the way through the index, in the processor's cache.

With replace, batches go to keys beside the book, which one step makes the book. That of a load that does not end
expire after an hour; a load that begins later ends one that runs. What joins, leaves or is renamed meanwhile is
written to both, and noted, so a part does not change it back (write.lua).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from types import TracebackType
from typing import Any, Self

from components.exceptions import LoadSuperseded
from components.kit.at_once import at_once
from components.kit.client import AnyRedis
from components.kit.scripts import ASYNCHRONOUS, Script, reading
from components.services.autocomplete.contacts import new_call
from components.services.autocomplete.core import BATCH, Core, Keys, row
from components.services.autocomplete.folding import FOLDING

#: Calls of the script that are sent together.
_TOGETHER = 4
#: Entries in a part: few at first, so Redis has work soon; in a loop always few, which waits while they are folded.
_FEW, _MANY = 1_000, 16_000
#: Halves of a part, so that one is packed while Redis works at the other.
_AT_ONCE = 2
#: How many of the best are put where they belong after a load.
_RERANKED = 1_000

_begin = Script("autocomplete/begin")
_finish = Script("autocomplete/finish")
_prune = Script("autocomplete/prune")
_write = Script("autocomplete/write")


class Loading(Core):
    """A book that can be loaded."""

    async def _load(
        self,
        client: AnyRedis,
        entries: Iterable[tuple[str | int, str]],
        replace: bool,
        words: bool,
        progress: Callable[[int], object] | None,
    ) -> int:
        token = new_call() if replace else ""
        if replace:
            await _begin.acall(client, keys=Keys(self.name, new_call()).begin, args=[token])
        done = await self._write_all(client, token, entries, words, progress)
        if replace:
            await self._finish(client, token)
        await self._rerank(client, await self._ranked(client, -_RERANKED, -1))
        await self._list(client)
        return done

    async def _write_all(
        self,
        client: AnyRedis,
        token: str,
        entries: Iterable[tuple[str | int, str]],
        words: bool,
        progress: Callable[[int], object] | None,
    ) -> int:
        is_async = isinstance(client, ASYNCHRONOUS)
        done = on_its_way = 0
        async with _OneAhead(is_async=is_async) as sending:
            for part in _parts(entries, words, _FEW if is_async else _MANY):
                await sending.landed()
                done = _told(done + on_its_way, progress)
                on_its_way = sum(map(len, part))
                await sending.start([self._write_many(client, token, rows) for rows in part])
            await sending.landed()
        return _told(done + on_its_way, progress)

    async def _write_many(self, client: AnyRedis, token: str, rows: Sequence[str]) -> None:
        batches = [rows[at : at + BATCH] for at in range(0, len(rows), BATCH)]
        calls = [(Keys(self.name, new_call()).write, [token, "put", FOLDING, *batch]) for batch in batches]
        for at in range(0, len(calls), _TOGETHER):
            if b"superseded" in await _write.amany(client, calls[at : at + _TOGETHER]):
                raise self._superseded()

    async def _finish(self, client: AnyRedis, token: str) -> None:
        if await _finish.acall(client, keys=Keys(self.name, new_call()).finish, args=[token, FOLDING]) < 0:
            raise self._superseded()
        its, first = Keys(self.name), 0
        while ids := await self._ranked(client, first, first + BATCH - 1):
            gone = await _prune.acall(client, keys=its.prune, args=ids)
            first += BATCH - gone

    async def _ranked(self, client: AnyRedis, first: int, last: int) -> list[bytes]:
        return list(await reading(lambda: client.zrange(Keys(self.name).ranks, first, last)))

    def _superseded(self) -> LoadSuperseded:
        return LoadSuperseded(
            f"Another load of the address book {self.name!r} began, or this one paused for an hour: load it anew."
        )


def _parts(entries: Iterable[tuple[str | int, str]], words: bool, most: int) -> Iterator[list[list[str]]]:
    """Their rows, many in halves that may be sent at once; if an id is among them twice, all in their order."""
    given, size = iter(entries), _FEW
    while rows := [row(entry, label, words=words) for entry, label in islice(given, size)]:
        if len({each.partition("\1")[0] for each in rows}) == len(rows):
            rows.sort(key=_search_key)
            half = max(_FEW, len(rows) // 2)
            yield [rows[:half], rows[half:]] if len(rows) > half else [rows]
        else:
            yield [rows]
        size = min(2 * size, most)


def _search_key(text: str) -> str:
    _id, shown, key, *_starts = text.split("\1")
    return key or shown.lower()


def _told(done: int, progress: Callable[[int], object] | None) -> int:
    if progress and done:
        progress(done)
    return done


class _OneAhead:
    """
    What is sent by other threads, or by tasks of the loop, one part at a time. At its end nothing is on its way.

    Threads send only: entries are taken from who gives them by the thread that may use its database.
    """

    def __init__(self, *, is_async: bool) -> None:
        self._threads = None if is_async else ThreadPoolExecutor(_AT_ONCE, "load")
        self._sent: list[Future[None] | asyncio.Task[None]] = []

    async def start(self, sendings: Sequence[Coroutine[Any, Any, None]]) -> None:
        if self._threads:
            self._sent = [self._threads.submit(at_once, each) for each in sendings]
        else:
            self._sent = [asyncio.create_task(each) for each in sendings]
            await asyncio.sleep(0)  # the requests go out

    async def landed(self) -> None:
        """Wait for what was sent last. Raises what that raised."""
        while self._sent:
            sent = self._sent.pop()
            if isinstance(sent, Future):
                sent.result()
            else:
                await sent

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The error that ends a load is the one to tell; those of what is on its way then are not."""
        if self._threads:
            self._threads.shutdown()
        tasks = [each for each in self._sent if isinstance(each, asyncio.Task)]
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
