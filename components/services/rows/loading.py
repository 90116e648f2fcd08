"""
Reading through: rows that are not here are loaded by whoever misses them first; the others wait, or take a stale row.

Who is first claims the row as a daemon does, and the same holds for him: what he loads is stored unless another has
claimed the row since, or somebody has invalidated it. Then he looks again rather than hand out what he loaded, since
somebody may have read a newer row meanwhile. A row that is on no schedule is good for *delay* seconds.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster

from components.client import AnyRedis
from components.exceptions import RedisUnavailable, RowNotLoaded, RowNotSerializable, RowTooLarge
from components.services.rows.claims import Stored, begin, release, store
from components.services.rows.core import LEASE, member, name_and_key
from components.services.rows.hits import tally_reading
from components.services.rows.reading import Reading
from components.services.rows.records import Claim, Row
from components.services.rows.shapes import Shape

_SHORTEST_NAP, _LONGEST_NAP = 0.002, 0.05  # seconds between two looks of one who waits

#: Given keys, it comes to the values of the rows that there are, in the order of the shape's columns.
Load: TypeAlias = Callable[
    [Sequence[str]], Mapping[str, Sequence[Any]] | Awaitable[Mapping[str, Sequence[Any]]]
]


class LoadingReader:
    """Reads the rows of one cache, and loads with *load* those that nobody else is loading."""

    def __init__(
        self,
        name: str,
        shape: Shape,
        load: Load,
        *,
        delay: float,
        wait: float,
        max_age: float | None = None,
        stale: bool = False,
    ) -> None:
        self._name, self._shape, self._load = name, shape, load
        self._delay, self._wait, self._max_age, self._stale = delay, wait, max_age, stale
        self._reading = Reading(name, shape, stale=True)

    async def read(self, client: AnyRedis, wanted: Sequence[str]) -> dict[str, Row]:
        """All *wanted*, also those that are deleted. Raises RowNotLoaded, and what *load* raises."""
        found: dict[str, Row] = {}
        nap, until, asked_at = _SHORTEST_NAP, time.monotonic() + self._wait, None
        were_there = 0
        while missing := [key for key in wanted if key not in found]:
            there = await self._reading.read(client, missing)
            found |= {key: row for key, row in there.items() if self._is_good(row, asked_at)}
            missing = [key for key in missing if key not in found]
            if asked_at is None:
                were_there = len(found)
            if not missing:
                break
            if asked_at is not None and time.monotonic() >= until:
                raise self._late(missing)
            members = [member(self._name, key) for key in missing]
            claims, waiting, now = await self._begin(client, members)
            asked_at = asked_at or now
            if claims:
                await self._fill(client, claims)
            elif waiting:
                taken = {key: there[key] for key in waiting if key in there} if self._stale else {}
                found |= taken
                if not taken:
                    await _nap(client, nap)
                    nap = min(_LONGEST_NAP, 2 * nap)
        tally_reading(self._name, len(wanted), were_there)
        return {key: found[key] for key in wanted}

    def _is_good(self, row: Row, asked_at: int | None) -> bool:
        """What was loaded since it was asked for is good, however long that took and however short a row is good."""
        if asked_at is not None and row.since >= asked_at:
            return True
        return not row.is_stale and (self._max_age is None or row.age <= self._max_age)

    async def _begin(self, client: AnyRedis, members: Sequence[str]) -> tuple[list[Claim], set[str], int]:
        """What to load, the keys of what others load, and the microsecond of that."""
        token = secrets.token_hex(8)
        claims, waiting, now = await begin(client, members, token, self._shape, self._max_age, LEASE)
        return claims, {name_and_key(each)[1] for each in waiting}, now

    async def _fill(self, client: AnyRedis, claims: Sequence[Claim]) -> None:
        """Load what is claimed and store it; what cannot be stored is given back, and why is raised."""
        members = [each for claim in claims for each in claim.members]
        rows: dict[str, Stored] = {}
        try:
            loaded = self._load([name_and_key(each)[1] for each in members])
            values = await loaded if isinstance(loaded, Awaitable) else loaded
            error = self._encode(members, values, rows)
            await store(client, claims, rows, lease=LEASE, good=self._delay)
            if error:
                raise error
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:
            with suppress(RedisUnavailable):  # then the claims end with their leases
                await release(client, claims, set(members) - rows.keys())
            raise

    def _encode(
        self, members: Sequence[str], values: Mapping[str, Sequence[Any]], rows: dict[str, Stored]
    ) -> Exception | None:
        """Add what can be stored to *rows*; why something cannot."""
        wrong: Exception | None = None
        for each in members:
            key = name_and_key(each)[1]
            try:
                is_there = key in values
                body = self._shape.encode(each, values[key]) if is_there else self._shape.deleted
                rows[each] = Stored(is_there, body)
            except (RowNotSerializable, RowTooLarge) as error:
                wrong = wrong or error
        return wrong

    def _late(self, missing: Sequence[str]) -> RowNotLoaded:
        return RowNotLoaded(
            f"{len(missing)} rows of {self._name}, the first of them {missing[0]!r}, were not loaded "
            f"in {self._wait:g} s: another is loading them, or they changed all the time."
        )


async def _nap(client: AnyRedis, seconds: float) -> None:
    if isinstance(client, AsyncRedis | AsyncRedisCluster):
        await asyncio.sleep(seconds)
    else:
        time.sleep(seconds)
