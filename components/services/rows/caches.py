"""
RowCache: rows as JSON in Redis, loaded anew every so often (Redis in Action, 2.4), and never older than they may be.

A row on the schedule is loaded by a daemon, whoever reads it or not; others are loaded when they are missed, by who
misses them (loading.py). A row that nobody loads anew, because all daemons are dead, is no longer there for readers
when its delay and a lease have passed. No method waits for a database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.scripts import Script
from components.kit.values import check_seconds
from components.services.rows.controls import refresh, schedule
from components.services.rows.core import (
    LEASE,
    by_bucket,
    check_cache_name,
    check_delay,
    check_key,
    each_once,
    member,
    tell,
)
from components.services.rows.hits import tally_reading
from components.services.rows.loading import Load, LoadingReader
from components.services.rows.reading import Reading
from components.services.rows.records import Row
from components.services.rows.shapes import Shape

_unschedule = Script("rows/unschedule")
_invalidate = Script("rows/invalidate")


class RowCache:
    """
    The rows called *name*, text without a colon, of one *shape*. A row has a key: text, or a whole number.

    Raises InvalidName. Every method raises RedisUnavailable, and InvalidName for what can be no key.
    """

    def __init__(self, name: str, shape: Shape) -> None:
        self.name = check_cache_name(name)
        self.shape = shape

    def schedule(self, key: str | int, delay: float) -> None:
        """
        Let the row be loaded now, and again every *delay* seconds; 0 or less unschedules it, as in the book.

        A row that is on the schedule has the new delay from now on. Raises InvalidDuration.
        """
        at_once(self._schedule(get_client(), {key: delay}))

    async def aschedule(self, key: str | int, delay: float) -> None:
        """schedule(), awaited."""
        await self._schedule(get_async_client(), {key: delay})

    def schedule_many(self, delays: Mapping[str | int, float]) -> None:
        """schedule() of several, by their keys, in one round trip to each node."""
        at_once(self._schedule(get_client(), delays))

    async def aschedule_many(self, delays: Mapping[str | int, float]) -> None:
        """schedule_many(), awaited."""
        await self._schedule(get_async_client(), delays)

    def unschedule(self, *keys: str | int) -> None:
        """Forget these rows. Nobody stores them any more who loads them now."""
        at_once(self._tell(get_client(), _unschedule, "unschedule", keys))

    async def aunschedule(self, *keys: str | int) -> None:
        """unschedule(), awaited."""
        await self._tell(get_async_client(), _unschedule, "unschedule", keys)

    def invalidate(self, *keys: str | int) -> None:
        """
        These rows have changed: nobody reads them as they were, and what was loaded before this is not stored.

        Those on the schedule are due now. Call it after the commit.
        """
        at_once(self._tell(get_client(), _invalidate, "invalidate", keys))

    async def ainvalidate(self, *keys: str | int) -> None:
        """invalidate(), awaited."""
        await self._tell(get_async_client(), _invalidate, "invalidate", keys)

    def refresh(self, *keys: str | int) -> set[str]:
        """
        Let these rows be loaded as soon as a daemon can; until then they are read as they are.

        A load that is under way is good, and followed by another. The keys of those that are on no schedule: nobody
        loads them again before they are too old.
        """
        return at_once(refresh(get_client(), self.name, keys))

    async def arefresh(self, *keys: str | int) -> set[str]:
        """refresh(), awaited."""
        return await refresh(get_async_client(), self.name, keys)

    def get(self, key: str | int, *, max_age: float | None = None, stale: bool = False) -> Row | None:
        """
        The row, as it was at most *max_age* seconds ago; None if it is not here so, or of another shape.

        A row that was deleted is here, and says so. With *stale* it may also be one that is too old, which is kept
        for as long again, at least a minute and at most a day. Raises InvalidDuration.
        """
        return at_once(self._get(get_client(), [key], max_age, stale)).get(check_key(key))

    async def aget(self, key: str | int, *, max_age: float | None = None, stale: bool = False) -> Row | None:
        """get(), awaited."""
        return (await self._get(get_async_client(), [key], max_age, stale)).get(check_key(key))

    def get_many(
        self, keys: Iterable[str | int], *, max_age: float | None = None, stale: bool = False
    ) -> dict[str, Row]:
        """get() of several, by their keys as text, in one round trip to each node; those not here are left out."""
        return at_once(self._get(get_client(), list(keys), max_age, stale))

    async def aget_many(
        self, keys: Iterable[str | int], *, max_age: float | None = None, stale: bool = False
    ) -> dict[str, Row]:
        """get_many(), awaited."""
        return await self._get(get_async_client(), list(keys), max_age, stale)

    def get_or_load(
        self,
        keys: Iterable[str | int],
        load: Load,
        *,
        delay: float,
        wait: float = LEASE,
        max_age: float | None = None,
        stale: bool = False,
    ) -> dict[str, Row]:
        """
        All of these rows, also those that are deleted. What is not here is loaded with *load*, by one for all.

        The others wait for *wait* seconds, or with *stale* take what is here. A row that is on no schedule is good
        for *delay* seconds. Raises RowNotLoaded, RowNotSerializable, RowTooLarge, InvalidDuration, and what *load*
        raises.
        """
        reader = self._loading(load, delay, wait, max_age, stale)
        return at_once(reader.read(get_client(), each_once(keys)))

    async def aget_or_load(
        self,
        keys: Iterable[str | int],
        load: Load,
        *,
        delay: float,
        wait: float = LEASE,
        max_age: float | None = None,
        stale: bool = False,
    ) -> dict[str, Row]:
        """get_or_load(), awaited; what *load* returns is awaited if it can be."""
        reader = self._loading(load, delay, wait, max_age, stale)
        return await reader.read(get_async_client(), each_once(keys))

    def _loading(
        self, load: Load, delay: float, wait: float, max_age: float | None, stale: bool
    ) -> LoadingReader:
        return LoadingReader(
            self.name,
            self.shape,
            load,
            delay=check_seconds("delay", delay),
            wait=check_seconds("wait", wait, may_be_zero=True),
            max_age=None if max_age is None else check_seconds("max_age", max_age),
            stale=stale,
        )

    async def _get(
        self, client: AnyRedis, keys: Sequence[str | int], max_age: float | None, stale: bool
    ) -> dict[str, Row]:
        oldest = None if max_age is None else check_seconds("max_age", max_age)
        wanted = each_once(keys)
        found = await Reading(self.name, self.shape, max_age=oldest).read(client, wanted)
        rows = found.good
        if stale:
            either = found.stale | found.good
            rows = {key: either[key] for key in wanted if key in either}
        tally_reading(self.name, len(wanted), len(rows))
        return rows

    async def _schedule(self, client: AnyRedis, delays: Mapping[str | int, float]) -> None:
        checked = {member(self.name, check_key(key)): check_delay(delay) for key, delay in delays.items()}
        await schedule(client, {each: delay for each, delay in checked.items() if delay})
        removed = by_bucket(each for each, delay in checked.items() if not delay)
        await tell(client, _unschedule, "unschedule", removed)

    async def _tell(self, client: AnyRedis, script: Script, which: str, keys: Sequence[str | int]) -> None:
        await tell(client, script, which, by_bucket(member(self.name, key) for key in each_once(keys)))
