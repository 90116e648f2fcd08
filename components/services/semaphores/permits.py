"""
Permit: what a holder of a semaphore has in its hands. It belongs to it until it is given back, or its lease runs out.

Until when it is surely held is counted by the holder's own monotonic clock from before the request was sent, so it is
never longer than the server's word. Redis has the last word: release() and refresh() ask it, and say if it is lost.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Hashable
from types import TracebackType
from typing import Any, Protocol, Self

from components.exceptions import PermitLost, PermitReleased, RedisUnavailable
from components.kit import leases as renewals

logger = logging.getLogger(__name__)


class Releasing(Protocol):
    """What a permit asks of its semaphore."""

    name: str

    @property
    def server(self) -> Hashable: ...

    def release(self, permit: Any) -> None: ...

    async def arelease(self, permit: Any) -> None: ...

    def refresh(self, permit: Any) -> None: ...

    async def arefresh(self, permit: Any) -> None: ...


class Permit:
    """
    A permit of a semaphore, to be used in a with block, or given back with release(); or with the twins of both.

    Leaving the block raises PermitLost if the permit was lost meanwhile, unless the block raises something itself.
    """

    def __init__(
        self, semaphore: Releasing, permit_id: str, *, weight: int, lease: float, valid_until: float
    ) -> None:
        self._semaphore = semaphore
        self.id = permit_id
        self.weight = weight
        #: Seconds, from when it is granted or refreshed.
        self.lease = lease
        #: Until then it is surely held, by components.kit.leases.clock().
        self.valid_until = valid_until
        #: Whether it was given back, by whom it belonged to.
        self.is_released = False
        #: Names the release, for one that is sent again.
        self.call = f"release {secrets.token_hex(8)}"
        self._is_renewed = False
        self._lost: Any = None

    @property
    def name(self) -> str:
        """Of the semaphore."""
        return self._semaphore.name

    @property
    def remaining(self) -> float:
        """Seconds for which it is surely held yet."""
        return max(0.0, self.valid_until - renewals.clock())

    @property
    def lost(self) -> Any:
        """An event, set when the permit is lost: threading's, or asyncio's of one that was awaited."""
        if self._lost is None:
            self._lost = self._new_event()
            if not self.is_released and not self.remaining:
                self._lost.set()
            elif not self.is_released:
                self._watch()
        return self._lost

    def ensure_held(self) -> None:
        """Raises PermitLost or PermitReleased unless it is surely held. Asks nobody."""
        if self.is_released:
            raise PermitReleased(f"The permit {self.id} of the semaphore {self.name!r} was released.")
        if not self.remaining:
            raise PermitLost(
                f"The permit {self.id} of the semaphore {self.name!r} is not surely held any more: its lease ran "
                "out, or it was evicted."
            )

    def refresh(self) -> None:
        """Let its lease begin anew. Raises PermitLost, PermitReleased."""
        self._semaphore.refresh(self)

    async def arefresh(self) -> None:
        """refresh(), awaited."""
        await self._semaphore.arefresh(self)

    def release(self) -> None:
        """Give it back. Raises PermitLost if its lease ran out before, PermitReleased if this was done before."""
        self._semaphore.release(self)

    async def arelease(self) -> None:
        """release(), awaited."""
        await self._semaphore.arelease(self)

    @property
    def server(self) -> Hashable:
        """What stands for the server that has it; see renewals.Lease."""
        return self._semaphore.server

    def renew(self) -> bool:
        """For renewals.keep()."""
        try:
            self.refresh()
        except (PermitLost, PermitReleased):
            return False
        return True

    async def arenew(self) -> bool:
        """For renewals.akeep()."""
        try:
            await self.arefresh()
        except (PermitLost, PermitReleased):
            return False
        return True

    def lose(self) -> None:
        """It is held no more, as Redis says or the clock."""
        self.valid_until = min(self.valid_until, renewals.clock())
        if self._lost is not None:
            self._lost.set()

    def end(self, *, is_released: bool) -> None:
        """It was given back, or was found to be lost when it was to be."""
        self.is_released = is_released
        self.valid_until = min(self.valid_until, renewals.clock())
        if not is_released:
            self.lose()

    def keep(self) -> None:
        """Renew it from now on."""
        self._is_renewed = True
        renewals.keep(self)

    def drop(self) -> None:
        """Renew and watch it no more."""
        renewals.drop(self)

    def _new_event(self) -> Any:
        return threading.Event()

    def _watch(self) -> None:
        if not self._is_renewed:
            renewals.watch(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if not self.is_released:
                self.release()
        except (PermitLost, PermitReleased, RedisUnavailable) as reason:
            self._exit(reason, error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if not self.is_released:
                await self.arelease()
        except (PermitLost, PermitReleased, RedisUnavailable) as reason:
            self._exit(reason, error)

    def _exit(self, reason: Exception, error: BaseException | None) -> None:
        """What the block itself raised is not covered up."""
        if error is None:
            raise reason
        logger.warning("After %r in its block: %s", error, reason)


class AwaitedPermit(Permit):
    """One that was awaited: the running event loop renews it."""

    def keep(self) -> None:
        self._is_renewed = True
        renewals.akeep(self)

    def drop(self) -> None:
        renewals.adrop(self)

    def _new_event(self) -> Any:
        return asyncio.Event()

    def _watch(self) -> None:
        if not self._is_renewed:
            renewals.awatch(self)
