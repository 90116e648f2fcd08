"""
Reading through: rows that are not here are loaded by whoever misses them first; the others wait, or take a stale row.

Who is first claims the row as a daemon does, and the same holds for him: what he loads is stored unless another has
claimed the row since, or somebody has invalidated it. Then he looks again rather than hand out what he loaded, since
somebody may have read a newer row meanwhile. A row that is on no schedule is good for *delay* seconds.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from components.exceptions import RedisUnavailable, RowNotLoaded, RowNotSerializable, RowTooLarge
from components.kit.client import AnyRedis
from components.services.rows.claims import Stored, begin, claims_of, release, store
from components.services.rows.core import LEASE, member, name_and_key
from components.services.rows.flights import Flights, flights_of, nap
from components.services.rows.hits import tally_reading
from components.services.rows.reading import Found, Reading
from components.services.rows.records import Claim, Row
from components.services.rows.shapes import Shape

_SHORTEST_NAP, _LONGEST_NAP = 0.002, 0.05  # seconds between two looks at what another process loads
_PATIENCE = 0.5  # seconds for which a reader relies on one of his own process to load a row

#: Given keys, it comes to the values of the rows that there are, in the order of the shape's columns.
Load: TypeAlias = Callable[
    [Sequence[str]], Mapping[str, Sequence[Any]] | Awaitable[Mapping[str, Sequence[Any]]]
]


class Unshared(Exception):
    """Raised by a load for a reason that only this reader has: the others of his process do not fail with him."""


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
        self._reading = Reading(name, shape, max_age=max_age)

    async def read(self, client: AnyRedis, wanted: Sequence[str]) -> dict[str, Row]:
        """All *wanted*, also those that are deleted. Raises RowNotLoaded, and what *load* raises."""
        found = await self._reading.read(client, wanted)
        rows = found.good
        if len(rows) < len(wanted):
            flights, mine = flights_of(client), set[str]()
            try:
                rows = await self._read_on(client, wanted, found, flights, mine)
            finally:
                flights.land(mine)
        tally_reading(self._name, len(wanted), len(found.good))
        return rows

    async def _read_on(
        self, client: AnyRedis, wanted: Sequence[str], found: Found, flights: Flights, mine: set[str]
    ) -> dict[str, Row]:
        """The same, of which *found* is there. *mine* are the rows that this reader has taken off with."""
        good, asked_at, is_patient = dict(found.good), found.now, True
        pause, until = _SHORTEST_NAP, time.monotonic() + self._wait
        while missing := [key for key in wanted if key not in good]:
            mine |= flights.take_off(member(self._name, key) for key in missing)
            others = await self._load_mine(client, missing, flights, mine, is_patient)
            if self._stale:
                good |= {key: found.stale[key] for key in others if key in found.stale}
            if len(others) == len(missing) and not others & good.keys():
                left = max(0.0, until - time.monotonic())
                if mine:  # another process is loading them
                    await nap(client, min(pause, left))
                    pause = min(_LONGEST_NAP, 2 * pause)
                elif flight := flights.find(member(self._name, missing[0])):
                    is_patient = await flight.wait(min(_PATIENCE, left))
            found = await self._reading.read(client, [key for key in missing if key not in good])
            good |= found.good
            # What was loaded since it was asked for is good, however long that took and however short it is good.
            good |= {key: row for key, row in found.stale.items() if row.since >= asked_at}
            if time.monotonic() >= until and (missing := [key for key in missing if key not in good]):
                raise self._late(missing)
        return {key: good[key] for key in wanted}

    async def _load_mine(
        self, client: AnyRedis, missing: Sequence[str], flights: Flights, mine: set[str], is_patient: bool
    ) -> set[str]:
        """Load what nobody else is loading; the keys of the rest. Who *is_patient* leaves others to their owners."""
        members = {member(self._name, key): key for key in missing}
        ready = [each for each in members if each in mine or not is_patient]
        token = secrets.token_hex(8)
        try:
            claims, waiting = await begin(client, ready, token, self._shape, self._max_age, LEASE)
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:  # cancelled, say: what was claimed, if it was, nobody is going to load
            await self._give_back(client, claims_of(ready, token), ready)
            raise
        errors = await self._fill(client, claims)
        shared = {each: error for each, error in errors.items() if not isinstance(error, Unshared)}
        flights.land(mine - waiting, shared)
        mine &= waiting
        for error in errors.values():
            raise error
        return {key for each, key in members.items() if each in waiting or each not in ready}

    async def _fill(self, client: AnyRedis, claims: Sequence[Claim]) -> dict[str, Exception]:
        """Load what is claimed and store it; why some could not be, which are given back."""
        members = [each for claim in claims for each in claim.members]
        rows: dict[str, Stored] = {}
        if not members:
            return {}
        try:
            loaded = self._load([name_and_key(each)[1] for each in members])
            values = await loaded if isinstance(loaded, Awaitable) else loaded
            errors = self._encode(members, values, rows)
            await store(client, claims, rows, lease=LEASE, good=self._delay)
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException as error:
            await self._give_back(client, claims, members)
            if not isinstance(error, Exception):
                raise
            return dict.fromkeys(members, error)
        if errors:
            await self._give_back(client, claims, errors)
        return errors

    async def _give_back(self, client: AnyRedis, claims: Sequence[Claim], members: Collection[str]) -> None:
        with suppress(RedisUnavailable):  # then the claims end with their leases
            await release(client, claims, members)

    def _encode(
        self, members: Sequence[str], values: Mapping[str, Sequence[Any]], rows: dict[str, Stored]
    ) -> dict[str, Exception]:
        """Add what can be stored to *rows*; why others cannot."""
        errors: dict[str, Exception] = {}
        for each in members:
            key = name_and_key(each)[1]
            try:
                is_there = key in values
                body = self._shape.encode(each, values[key]) if is_there else self._shape.deleted
                rows[each] = Stored(is_there, body)
            except (RowNotSerializable, RowTooLarge) as error:
                errors[each] = error
        return errors

    def _late(self, missing: Sequence[str]) -> RowNotLoaded:
        return RowNotLoaded(
            f"{len(missing)} rows of {self._name}, the first of them {missing[0]!r}, were not loaded "
            f"in {self._wait:g} s: another is loading them, or they changed all the time."
        )
