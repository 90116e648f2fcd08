"""
Semaphore: a counting semaphore that is fair, and whose permits are leased (chapter 6.3 of the book).

Permits are in one sorted set by the end of their lease, waiters in another by arrival. The number of free permits is
the limit minus the weights of the leases that have not ended. Each script counts it anew, by the server's clock, so
the permits of dead holders come back when their leases end. Only the head of the queue may be granted a permit:
nobody jumps the queue, and light permits do not starve a heavy one.

A waiter blocks on a list of its own. It asks again when it is woken, at its heartbeat, and when a lease ends or
another waiter counts as dead. A lost wake-up or a killed waiter therefore delays the others by at most 0.8 seconds.
"""

import asyncio
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from components.exceptions import InvalidValue, PermitLost, PermitReleased, RedisUnavailable, SemaphoreFull
from components.kit import leases
from components.kit.client import AnyRedis, get_client
from components.kit.decoding import instant_of, text_of
from components.kit.errors import redis_errors
from components.kit.ids import new_call
from components.kit.leases import BEAT, clock, server_clock, tell_waited, waiters_in
from components.kit.scripts import ASYNCHRONOUS, Script, pipelined, popped
from components.kit.sync_async import at_once, both, cancellations, to_its_end
from components.kit.validation import check_int, check_name, check_seconds
from components.services.counters import observe, pattern_of, tally, took
from components.services.semaphores.keys import SemaphoreKeys
from components.services.semaphores.permit import (
    Permit,
    acquisition,
    check_count,
    check_id,
    holder_of,
    new_id,
    weight_of,
)
from components.services.semaphores.reader import HolderInfo, SemaphoreInfo, WaiterInfo, look

MAX_LEASE = 7 * 86_400  # seconds: a holder that needs a permit for longer can refresh it

ACQUIRE = Script("semaphores/acquire")
HOLDERS = Script("semaphores/holders")
LIMIT = Script("semaphores/limit")
REFRESH = Script("semaphores/refresh")
RELEASE = Script("semaphores/release")


@dataclass(frozen=True)
class Wish:
    """A request for a permit."""

    id: str
    weight: int
    #: Seconds; None to wait without limit.
    wait: float | None
    is_renewed: bool


class SemaphoreControls:
    """
    Queries and changes that need only the *name* of a semaphore. Raises InvalidName.

    A limit that was set by hand overrides the limit that code declares, for everyone, until it is reset. A holder who
    was evicted learns of it when they refresh the permit or give it back; with auto_renewal, within a third of the
    lease. Every method raises RedisUnavailable.
    """

    def __init__(self, name: str) -> None:
        self.name = check_name("semaphore", name)

    def info(self) -> SemaphoreInfo:
        """Return the current state."""
        [info] = look(get_client(), [self.name])
        return info

    def holders(self, *, offset: int = 0, limit: int = 50) -> list[HolderInfo]:
        """Return a page of the holders, the earliest grant first. Raises InvalidValue."""
        check_int("offset", offset, 0)
        check_int("limit", limit, 0)
        found = at_once(HOLDERS.run(get_client(), self._keys, offset=offset, limit=limit))
        return [_holder(*row) for row in found if row[2] > 0]

    def holder(self, permit: str) -> HolderInfo | None:
        """Return the holder of the permit with this id; None if nobody holds it. Raises ForeignPermit."""
        client = get_client()
        check_id(self.name, permit)
        now = server_clock(client)
        keys = (self._keys.holders, self._keys.since)
        ends_at, since = at_once(pipelined(client, keys, lambda pipe, key: pipe.zscore(key, permit)))
        if since is None or ends_at is None or ends_at <= now:
            return None
        return _holder(permit.encode(), since, ends_at - now)

    def waiters(self, *, limit: int = 50) -> list[WaiterInfo]:
        """Return the first waiters, in order. Raises InvalidValue."""
        found = [(text_of(waiter), waited) for waiter, waited in waiters_in(get_client(), self._keys, limit)]
        return [WaiterInfo(weight_of(waiter), holder_of(waiter), waited) for waiter, waited in found]

    def evict(self, permit: str) -> bool:
        """Take a permit away from its holder, by its id. Return False if nobody held it. Raises ForeignPermit."""
        call = f"evict {new_call()}"
        request = RELEASE.run(get_client(), self._keys, permit=check_id(self.name, permit), call=call)
        return bool(at_once(request) == call.encode())

    def set_limit(self, limit: int) -> None:
        """
        Set the limit, overriding the one that the code declares. Raises InvalidValue.

        Holders keep their permits: under a lower limit, nobody gets one until enough have been given back.
        """
        check_count("limit", limit)
        at_once(LIMIT.run(get_client(), self._keys, name=self.name, limit=limit))

    def reset_limit(self) -> None:
        """Reset the limit to the one that the code declares."""
        at_once(LIMIT.run(get_client(), self._keys, name=self.name, limit=""))

    @property
    def _keys(self) -> SemaphoreKeys:
        return SemaphoreKeys.of(self.name)  # at each use, because the key prefix is a setting


