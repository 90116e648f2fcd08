"""
RowCache: rows as JSON in Redis, reloaded on a schedule (Redis in Action, 2.4), and never older than allowed.

A row on the schedule is loaded by a daemon, whether or not anybody reads it. Other rows are loaded by the reader that
misses them. If a row is not reloaded, because all daemons are dead, readers treat it as missing once its delay and a
lease have passed. No method waits for a database, except through the *load* function of get_or_load().

A reader gets all rows that it asks for, and the server's clock, in one round trip to each node. A single server is
asked with plain commands for the time and then for all rows, which takes half the time of a script. Nodes of a
cluster, and servers that many coroutines ask at once, run a script for each bucket or reader. Many rows are parsed as
one text, which is faster in Python than parsing many texts.
"""

import json
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from components.exceptions import RedisUnavailable, RowNotLoaded
from components.kit.client import AnyRedis
from components.kit.keyspace import BUCKETS, bucket, by_bucket, by_call, parts, stem
from components.kit.scripts import CLUSTERS, Call, Script, pause
from components.kit.sync_async import answer, both
from components.kit.validation import check_seconds
from components.services.counters import tally
from components.services.rows.controls import RowControls, schedule, unschedule
from components.services.rows.keys import RowKeys
from components.services.rows.loader import Claim, begin, claims_of, release, store, to_store
from components.services.rows.members import (
    AT_ONCE,
    LEASE,
    check_delay,
    check_key,
    each_once,
    member,
    members_of,
    micro,
    name_and_key,
)
from components.services.rows.shape import Row, Shape
from components.services.rows.single_flight import flights_of, has_landed

INVALIDATE = Script("rows/invalidate")
READ = Script("rows/read")

_SHORTEST_NAP, _LONGEST_NAP = 0.002, 0.05  # seconds between two checks of rows that another process loads
_PATIENCE = 0.5  # seconds for which a reader waits for another reader of its process to load a row

#: A function that takes keys and returns the values of the rows that exist, in the order of the shape's columns.
Load: TypeAlias = Callable[
    [Sequence[str]], Mapping[str, Sequence[Any]] | Awaitable[Mapping[str, Sequence[Any]]]
]

_loads = json.JSONDecoder().decode


class Unshared(Exception):
    """Raised by a load for a reason that concerns only this reader, so other readers of the process do not fail."""


@dataclass(slots=True)
class Found:
    """The rows that were found, by their keys."""

    good: dict[str, Row]
    #: The rows that are too old.
    stale: dict[str, Row]
    #: The microsecond at which they were read.
    now: int = 0


