"""
Load: writes many entries into an address book, or into keys that will replace it.

One part is sent while the next is prepared, so client and server work in parallel. The entries of a part are sent in
alphabetical order, because neighbours share most of their path through the index, which then is in the processor's
cache.

The keys of a load that never ends expire an hour after its last part. A load that begins later ends one that is
running.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Self, TypeAlias

from components.exceptions import LoadSuperseded
from components.kit.client import AnyRedis
from components.kit.ids import new_call
from components.kit.keyspace import parts
from components.kit.scripts import ASYNCHRONOUS, Script, aside
from components.kit.sync_async import at_once
from components.services.autocomplete.folding import FOLDING, check_id, check_label
from components.services.autocomplete.keys import BookKeys

#: Entries in one call of a script, which blocks the server for some milliseconds.
BATCH = 250
_TOGETHER = 4  # calls of the script that are sent together
#: Entries in a part: few at first, so that Redis gets work soon; always few in an event loop, which waits while the
#: caller's iterator gives them.
_FEW, _MANY = 1_000, 16_000
_Pair: TypeAlias = tuple[str | int, str]
_AT_ONCE = 2  # halves of a part: one is packed while Redis works on the other

BEGIN = Script("autocomplete/begin")
FINISH = Script("autocomplete/finish")
WRITE = Script("autocomplete/write")


class Load:
    """A load of the address book *name*, into separate keys if it *replaces* the book."""

    def __init__(self, name: str, *, replaces: bool) -> None:
        self.name = name
        self._token = new_call() if replaces else ""
        self._keys = BookKeys(name)

    async def begin(self, client: AnyRedis) -> None:
        if self._token:
            await BEGIN.run(client, self._keys, call=self._token)

    async def write_all(
        self,
        client: AnyRedis,
        entries: Iterable[_Pair],
        words: bool,
        progress: Callable[[int], object] | None,
    ) -> int:
        """Write all entries. Return how many there are. Raises InvalidValue, LoadSuperseded."""
        is_async = isinstance(client, ASYNCHRONOUS)
        done = on_its_way = 0
        async with _OneAhead(is_async=is_async) as sending:
            for some in _parts(entries, _FEW if is_async else _MANY):
                part = await aside(client, _rows, some, words)
                await sending.landed()
                done = _told(done + on_its_way, progress)
                on_its_way = sum(map(len, part))
                await sending.start([self.write(client, rows) for rows in part])
            await sending.landed()
        return _told(done + on_its_way, progress)

    async def write(self, client: AnyRedis, rows: Sequence[str]) -> None:
        """Write these rows. Raises LoadSuperseded."""
        calls = [
            WRITE.call(
                self._keys,
                token=self._token,
                mode="put",
                folding=FOLDING,
                call=new_call(),
                given=some,
            )
            for some in parts(rows, BATCH)
        ]
        for together in parts(calls, _TOGETHER):
            if b"superseded" in await WRITE.amany(client, together):
                raise self._superseded()

    async def finish(self, client: AnyRedis) -> None:
        """Put the loaded entries in place of the book, if the load replaces it. Raises LoadSuperseded."""
        if not self._token:
            return
        count = await FINISH.run(client, self._keys, token=self._token, folding=FOLDING, call=new_call())
        if count < 0:
            raise self._superseded()

    def _superseded(self) -> LoadSuperseded:
        return LoadSuperseded(
            f"Another load of the address book {self.name!r} began, or this one paused for an hour. Load it again."
        )


def row(entry: str | int, label: str, *, words: bool) -> str:
    """Return the stored form of an entry. Raises InvalidValue."""
    known_by = check_id(entry)
    shown, spelling = check_label(label)
    key, most = spelling.key, len(spelling.starts) if words else 1
    starts = spelling.starts[1:most]
    if not key.isascii():
        starts = [len(key[:start].encode()) for start in starts]
    is_plain = key.encode() == shown.encode().lower()  # bytes.lower() changes only A to Z, as Lua does
    variants = [f"{number} {text}" for number, text in spelling.variants() if number < most]
    parts = [known_by, shown, "" if is_plain else key]
    return "\1".join([*parts, ",".join(map(str, starts)), *variants] if starts or variants else parts)


def id_of(row: str) -> str:
    """Return the id of an entry in its stored form."""
    return row.partition("\1")[0]


def _parts(entries: Iterable[_Pair], most: int) -> Iterator[list[_Pair]]:
    given, size = iter(entries), _FEW
    while part := list(islice(given, size)):
        yield part
        size = min(2 * size, most)


def _rows(part: Sequence[_Pair], words: bool) -> list[list[str]]:
    """Return the rows of a part; a large one in halves that may be sent at once, unless an id occurs twice in it."""
    rows = [row(entry, label, words=words) for entry, label in part]
    if len(set(map(id_of, rows))) < len(rows):
        return [rows]
    rows.sort(key=_search_key)
    half = max(_FEW, len(rows) // 2)
    return [rows[:half], rows[half:]] if len(rows) > half else [rows]


def _search_key(text: str) -> str:
    _id, shown, key, *_starts = text.split("\1")
    return key or shown.lower()


def _told(done: int, progress: Callable[[int], object] | None) -> int:
    if progress and done:
        progress(done)
    return done


class _OneAhead:
    """
    Sends one part at a time, in other threads or in tasks of the event loop. Nothing is in flight after its end.
    Threads only send: the entries come from the caller's thread, which may use its database.
    """

    def __init__(self, *, is_async: bool) -> None:
        self._threads = None if is_async else ThreadPoolExecutor(_AT_ONCE, "load")
        self._sent: list[Future[None] | asyncio.Task[None]] = []

    async def start(self, sendings: Sequence[Coroutine[Any, Any, None]]) -> None:
        if self._threads:
            self._sent = [self._threads.submit(at_once, each) for each in sendings]
        else:
            self._sent = [asyncio.create_task(each) for each in sendings]
            await asyncio.sleep(0)  # lets the loop send the requests

    async def landed(self) -> None:
        """Wait for the part that was sent last. Raises any error of that part."""
        while self._sent:
            sent = self._sent.pop()
            if isinstance(sent, Future):
                sent.result()
            else:
                await sent

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Wait for the part in flight. Its errors are not raised, because the error that ended the load is."""
        if self._threads:
            self._threads.shutdown()
        tasks = [each for each in self._sent if isinstance(each, asyncio.Task)]
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
