"""
What the methods of an AddressBook and their twins have in common: the keys, the requests, what the answers say.

An index of equal scores holds each name from its beginning and from each word on, with the id behind, so a prefix is
a range of it. What an entry is stands in rows: a few to a field of one hash, which costs a tenth of a field each. A
row has all that a script needs to find the members of its entry, so a rename is one step, and a reader sees the old
name or the new one. What was selected has an index of its own, so the best are found without looking at all others;
where many of the selected match, the best of them are kept with the prefix. Nothing happens when a process dies.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from components.exceptions import BookNotFound
from components.kit.client import AnyRedis
from components.kit.scripts import Script, reading
from components.kit.stored import number_of, text_of
from components.kit.values import check_name
from components.services.autocomplete import keys, usage
from components.services.autocomplete.contacts import check_limit, new_call
from components.services.autocomplete.folding import FOLDING, check_id, check_label, check_prefix, ways
from components.services.autocomplete.records import BookInfo, Completions, Entry, RankedEntry, instant
from components.services.counters import tally

MAX_COMPLETIONS = 100
MAX_TOP = 1_000
#: Entries in one call of a script, which lets nobody else in meanwhile: some milliseconds.
BATCH = 250

#: The keys of all books lie where their number is this.
ALL = "all"

_called = Script("autocomplete/called")
_complete = Script("autocomplete/complete")
_list = Script("autocomplete/list")
_look = Script("autocomplete/look")
_select = Script("autocomplete/select")
_vacate = Script("autocomplete/vacate")
_write = Script("autocomplete/write")


def _looked_at(name: str) -> list[str]:
    """The keys that an answer comes from: those of Keys take ten microseconds to write."""
    shown = keys.book(name), keys.book_entries(name), keys.book_rows(name)
    return [*shown, keys.book_selected(name), keys.book_ranks(name), keys.book_tops(name)]


class Keys:
    """The keys of one book, for each script."""

    def __init__(self, name: str, call: str = "none") -> None:
        self.book, self.rows, self.ranks = keys.book(name), keys.book_rows(name), keys.book_ranks(name)
        self.entries, self.selected = keys.book_entries(name), keys.book_selected(name)
        self.loading, tops = keys.book_loading(name), keys.book_tops(name)
        coming = [keys.book_next_entries(name), keys.book_next_rows(name), keys.book_next_selected(name)]
        changed, answered = keys.book_changed(name), keys.book_call(name, call)
        self.all = _looked_at(name)
        self.write = [*self.all, self.loading, *coming, changed, answered]
        self.erase = [*self.write[:-1], keys.book_usage(name)]
        self.vacate = [*self.all, self.loading, keys.book_usage(name)]
        self.prune = [self.rows, self.ranks, coming[1]]
        self.begin = [self.loading, *coming, changed, answered]
        self.select = [self.book, self.rows, self.selected, self.ranks, tops, *coming[1:], answered]
        live = [self.book, self.entries, self.rows, self.selected, tops]
        self.finish = [*live, self.loading, *coming, changed, answered]


class Core:
    """The book *name*."""

    def __init__(self, name: str) -> None:
        self.name = check_name("book", name)

    async def _add(self, client: AnyRedis, label: str, entry: str | int, words: bool) -> bool:
        return await self._write(client, row(entry, label, words=words)) == 0

    async def _remove(self, client: AnyRedis, entry: str | int) -> bool:
        return await self._write(client, check_id(entry)) == 1

    async def _rename(self, client: AnyRedis, entry: str | int, label: str, words: bool) -> bool:
        return await self._write(client, row(entry, label, words=words), mode="rename") == 1

    async def _write(self, client: AnyRedis, *rows: str, mode: str = "put") -> int:
        """How many of them were there before."""
        its = Keys(self.name, new_call())
        said = await _write.acall(client, keys=its.write, args=["", mode, FOLDING, *rows])
        _new, there, is_listed = map(int, said.split())
        if not is_listed:
            await self._list(client)
        if there:
            await self._rerank(client, [each.partition("\1")[0] for each in rows if "\1" in each])
        return there

    async def _get(self, client: AnyRedis, entry: str | int) -> Entry | None:
        found = await self._look(client, 0, check_id(entry))
        return Entry(found[0].id, found[0].label) if found else None

    async def _top(self, client: AnyRedis, limit: int) -> list[RankedEntry]:
        return await self._look(client, check_limit(limit, MAX_TOP))

    async def _look(self, client: AnyRedis, best: int, *ids: str) -> list[RankedEntry]:
        its = Keys(self.name)
        found = await _look.acall(client, keys=[its.rows, its.ranks], args=[best, *ids])
        return [RankedEntry(text_of(one), text_of(label), _weight(weight)) for one, label, weight in found]

    async def _complete(self, client: AnyRedis, prefix: str, limit: int) -> Completions:
        typed = check_prefix(prefix)
        others = ["\1".join(way) for way in ways(typed.key, typed.joints)]
        args = [typed.key, check_limit(limit, MAX_COMPLETIONS), *others]
        began = perf_counter()
        found = await _complete.acall(client, keys=_looked_at(self.name), args=args)
        if not found:
            raise self._not_found()
        usage.note(self.name, len(prefix), perf_counter() - began)
        version, has_more, text = found
        return Completions(_entries(text), version=int(version), is_whole=not has_more)

    async def _called(self, client: AnyRedis, name: str, limit: int) -> list[Entry]:
        args = [check_prefix(name).key, check_limit(limit, MAX_COMPLETIONS)]
        found = await _called.acall(client, keys=_looked_at(self.name)[:3], args=args)
        if found is None:
            raise self._not_found()
        return _entries(found)

    async def _select(self, client: AnyRedis, entry: str | int) -> bool:
        args = [check_id(entry), 1]
        said = await _select.acall(client, keys=Keys(self.name, new_call()).select, args=args)
        if said < 0:
            raise self._not_found()
        tally("autocomplete:selected", said)
        return bool(said)

    async def _count(self, client: AnyRedis) -> int:
        return number_of(await reading(lambda: client.hget(Keys(self.name).book, "count")))

    async def _info(self, client: AnyRedis) -> BookInfo:
        [info] = await look(client, [self.name])
        if info is None:
            raise self._not_found()
        return info

    async def _erase(self, client: AnyRedis) -> None:
        """First from the list: who adds to it meanwhile puts it there anew."""
        await reading(lambda: client.zrem(keys.book_names(ALL), self.name))
        await reading(lambda: client.unlink(*Keys(self.name).erase))

    async def _vacate(self, client: AnyRedis) -> bool:
        """Remove it from the list as well, but put it there again if somebody has made it anew meanwhile."""
        its = Keys(self.name)
        if not await _vacate.acall(client, keys=its.vacate, args=[]):
            return False
        await reading(lambda: client.zrem(keys.book_names(ALL), self.name))
        if await reading(lambda: client.exists(its.book)):
            await self._list(client)
            return False
        return True

    async def _rerank(self, client: AnyRedis, ids: Sequence[str | bytes]) -> None:
        """Their names changed: put those that were selected among the best of their prefixes."""
        for at in range(0, len(ids), BATCH):
            calls = [(Keys(self.name, new_call()).select, [one, 0]) for one in ids[at : at + BATCH]]
            await _select.amany(client, calls)

    async def _list(self, client: AnyRedis) -> None:
        await reading(lambda: client.zadd(keys.book_names(ALL), {self.name: 0}))
        await _list.acall(client, keys=[Keys(self.name).book], args=[1])

    def _not_found(self) -> BookNotFound:
        return BookNotFound(f"There is no address book {self.name!r}: load it, or add an entry to it.")


def _entries(text: bytes) -> list[Entry]:
    found = (each.partition("\1") for each in text_of(text).split("\2")[1:])
    return [Entry(known_by, label) for known_by, _, label in found]


def _weight(raw: bytes) -> float:
    try:
        return float(raw)
    except ValueError:
        return 0.0


def row(entry: str | int, label: str, *, words: bool) -> str:
    """An entry as Redis has it. Raises InvalidEntry."""
    known_by = check_id(entry)
    shown, spelling = check_label(label)
    key, most = spelling.key, len(spelling.starts) if words else 1
    starts = spelling.starts[1:most]
    if not key.isascii():
        starts = [len(key[:start].encode()) for start in starts]
    is_plain = key.encode() == shown.encode().lower()  # of bytes, this makes A to Z small, as Lua does
    variants = [f"{number} {text}" for number, text in spelling.variants() if number < most]
    parts = [known_by, shown, "" if is_plain else key]
    return "\1".join([*parts, ",".join(map(str, starts)), *variants] if starts or variants else parts)


async def look(client: AnyRedis, names: Sequence[str]) -> list[BookInfo | None]:
    """How these books stand now, in one round trip to each node; None for one that is not there."""

    def ask() -> Any:
        pipe = client.pipeline(transaction=False)
        for its in map(Keys, names):
            pipe.hgetall(its.book)
            pipe.zcard(its.entries)
            pipe.zcard(its.ranks)
            pipe.hget(its.loading, "count")
            pipe.exists(its.loading)
            for key in its.all:
                pipe.memory_usage(key)
        return pipe.execute()

    found = iter(await reading(ask) if names else [])
    answers = zip(*[found] * 11, strict=True)
    return [_read(name, *each) for name, each in zip(names, answers, strict=True)]


def _read(
    name: str,
    book: dict[bytes, bytes],
    members: int,
    selected: int,
    loaded: bytes | None,
    is_loading: int,
    *sizes: int | None,
) -> BookInfo | None:
    if b"version" not in book:
        return None
    version = number_of(book[b"version"])
    loaded_at = number_of(book.get(b"loaded_at"))
    return BookInfo(
        name=name,
        count=number_of(book.get(b"count")),
        members=members,
        selected=selected,
        is_outdated=int(book.get(b"folding", 0)) != FOLDING,
        bytes=sum(size or 0 for size in sizes),
        version=version,
        changed_at=instant(version),
        loaded_at=instant(loaded_at) if loaded_at else None,
        loading=number_of(loaded) if is_loading else None,
    )