class Semaphore(SemaphoreControls):
    """
    At most *limit* permits at a time, each for *lease* seconds unless it is refreshed.

    Raises InvalidName, InvalidValue. Every method raises RedisUnavailable.
    """

    def __init__(self, name: str, *, limit: int, lease: float = 30.0) -> None:
        super().__init__(name)
        self.limit = check_count("limit", limit)
        self.lease = check_seconds("lease", lease)
        if lease > MAX_LEASE:
            raise InvalidValue(
                f"The lease is {lease!r}; it must be {MAX_LEASE:,} seconds at most. Refresh the permit instead."
            )

    async def _acquire(
        self,
        client: AnyRedis,
        *,
        wait: float | None = None,
        weight: int = 1,
        owner: str | None = None,
        auto_renewal: bool = False,
    ) -> Permit:
        """
        Return a permit that counts as *weight*. Wait for it for up to *wait* seconds (None: without limit).

        With *auto_renewal*, it is refreshed until it is given back or no longer referenced. *owner* is a text for
        people to read. Raises SemaphoreFull if no permit became free in time, InvalidValue if *weight* is above the
        limit.

        aacquire() can be awaited, or used in an async with block. The permit belongs to the running loop.
        """
        wish = self._wish(client, wait, weight, owner, auto_renewal)
        permit = await self._take(client, wish)
        if permit is None:
            raise self._full(wish)
        return permit

    acquire, _aacquire = both(_acquire)
    aacquire = acquisition(_aacquire)

    async def _try_acquire(
        self, client: AnyRedis, *, weight: int = 1, owner: str | None = None, auto_renewal: bool = False
    ) -> Permit | None:
        """Return a permit if one is free and nobody waits for it, else None."""
        return await self._take(client, self._wish(client, 0, weight, owner, auto_renewal))

    try_acquire, atry_acquire = both(_try_acquire)

    async def _release(self, client: AnyRedis, permit: Permit | str) -> None:
        """
        Give back a permit, given as such or by its id.

        Raises PermitReleased if it was given back before, PermitLost if its lease ran out or it was evicted,
        ForeignPermit if it belongs to another semaphore. If a caller of arelease() is cancelled, even repeatedly, the
        permit is still given back before CancelledError is raised.
        """
        await to_its_end(lambda: self._give_back(client, permit))

    release, arelease = both(_release)

    async def _give_back(self, client: AnyRedis, permit: Permit | str) -> None:
        permit_id, held = self._own(permit)
        call = held.call if held else f"release {new_call()}"
        if held:
            if held.is_released:
                raise _ended(permit_id, self.name, "release")
            held.drop()  # before the release, so that no renewal comes after it
        ended_by: str = (await RELEASE.run(client, self._keys, permit=permit_id, call=call)).decode()
        if held:
            held.end(is_released=ended_by.startswith("release"))
        if ended_by != call:
            raise _ended(permit_id, self.name, ended_by)

    async def _refresh(self, client: AnyRedis, permit: Permit | str) -> None:
        """Restart the lease of a permit. Raises PermitLost, PermitReleased, ForeignPermit."""
        permit_id, held = self._own(permit)
        if held and held.is_released:
            raise _ended(permit_id, self.name, "release")
        asked_at, lease = clock(), held.lease if held else self.lease
        said = await REFRESH.run(client, self._keys, permit=permit_id, lease=_microseconds(lease))
        if said != b"refreshed":
            if held:
                held.lose()
            raise _ended(permit_id, self.name, said.decode())
        if held:
            held.valid_until = asked_at + lease

    refresh, arefresh = both(_refresh)

    def info(self) -> SemaphoreInfo:
        """Return the current state."""
        info = super().info()
        return replace(info, declared=self.limit) if info.declared is None else info

    def check(self, *, wait: float | None, weight: int) -> None:
        """Check these arguments of acquire(). Raises InvalidValue."""
        if check_count("weight", weight) > self.limit:
            raise self._too_heavy(weight, self.limit)
        if wait is not None:
            check_seconds("wait", wait, may_be_zero=True)

    def _wish(
        self, client: AnyRedis, wait: float | None, weight: int, owner: str | None, is_renewed: bool
    ) -> Wish:
        self.check(wait=wait, weight=weight)
        made = new_id(self.name, weight, owner, is_coroutine=isinstance(client, ASYNCHRONOUS))
        return Wish(made, weight, wait, is_renewed)

    async def _take(self, client: AnyRedis, wish: Wish) -> Permit | None:
        """Return a permit; None if none is free and the wish is not to wait."""
        try:
            return await self._wait(client, wish)
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:  # including a cancellation and KeyboardInterrupt
            with suppress(RedisUnavailable):  # the place or the permit then expires by itself
                await to_its_end(lambda: self._leave(client, wish))
            raise

    async def _wait(self, client: AnyRedis, wish: Wish) -> Permit | None:
        until = math.inf if wish.wait is None else clock() + wish.wait
        cancelled, has_waited, is_granted, began_at = cancellations(), False, False, clock()
        try:
            while True:
                asked_at = clock()
                said, number = await self._ask(client, wish)
                if cancellations() > cancelled:
                    raise asyncio.CancelledError
                if said == b"granted":
                    is_granted = True
                    tally("semaphores:acquired")
                    if has_waited:
                        observe("semaphores:wait", clock() - began_at)
                    return self._permit(client, wish, asked_at + int(number) / 1e6)
                if said == b"full":
                    took("semaphores-refused", clock() - began_at, of=pattern_of(self.name))
                    return None
                if said != b"wait":
                    raise self._refused(wish, said, number)
                tally("semaphores:waited", 0 if has_waited else 1)
                has_waited = True
                if (left := until - clock()) <= 0:
                    took("semaphores-refused", clock() - began_at, of=pattern_of(self.name))
                    raise self._full(wish)
                # The waiter keeps its place if Redis answers the next time.
                with suppress(RedisUnavailable), redis_errors():
                    await popped(client, f"{self._keys.wake}:{wish.id}", min(left, number / 1000, BEAT))
        finally:
            if has_waited:
                took("semaphores-waited", clock() - began_at, of=pattern_of(self.name))
                tell_waited("semaphore", self.name, clock() - began_at, is_granted=is_granted)

    def _permit(self, client: AnyRedis, wish: Wish, valid_until: float) -> Permit:
        loop = asyncio.get_running_loop() if isinstance(client, ASYNCHRONOUS) else None
        permit = Permit(self, wish.id, wish.weight, valid_until, loop)
        if wish.is_renewed:
            permit.keep()
        return permit

    async def _ask(self, client: AnyRedis, wish: Wish) -> Any:
        return await ACQUIRE.run(
            client,
            self._keys,
            name=self.name,
            permit=wish.id,
            weight=wish.weight,
            declared=self.limit,
            lease=_microseconds(self.lease),
            life=leases.ALIVE,
            waits=int(wish.wait != 0),
        )

    async def _leave(self, client: AnyRedis, wish: Wish) -> None:
        """Give up a wish, whether or not the permit was granted."""
        await RELEASE.run(client, self._keys, permit=wish.id, call=f"leave {new_call()}")

    def _own(self, permit: Permit | str) -> tuple[str, Permit | None]:
        """Return the id of a permit, and the Permit if one was passed. Raises ForeignPermit, PermitLost."""
        held = permit if isinstance(permit, Permit) else None
        if held and not held._is_of_this_process:
            raise PermitLost(f"The permit {held.id} belongs to the process that this one was forked from.")
        return check_id(self.name, held.id if held else permit), held

    def _refused(self, wish: Wish, said: bytes, why: int | bytes) -> Exception:
        if said == b"heavy":
            return self._too_heavy(wish.weight, int(why))
        return _ended(wish.id, self.name, bytes(why).decode())

    def _too_heavy(self, weight: int, limit: int) -> InvalidValue:
        return InvalidValue(
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


def _holder(permit: bytes, since: bytes | float, left: float) -> HolderInfo:
    permit_id = text_of(permit)
    return HolderInfo(
        id=permit_id,
        weight=weight_of(permit_id),
        holder=holder_of(permit_id),
        since=instant_of(float(since) / 1000),
        remaining=left / 1e6,
    )
