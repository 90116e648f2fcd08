"""
What the methods of a Semaphore and their twins have in common: the requests, and how one waits.

Who holds a permit is in one sorted set by the end of its lease, who waits in another by arrival; what is free is the
limit less the weights of the leases that have not ended, found anew by each script, by the server's clock. A waiter
blocks on a list of its own, and asks again when it is woken, at its heartbeat, and when a lease or a waiter's life
ends: so a wake-up that got lost, or a waiter that was killed, holds the others up for 0.8 seconds at most.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from components.exceptions import (
    InvalidDuration,
    InvalidLimit,
    PermitLost,
    PermitReleased,
    RedisUnavailable,
    SemaphoreFull,
)
from components.kit.at_once import answer, cancellations
from components.kit.client import SHORTEST_BLOCK, AnyRedis, longest_block
from components.kit.errors import redis_errors
from components.kit.leases import clock
from components.kit.scripts import Script
from components.kit.values import check_seconds
from components.services.counters import tally
from components.services.semaphores.controls import SemaphoreControls, check_count, release
from components.services.semaphores.ids import check_id, new_id
from components.services.semaphores.permits import Permit
from components.services.semaphores.records import SemaphoreInfo

BEAT = 0.4  # seconds between two heartbeats of a waiter
ALIVE = 0.8  # seconds after a heartbeat in which a waiter keeps its place: two beats
MAX_LEASE = 7 * 86_400  # seconds: who holds a permit for longer should say now and then that it is alive

_acquire = Script("semaphores/acquire")
_refresh = Script("semaphores/refresh")


@dataclass(frozen=True)
class Wish:
    """A permit that is asked for."""

    id: str
    weight: int
    #: Seconds; None for ever.
    wait: float | None
    is_renewed: bool


class Core(SemaphoreControls):
    """No more than *limit* permits at a time, each for *lease* seconds unless it is refreshed."""

    def __init__(self, name: str, *, limit: int, lease: float = 30.0) -> None:
        super().__init__(name)
        self.limit = check_count("limit", limit)
        self.lease = check_seconds("lease", lease)
        if lease > MAX_LEASE:
            raise InvalidDuration(
                f"The lease is {lease!r}; it must be {MAX_LEASE:,} seconds at most: refresh the permit instead."
            )

    def info(self) -> SemaphoreInfo:
        """How it stands now."""
        info = super().info()
        return replace(info, declared=self.limit) if info.declared is None else info

    def check(self, *, wait: float | None, weight: int) -> None:
        """Raises what acquire() would because of these: InvalidLimit, InvalidDuration."""
        if check_count("weight", weight) > self.limit:
            raise self._too_heavy(weight, self.limit)
        if wait is not None:
            check_seconds("wait", wait, may_be_zero=True)

    def _wish(
        self,
        wait: float | None,
        weight: int,
        owner: str | None,
        is_renewed: bool,
        *,
        is_coroutine: bool = False,
    ) -> Wish:
        self.check(wait=wait, weight=weight)
        return Wish(new_id(self.name, weight, owner, is_coroutine=is_coroutine), weight, wait, is_renewed)

    async def _wait(self, client: AnyRedis, wish: Wish) -> float | None:
        """Until when the permit is held, by clock(); None if none is free, and the wish is not to wait."""
        until = math.inf if wish.wait is None else clock() + wish.wait
        cancelled, has_waited = cancellations(), False
        while True:
            asked_at = clock()
            said, number = await self._ask(client, wish)
            if cancellations() > cancelled:
                raise asyncio.CancelledError
            left = until - clock()
            if said == b"granted":
                tally("semaphores:acquired")
                return asked_at + int(number) / 1e6
            if said == b"full":
                return None
            if said != b"wait":
                raise self._refused(wish, said, number)
            if left <= 0:
                raise self._full(wish)
            tally("semaphores:waited", 0 if has_waited else 1)
            has_waited = True
            await self._sleep(client, self._keys.wake + wish.id, min(left, BEAT, number / 1000))

    async def _ask(self, client: AnyRedis, wish: Wish) -> tuple[bytes, Any]:
        """What acquire.lua says now."""
        life = ALIVE if wish.wait != 0 else 0
        args = [self.name, wish.id, wish.weight, self.limit, *map(_microseconds, (self.lease, life))]
        said, number = await _acquire.acall(client, keys=self._keys.acquire, args=args)
        return said, number

    async def _sleep(self, client: AnyRedis, wake: str, seconds: float) -> None:
        """Until there is a reason to ask again, or *seconds* have passed."""
        timeout = max(SHORTEST_BLOCK, min(seconds, longest_block(client)))
        with (
            suppress(RedisUnavailable),
            redis_errors(),
        ):  # it keeps its place if Redis answers when it asks again
            await answer(client.blpop([wake], timeout=timeout))

    async def _leave(self, client: AnyRedis, wish: Wish) -> None:
        """Want the permit no more, whether or not it was granted."""
        await self._end(client, wish.id, f"leave {secrets.token_hex(8)}")

    async def _release(self, client: AnyRedis, permit: Permit | str) -> None:
        permit_id, held = self._own(permit)
        call = held.call if held else f"release {secrets.token_hex(8)}"
        if held:
            if held.is_released:
                raise _ended(permit_id, self.name, "release")
            held.drop()  # before, so that no renewal comes after
        ended_by = await self._end(client, permit_id, call)
        if held:
            held.end(is_released=ended_by.startswith("release"))
        if ended_by != call:
            raise _ended(permit_id, self.name, ended_by)

    async def _refresh(self, client: AnyRedis, permit: Permit | str) -> None:
        permit_id, held = self._own(permit)
        if held and held.is_released:
            raise _ended(permit_id, self.name, "release")
        asked_at, lease = clock(), held.lease if held else self.lease
        said = await _refresh.acall(client, keys=self._keys.refresh, args=[permit_id, _microseconds(lease)])
        if said != b"refreshed":
            if held:
                held.lose()
            raise _ended(permit_id, self.name, said.decode())
        if held:
            held.valid_until = asked_at + lease

    async def _end(self, client: AnyRedis, permit_id: str, call: str) -> str:
        ended_by = await release.acall(client, keys=self._keys.release, args=[permit_id, call])
        return str(ended_by.decode())

    def _own(self, permit: Permit | str) -> tuple[str, Permit | None]:
        """Its id, and the permit itself if it was given. Raises ForeignPermit."""
        held = permit if isinstance(permit, Permit) else None
        return check_id(self.name, held.id if held else permit), held

    def _refused(self, wish: Wish, said: bytes, why: int | bytes) -> Exception:
        if said == b"heavy":
            return self._too_heavy(wish.weight, int(why))
        return _ended(wish.id, self.name, bytes(why).decode())

    def _too_heavy(self, weight: int, limit: int) -> InvalidLimit:
        return InvalidLimit(
            f"The weight is {weight}, above the limit of the semaphore {self.name!r}, which is {limit}."
        )

    def _full(self, wish: Wish) -> SemaphoreFull:
        return SemaphoreFull(
            f"The semaphore {self.name!r} had no permit of weight {wish.weight} free within {wish.wait:g} s."
        )


def _ended(permit: str, name: str, ended_by: str) -> PermitLost | PermitReleased:
    which = f"The permit {permit} of the semaphore {name!r}"
    if ended_by.startswith("release"):
        return PermitReleased(f"{which} was released before.")
    tally("semaphores:lost")
    if ended_by.startswith("evict"):
        return PermitLost(f"{which} was evicted.")
    return PermitLost(f"{which} is not held any more: its lease ran out.")


def _microseconds(seconds: float) -> int:
    return round(seconds * 1e6)
