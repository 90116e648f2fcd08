"""
AddressBook: names that are found by prefix (chapter 6.1.2 of the book).

The entries are stored as rows, several in each field of one hash, which takes a tenth of the memory of a field for
each. A row has everything that a script needs to find the index members of its entry, so a rename is one step. If
many selected entries match a prefix, the best of them are stored under that prefix. The names of all books are a
sorted set of equal scores, so a page of books, also of those that share a prefix, is a range.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from components.exceptions import BookNotFound
from components.kit.client import AnyRedis, get_client
from components.kit.decoding import instant_of, number_of, text_of
from components.kit.ids import new_call
from components.kit.keyspace import parts
from components.kit.scripts import Script, idempotent, pipelined
from components.kit.sync_async import at_once, both
from components.kit.validation import check_int, check_name, check_several
from components.services.autocomplete.facts import BookInfo, Completions, Entry, RankedEntry
from components.services.autocomplete.folding import FOLDING, check_id, check_prefix, ways
from components.services.autocomplete.keys import ALL, BookKeys, names
from components.services.autocomplete.loading import BATCH, WRITE, Load, id_of, row
from components.services.counters import tally

#: The argument of load(): ids and labels.
Entries = Iterable[tuple[str | int, str]]
#: A function that is called with the number of entries loaded so far.
Progress = Callable[[int], object]

MAX_COMPLETIONS = 100
MAX_TOP = 1_000
_RERANKED = 1_000  # number of the best entries that are ranked again after a load

CALLED = Script("autocomplete/called")
COMPLETE = Script("autocomplete/complete")
ERASE = Script("autocomplete/erase")
LIST = Script("autocomplete/list")
LOOK = Script("autocomplete/look")
PRUNE = Script("autocomplete/prune")
SELECT = Script("autocomplete/select")


class AddressBook:
    """
    The address book *name*: one for each guild, tenant or model. Raises InvalidName. Every method raises
    RedisUnavailable.
    """

    def __init__(self, name: str) -> None:
        self.name = check_name("book", name)

    async def _add(self, client: AnyRedis, label: str, *, id: str | int, words: bool = True) -> bool:
        """
        Add the entry *id*, found by each word of *label*; if *words* is False, only by the beginning of the label.
        Return whether it is new. An existing entry is renamed. Raises InvalidValue.
        """
        return await self._write(client, row(id, label, words=words)) == 0

    add, aadd = both(_add)

    async def _remove(self, client: AnyRedis, id: str | int) -> bool:
        """Remove the entry *id*. Return whether it was there. Raises InvalidValue."""
        return await self._write(client, check_id(id)) == 1

    remove, aremove = both(_remove)

    async def _rename(self, client: AnyRedis, id: str | int, label: str, *, words: bool = True) -> bool:
        """Change the label of the entry *id*. Return whether the entry exists. Raises InvalidValue."""
        return await self._write(client, row(id, label, words=words), mode="rename") == 1

    rename, arename = both(_rename)

    async def _get(self, client: AnyRedis, id: str | int) -> Entry | None:
        """Return the entry *id*; None if it does not exist. Raises InvalidValue."""
        found = await self._look(client, 0, check_id(id))
        return Entry(found[0].id, found[0].label) if found else None

    get, aget = both(_get)

    async def _complete(
        self, client: AnyRedis, prefix: str, *, limit: int = 10, is_counted: bool = True
    ) -> Completions:
        """
        Return the entries with a word that begins with *prefix*: most selected first, then in alphabetical order. If
        *is_counted* is False, the figures of the control room leave the search out. Raises BookNotFound,
        InvalidValue.
        """
        typed = check_prefix(prefix)
        others = ["\1".join(way) for way in ways(typed.key, typed.joints)]
        most = check_int("limit", limit, 1, MAX_COMPLETIONS)
        found = await COMPLETE.run(client, self._keys, prefix=typed.key, limit=most, others=others)
        if not found:
            raise self._not_found()
        version, has_more, text = found
        if is_counted:
            tally("autocomplete:searched")
        return Completions(_entries(text), version=int(version), is_whole=not has_more)

    complete, acomplete = both(_complete)

    async def _called(self, client: AnyRedis, name: str, *, limit: int = 10) -> list[Entry]:
        """
        Return the entries whose whole label is *name*, apart from capitals and accents, ordered by id: "ann smith"
        finds "Ann Smith" and not "Ann Smithson". Only the first 1,000 entries whose labels end with *name* are
        considered. Raises BookNotFound, InvalidValue.
        """
        wanted, most = check_prefix(name).key, check_int("limit", limit, 1, MAX_COMPLETIONS)
        found = await CALLED.run(client, self._keys, wanted=wanted, limit=most)
        if found is None:
            raise self._not_found()
        return _entries(found)

    called, acalled = both(_called)

    async def _select(self, client: AnyRedis, id: str | int) -> bool:
        """
        Record that the entry *id* was chosen, so that it ranks higher. Return whether the entry exists. Raises
        BookNotFound, InvalidValue.
        """
        said = await SELECT.run(client, self._keys, id=check_id(id), times=1, call=new_call())
        if said < 0:
            raise self._not_found()
        tally("autocomplete:selected", said)
        return bool(said)

    select, aselect = both(_select)

    async def _top(self, client: AnyRedis, limit: int = 10) -> list[RankedEntry]:
        """Return the entries that were selected most often and most recently, best first. Raises InvalidValue."""
        return await self._look(client, check_int("limit", limit, 1, MAX_TOP))

    top, atop = both(_top)

    async def _count(self, client: AnyRedis) -> int:
        """Return how many entries there are."""
        return number_of(await idempotent(lambda: client.hget(self._keys.book, "count")))

    count, acount = both(_count)

    async def _info(self, client: AnyRedis) -> BookInfo:
        """Return the state of the book. Raises BookNotFound."""
        [info] = await look(client, [self.name])
        if info is None:
            raise self._not_found()
        return info

    info, ainfo = both(_info)

    async def _load(
        self,
        client: AnyRedis,
        entries: Entries,
        *,
        replace: bool = False,
        words: bool = True,
        progress: Progress | None = None,
    ) -> int:
        """
        Add many entries, given as pairs of id and label. Return how many were given.

        With *replace*, they replace the entries of the book once all are stored; entries added during the load stay.
        If an entry is added, removed or renamed during the load, that change wins over the loaded entry. *progress*
        is called now and then with the number of entries loaded so far. Raises InvalidValue, LoadSuperseded.
        """
        load = Load(self.name, replaces=replace)
        await load.begin(client)
        done = await load.write_all(client, entries, words, progress)
        await load.finish(client)
        if replace:
            await self._prune(client)
        await self._rerank(client, await self._ranked(client, -_RERANKED, -1))
        await self._list(client)
        return done

    load, aload = both(_load)

    async def _vacate(self, client: AnyRedis) -> bool:
        """Remove the book if it is empty and no load is running. Return whether the book is gone."""
        if not await ERASE.run(client, self._keys, which="vacant"):
            return False
        await idempotent(lambda: client.zrem(names(ALL), self.name))
        if await idempotent(lambda: client.exists(self._keys.book)):  # created again in the meantime
            await self._list(client)
            return False
        return True

    vacate, avacate = both(_vacate)

    async def _erase(self, client: AnyRedis) -> None:
        """Remove the book and everything that is stored about it."""
        # The list comes first: an entry that is added in the meantime puts the book back on it.
        await idempotent(lambda: client.zrem(names(ALL), self.name))
        await ERASE.run(client, self._keys, which="any")

    erase, aerase = both(_erase)

    async def _write(self, client: AnyRedis, written: str, *, mode: str = "put") -> int:
        """Write a row, or remove the entry of an id. Return 1 if the entry existed, else 0."""
        said = await WRITE.run(
            client, self._keys, token="", mode=mode, folding=FOLDING, call=new_call(), given=[written]
        )
        _new, there, is_listed = map(int, said.split())
        if not is_listed:
            await self._list(client)
        if there and "\1" in written:
            await self._rerank(client, [id_of(written)])
        return there

    async def _look(self, client: AnyRedis, best: int, *ids: str) -> list[RankedEntry]:
        found = await LOOK.run(client, self._keys, best=best, ids=ids)
        return [RankedEntry(text_of(one), text_of(label), _weight(weight)) for one, label, weight in found]

    async def _prune(self, client: AnyRedis) -> None:
        """Forget the ranks of entries that a load did not contain."""
        first = 0
        while ids := await self._ranked(client, first, first + BATCH - 1):
            first += BATCH - await PRUNE.run(client, self._keys, ids=ids)

    async def _ranked(self, client: AnyRedis, first: int, last: int) -> list[bytes]:
        return list(await idempotent(lambda: client.zrange(self._keys.ranks, first, last)))

    async def _rerank(self, client: AnyRedis, ids: Sequence[str | bytes]) -> None:
        """Rank the selected ones of these entries again under their prefixes, because their names changed."""
        keys = self._keys
        for some in parts(ids, BATCH):
            calls = [SELECT.call(keys, id=one, times=0, call=new_call()) for one in some]
            await SELECT.amany(client, calls)

    async def _list(self, client: AnyRedis) -> None:
        await idempotent(lambda: client.zadd(names(ALL), {self.name: 0}))
        await LIST.run(client, self._keys)

    @property
    def _keys(self) -> BookKeys:
        return BookKeys(self.name)  # built at each use, because the key prefix is a setting

    def _not_found(self) -> BookNotFound:
        return BookNotFound(f"There is no address book {self.name!r}. Load it, or add an entry to it, first.")


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


def _entries(text: bytes) -> list[Entry]:
    found = (each.partition("\1") for each in text_of(text).split("\2")[1:])
    return [Entry(known_by, label) for known_by, _, label in found]


def _weight(raw: bytes) -> float:
    try:
        return float(raw)
    except ValueError:
        return 0.0


async def look(client: AnyRedis, books: Sequence[str]) -> list[BookInfo | None]:
    """Return the state of these books, None for each that does not exist, in one round trip to each node."""

    def add(pipe: Any, book: str) -> None:
        keys = BookKeys(book)
        pipe.hgetall(keys.book)
        pipe.zcard(keys.entries)
        pipe.zcard(keys.ranks)
        pipe.hget(keys.loading, "count")
        pipe.exists(keys.loading)
        for key in (keys.book, keys.entries, keys.rows, keys.selected, keys.ranks, keys.tops):
            pipe.memory_usage(key)

    found = iter(await pipelined(client, books, add, without_right=True))
    answers = zip(*[found] * 11, strict=True)
    return [_read(name, *each) for name, each in zip(books, answers, strict=True)]


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
        bytes=sum(size or 0 for size in sizes) or None,
        version=version,
        changed_at=instant_of(version / 1_000),
        loaded_at=instant_of(loaded_at / 1_000) if loaded_at else None,
        loading=number_of(loaded) if is_loading else None,
    )


def _range(beginning: str) -> tuple[bytes, bytes]:
    """Return the bounds of the names with this *beginning*. The last byte of the upper one never occurs in UTF-8."""
    begun = b"[" + beginning.encode()
    return (begun, begun + b"\xff") if beginning else (b"-", b"+")


async def _names(client: AnyRedis, beginning: str, offset: int, limit: int) -> list[str]:
    first, last = _range(beginning)
    found = await idempotent(lambda: client.zrangebylex(names(ALL), first, last, start=offset, num=limit))
    return [text_of(name) for name in found]