class RowCache(RowControls):
    """
    The rows called *name*, text without a colon, of one *shape*, with the methods of RowControls too. A row has a
    key: text, or a whole number. Raises InvalidName. Every method raises RedisUnavailable, and InvalidName if
    something cannot be a key.
    """

    def __init__(self, name: str, shape: Shape) -> None:
        super().__init__(name)
        self.shape = shape

    async def _schedule_many(self, client: AnyRedis, delays: Mapping[str | int, float]) -> None:
        """
        Schedule several rows to be loaded now and repeatedly, in one round trip to each node. *delays* has the
        seconds between two loads by key; 0 or less unschedules the row. Raises InvalidValue.
        """
        checked = {member(self.name, check_key(key)): check_delay(delay) for key, delay in delays.items()}
        await schedule(client, {each: delay for each, delay in checked.items() if delay})
        await unschedule(client, [each for each, delay in checked.items() if not delay])

    schedule_many, aschedule_many = both(_schedule_many)

    async def _schedule(self, client: AnyRedis, key: str | int, delay: float) -> None:
        """
        Schedule the row to be loaded now and every *delay* seconds; 0 or less unschedules it, as in the book. A row
        on the schedule gets the new delay. Raises InvalidValue.
        """
        await self._schedule_many(client, {key: delay})

    schedule, aschedule = both(_schedule)

    async def _invalidate(self, client: AnyRedis, *keys: str | int) -> None:
        """
        Drop these rows because they have changed; call this after the commit. Loads that began before this are not
        stored. Rows on the schedule become due now.
        """
        asked = by_call(members_of(self.name, keys), AT_ONCE)
        await INVALIDATE.amany(client, [INVALIDATE.call(RowKeys(tag), members=some) for tag, some in asked])

    invalidate, ainvalidate = both(_invalidate)

    async def _get_many(
        self,
        client: AnyRedis,
        keys: Iterable[str | int],
        *,
        max_age: float | None = None,
        stale: bool = False,
    ) -> dict[str, Row]:
        """Get several rows, as get() does, in one round trip to each node. Return the found ones by key."""
        oldest = None if max_age is None else check_seconds("max_age", max_age)
        wanted = each_once(keys)
        found = await self._read(client, wanted, oldest)
        rows = found.good
        if stale:
            either = found.stale | found.good
            rows = {key: either[key] for key in wanted if key in either}
        self._tally(len(wanted), len(rows))
        return rows

    get_many, aget_many = both(_get_many)

    async def _get(
        self, client: AnyRedis, key: str | int, *, max_age: float | None = None, stale: bool = False
    ) -> Row | None:
        """
        Return the row as it was at most *max_age* seconds ago; None if it is missing, older, or has another shape. A
        deleted row is returned, with *is_deleted* set. With *stale*, return the row even if it is too old; old rows
        are kept for the same time again, at least a minute and at most a day. Raises InvalidValue.
        """
        return (await self._get_many(client, [key], max_age=max_age, stale=stale)).get(check_key(key))

    get, aget = both(_get)

    async def _get_or_load(
        self,
        client: AnyRedis,
        keys: Iterable[str | int],
        load: Load,
        *,
        delay: float,
        wait: float = LEASE,
        max_age: float | None = None,
        stale: bool = False,
    ) -> dict[str, Row]:
        """
        Return all of these rows by key, including deleted ones. Missing rows are loaded with *load*.

        One reader loads a row for all. The others wait for up to *wait* seconds or, with *stale*, return the old row
        if there is one. A row that is not on the schedule is valid for *delay* seconds. The result of an asynchronous
        *load* is awaited. Raises RowNotLoaded, RowNotSerializable, RowTooLarge, InvalidValue, and any error of
        *load*.
        """
        check_seconds("delay", delay)
        check_seconds("wait", wait, may_be_zero=True)
        oldest = None if max_age is None else check_seconds("max_age", max_age)
        wanted = each_once(keys)
        found = await self._read(client, wanted, oldest)
        count, rows = len(found.good), found.good
        if count < len(wanted):
            miss = _Miss(self, client, load, delay, wait, oldest, stale)
            try:
                rows = await miss.read_on(wanted, found)
            finally:
                miss.land()
        self._tally(len(wanted), count)
        return rows

    get_or_load, aget_or_load = both(_get_or_load)

    def _tally(self, asked: int, found: int) -> None:
        """Count hits and misses, once for each call, however many rows it asks for."""
        tally("rows:hit", found, of=self.name)
        tally("rows:missed", asked - found, of=self.name)

    async def _read(self, client: AnyRedis, wanted: Sequence[str], max_age: float | None) -> Found:
        """Return the stored rows among *wanted*, which are distinct. Rows older than *max_age* count as stale."""
        found = Found({}, {})
        if not wanted:
            return found
        oldest = float("inf") if max_age is None else micro(max_age)
        groups = [wanted]
        if isinstance(client, CLUSTERS):
            members = {member(self.name, key): key for key in wanted}
            groups = [[members[each] for each in some] for some in by_bucket(members).values()]
        asked = [some for group in groups for some in parts(group, AT_ONCE)]
        for some, (now, text) in zip(asked, await self._ask(client, asked), strict=True):
            found.now = int(now)
            if not self._take(found, some, text, oldest):
                await self._take_singly(client, found, some, oldest)
        if len(asked) > 1:
            found.good, found.stale = (
                {key: rows[key] for key in wanted if key in rows} for rows in (found.good, found.stale)
            )
        return found

    async def _ask(self, client: AnyRedis, asked: Sequence[Sequence[str]]) -> list[Any]:
        """Return, for each list of keys, the microsecond and the rows as one text."""
        name, spelling = self.name, stem("rows", BUCKETS[0])
        calls: list[Call] = [([_key_of(spelling, name, key) for key in keys], ()) for keys in asked]
        return await READ.amany(client, calls)

    def _take(self, found: Found, keys: Sequence[str], text: bytes, oldest: float) -> bool:
        """Add these rows to *found*. Return whether all could be read."""
        good, too_old, now = found.good, found.stale, found.now
        shape, print_, oldest = self.shape, self.shape.fingerprint, now - oldest
        try:
            for key, stored in zip(keys, _loads(text.decode()), strict=True):
                if stored is not None and stored[2] == print_:
                    row = Row(shape, key, now, stored)
                    if stored[1] > now >= stored[0] >= oldest:
                        good[key] = row
                    else:
                        too_old[key] = row
        except (ValueError, RecursionError, TypeError, LookupError):
            return False
        return True

    async def _take_singly(self, client: AnyRedis, found: Found, keys: Sequence[str], oldest: float) -> None:
        """Read each row by itself, because one is damaged. That one counts as missing, so it is loaded again."""
        for key in keys:
            [(now, text)] = await self._ask(client, [[key]])
            self._take(Found(found.good, found.stale, int(now)), [key], text, oldest)


