"""
Semaphore: a counting semaphore that is fair, and whose permits are leased (chapter 6.3 of the book).

Permits of holders that died come back when their lease ends, places of waiters that died when they miss two
heartbeats. Only the head of the queue may be granted a permit: nobody passes the queue, and a heavy permit is not
starved by light ones. How it stands in Redis, and how one waits, is in core.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextlib import suppress

from components.exceptions import PermitLost, PermitReleased, RedisUnavailable
from components.kit.at_once import at_once, to_its_end
from components.kit.client import get_async_client, get_client, server_of
from components.services.semaphores.acquisitions import Acquisition
from components.services.semaphores.core import Core, Wish
from components.services.semaphores.permits import AwaitedPermit, Permit


class Semaphore(Core):
    """
    No more than *limit* permits at a time, each for *lease* seconds unless it is refreshed.

    Raises InvalidName, InvalidLimit, InvalidDuration. Every method raises RedisUnavailable.
    """

    def acquire(
        self,
        *,
        wait: float | None = None,
        weight: int = 1,
        owner: str | None = None,
        auto_renewal: bool = False,
    ) -> Permit:
        """
        A permit that counts as *weight*, within *wait* seconds (None: however long it takes).

        With *auto_renewal* it is refreshed until it is given back or nobody refers to it. *owner* is for people to
        read. Raises SemaphoreFull if nobody left in time, InvalidLimit if *weight* is above the limit.
        """
        wish = self._wish(wait, weight, owner, auto_renewal)
        permit = self._take(wish)
        if permit is None:
            raise self._full(wish)
        return permit

    def try_acquire(
        self, *, weight: int = 1, owner: str | None = None, auto_renewal: bool = False
    ) -> Permit | None:
        """A permit, if one is free that nobody waits for; else None."""
        return self._take(self._wish(0, weight, owner, auto_renewal))

    def aacquire(
        self,
        *,
        wait: float | None = None,
        weight: int = 1,
        owner: str | None = None,
        auto_renewal: bool = False,
    ) -> Acquisition:
        """acquire(), to be awaited or to stand in an async with block. The permit belongs to the running loop."""

        async def start() -> Permit:
            wish = self._wish(wait, weight, owner, auto_renewal, is_coroutine=True)
            permit = await self._atake(wish)
            if permit is None:
                raise self._full(wish)
            return permit

        return Acquisition(start)

    async def atry_acquire(
        self, *, weight: int = 1, owner: str | None = None, auto_renewal: bool = False
    ) -> Permit | None:
        """try_acquire(), awaited."""
        return await self._atake(self._wish(0, weight, owner, auto_renewal, is_coroutine=True))

    def release(self, permit: Permit | str) -> None:
        """
        Give a permit back, or the one that has this id.

        Raises PermitReleased if that was done before, PermitLost if its lease ran out or it was evicted,
        ForeignPermit if it is of another semaphore.
        """
        at_once(self._release(get_client(), permit))

    async def arelease(self, permit: Permit | str) -> None:
        """
        release(), awaited.

        If it is cancelled, however often, the permit is given back nevertheless before CancelledError is raised.
        """
        client = get_async_client()
        try:
            await self._release(client, permit)
        except asyncio.CancelledError:
            with suppress(PermitLost, PermitReleased, RedisUnavailable):
                await to_its_end(lambda: self._release(client, permit))
            raise

    def refresh(self, permit: Permit | str) -> None:
        """Let the lease of a permit begin anew. Raises PermitLost, PermitReleased, ForeignPermit."""
        at_once(self._refresh(get_client(), permit))

    async def arefresh(self, permit: Permit | str) -> None:
        """refresh(), awaited."""
        await self._refresh(get_async_client(), permit)

    @property
    def server(self) -> Hashable:
        """What stands for the server that has its permits; see renewals.Lease."""
        return server_of(get_client(), self._keys.wake)

    def _take(self, wish: Wish) -> Permit | None:
        client = get_client()
        try:
            return self._made(Permit, wish, at_once(self._wait(client, wish)))
        except BaseException:  # Ctrl-C among them
            with suppress(RedisUnavailable):  # then its place, or what was granted, ends by itself
                at_once(self._leave(client, wish))
            raise

    async def _atake(self, wish: Wish) -> Permit | None:
        client = get_async_client()
        try:
            return self._made(AwaitedPermit, wish, await self._wait(client, wish))
        except GeneratorExit:  # the loop is gone: nothing can be awaited
            raise
        except BaseException:  # a cancellation among them
            with suppress(RedisUnavailable):
                await to_its_end(lambda: self._leave(client, wish))
            raise

    def _made(self, kind: type[Permit], wish: Wish, valid_until: float | None) -> Permit | None:
        if valid_until is None:
            return None
        permit = kind(self, wish.id, weight=wish.weight, lease=self.lease, valid_until=valid_until)
        if wish.is_renewed:
            permit.keep()
        return permit