@dataclass
class _Miss:
    """
    The handling of one reader's missing rows: it loads those that nobody else is loading, and waits for the others.

    It claims a row as a daemon does, under the same rule: a loaded row is stored unless another loader has claimed
    it, or a write has invalidated it, since. Then it reads Redis again instead of returning the row that it loaded,
    because another reader may have seen a newer one meanwhile.
    """

    _cache: RowCache
    _client: AnyRedis
    _load: Load
    _delay: float
    _wait: float
    _max_age: float | None
    _stale: bool
    #: The members whose load this reader has started.
    _mine: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._flights = flights_of(self._client)

    async def read_on(self, wanted: Sequence[str], found: Found) -> dict[str, Row]:
        """Return all *wanted* rows; *found* are known already. Raises RowNotLoaded, and the errors of the load."""
        good, asked_at, is_patient = dict(found.good), found.now, True
        nap, until = _SHORTEST_NAP, time.monotonic() + self._wait
        while missing := [key for key in wanted if key not in good]:
            self._mine |= self._flights.take_off(member(self._cache.name, key) for key in missing)
            others = await self._load_mine(missing, is_patient)
            if self._stale:
                good |= {key: found.stale[key] for key in others if key in found.stale}
            if len(others) == len(missing) and not others & good.keys():
                left = max(0.0, until - time.monotonic())
                if self._mine:  # another process is loading them
                    await pause(self._client, min(nap, left))
                    nap = min(_LONGEST_NAP, 2 * nap)
                elif flight := self._flights.find(member(self._cache.name, missing[0])):
                    is_patient = await has_landed(flight, min(_PATIENCE, left))
            rest = [key for key in missing if key not in good]
            found = await self._cache._read(self._client, rest, self._max_age)
            good |= found.good
            # A row loaded since the request is valid, however long the load took and however soon the row expires.
            good |= {key: row for key, row in found.stale.items() if row.since >= asked_at}
            if time.monotonic() >= until and (missing := [key for key in missing if key not in good]):
                raise RowNotLoaded(
                    f"{len(missing)} rows of {self._cache.name}, the first of them {missing[0]!r}, were not loaded "
                    f"in {self._wait:g} s: another process is loading them, or they change too often."
                )
        return {key: good[key] for key in wanted}

    def land(self) -> None:
        """End the flights that are not over yet, because no more rows are needed, or because of an error."""
        self._flights.land(self._mine, {})

    async def _load_mine(self, missing: Sequence[str], is_patient: bool) -> set[str]:
        """
        Load the rows that nobody else is loading. Return the keys of the rest. A patient reader waits for rows that
        other readers of its process are loading.
        """
        members = {member(self._cache.name, key): key for key in missing}
        ready = [each for each in members if each in self._mine or not is_patient]
        token = secrets.token_hex(8)
        try:
            claims, waiting = await begin(self._client, ready, token, self._cache.shape, self._max_age, LEASE)
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:  # such as a cancellation: nobody would load rows that may have been claimed
            await self._give_back(claims_of(ready, token), ready)
            raise
        errors = await self._fill(claims)
        shared = {each: error for each, error in errors.items() if not isinstance(error, Unshared)}
        self._flights.land(self._mine - waiting, shared)
        self._mine &= waiting
        for error in errors.values():
            raise error
        return {key for each, key in members.items() if each in waiting or each not in ready}

    async def _fill(self, claims: Sequence[Claim]) -> dict[str, Exception]:
        """
        Load the claimed rows and store them. Return the errors of rows that could not be loaded and were given back.
        """
        members = [each for claim in claims for each in claim.members]
        if not members:
            return {}
        try:
            values = await answer(self._load([name_and_key(each)[1] for each in members]))
            rows, errors = to_store(self._cache.shape, members, values)
            await store(self._client, claims, rows, lease=LEASE, good=self._delay)
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException as error:
            await self._give_back(claims, members)
            if not isinstance(error, Exception):
                raise
            return dict.fromkeys(members, error)
        if errors:
            await self._give_back(claims, errors)
        return errors

    async def _give_back(self, claims: Sequence[Claim], members: Collection[str]) -> None:
        with suppress(RedisUnavailable):  # the claims then end with their leases
            await release(self._client, claims, members)


@lru_cache(maxsize=16_384)
def _key_of(spelling: str, name: str, key: str) -> str:
    """
    Return the key of a row in Redis. It is cached, because making it takes half the time of reading a row. *spelling*
    is the beginning of the keys, which changes with the prefix.
    """
    each = member(name, key)
    return RowKeys(bucket(each)).row_of(each)
