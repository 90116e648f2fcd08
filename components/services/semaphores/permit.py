"""
Permit: a place in a semaphore, which belongs to its holder until they give it back or its lease runs out.

The holder's own monotonic clock measures how long the permit is surely held. It starts before the request is sent, so
it never runs longer than the lease on the server. Redis has the last word: release() and refresh() ask it, and raise
if the permit is lost.

The id of a permit is <digest of the semaphore's name>/<weight>/<token of the holder>, which kit/leases.py describes.
The client makes the id before it asks for the permit. Therefore a repeated request is recognised, nothing else has to
be stored about holders and waiters, and a permit of another semaphore is recognised without asking Redis.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Coroutine, Generator, Hashable
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

from components.exceptions import ForeignPermit, PermitLost, PermitReleased, RedisUnavailable
from components.kit import leases
from components.kit.ids import new_call
from components.kit.leases import Holder, new_token
from components.kit.stored import number_of
from components.kit.values import check_int
from components.services.counters import pattern_of, took

if TYPE_CHECKING:
    from components.services.semaphores.semaphore import Semaphore

logger = logging.getLogger(__name__)

MOST = 2**31 - 1  # greatest limit or weight: sums of them are exact
_DIGITS = 12  # length of the digest: enough to make the names of one project differ
_ID = re.compile(rf"[0-9a-f]{{{_DIGITS}}}/[1-9][0-9]*/.+")


class Permit:
    """
    A permit of a semaphore. Use it in a with block, or give it back with release(); both have asynchronous twins.

    Leaving the block raises PermitLost if the permit was lost meanwhile, unless the block raises something itself.
    """

    #: Start and stop renewing the permit, and watch it.
    _keep, drop, _watch = leases.keep, leases.drop, leases.watch
    _new_event: Callable[[], Any] = threading.Event

    def __init__(
        self, semaphore: Semaphore, permit_id: str, *, weight: int, lease: float, valid_until: float
    ) -> None:
        self._semaphore = semaphore
        self.id = permit_id
        self.weight = weight
        #: Seconds from when the permit is granted or refreshed.
        self.lease = lease
        #: The instant until which it is surely held, by components.kit.leases.clock().
        self.valid_until = valid_until
        #: True if its holder gave it back.
        self.is_released = False
        #: The id of the release, by which a repeated release is recognised.
        self.call = f"release {new_call()}"
        self._is_renewed = False
        self._forks = leases.forks()
        self._began_at = leases.clock()
        self._lost: Any = None

    @property
    def name(self) -> str:
        """Return the name of the semaphore."""
        return self._semaphore.name

    @property
    def remaining(self) -> float:
        """Return the seconds for which the permit is surely still held; 0 in a child that was forked meanwhile."""
        return max(0.0, self.valid_until - leases.clock()) if self._is_of_this_process else 0.0

    @property
    def _is_of_this_process(self) -> bool:
        """Return whether this process took the permit, and not one that it was forked from."""
        return self._forks == leases.forks()

    @property
    def lost(self) -> Any:
        """An event that is set when the permit is lost: threading's, or asyncio's if the permit was awaited."""
        if self._lost is None:
            self._lost = self._new_event()
            if not self.is_released and not self.remaining:
                self._lost.set()
            elif not (self.is_released or self._is_renewed):
                self._watch()
        return self._lost

    def ensure_held(self) -> None:
        """Raise PermitLost or PermitReleased unless the permit is surely held. Redis is not asked."""
        if self.is_released:
            raise PermitReleased(f"The permit {self.id} of the semaphore {self.name!r} was released.")
        if not self.remaining:
            raise PermitLost(
                f"The permit {self.id} of the semaphore {self.name!r} is lost, or may be: its lease ran "
                "out, or it was evicted."
            )

    def refresh(self) -> None:
        """Restart the lease. Raises PermitLost, PermitReleased."""
        self._semaphore.refresh(self)

    async def arefresh(self) -> None:
        """Restart the lease, as refresh() does."""
        await self._semaphore.arefresh(self)

    def release(self) -> None:
        """
        Give the permit back.

        Raises PermitLost if its lease ran out, PermitReleased if it was given back before.
        """
        self._semaphore.release(self)

    async def arelease(self) -> None:
        """Give the permit back, as release() does."""
        await self._semaphore.arelease(self)

    @property
    def server(self) -> Hashable:
        """Return the object that represents the server that has the permit; see leases.Lease."""
        return self._semaphore.server

    def renew(self) -> bool:
        """Refresh the permit for leases.keep(). Return False if it is lost."""
        try:
            self.refresh()
        except (PermitLost, PermitReleased):
            return False
        return True

    async def arenew(self) -> bool:
        """Refresh the permit, as renew() does."""
        try:
            await self.arefresh()
        except (PermitLost, PermitReleased):
            return False
        return True

    def lose(self) -> None:
        """Record that the permit is not held any more, according to Redis or the clock."""
        self.valid_until = min(self.valid_until, leases.clock())
        if self._lost is not None:
            self._lost.set()

    def end(self, *, is_released: bool) -> None:
        """Record that the permit was given back, or that the attempt to give it back found it lost."""
        took("semaphores-held", leases.clock() - self._began_at, of=pattern_of(self.name))
        self.is_released = is_released
        self.valid_until = min(self.valid_until, leases.clock())
        if not is_released:
            self.lose()

    def keep(self) -> None:
        """Start renewing the permit."""
        self._is_renewed = True
        self._keep()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if not self.is_released:
                self.release()
        except (PermitLost, PermitReleased, RedisUnavailable) as reason:
            self._exit(reason, error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if not self.is_released:
                await self.arelease()
        except (PermitLost, PermitReleased, RedisUnavailable) as reason:
            self._exit(reason, error)

    def _exit(self, reason: Exception, error: BaseException | None) -> None:
        """
        Raise *reason*; if the block itself raised an *error*, log *reason* instead, so as not to hide the error.
        """
        if error is None:
            raise reason
        logger.warning("The block of a permit raised %r. In addition: %s", error, reason)


class AwaitedPermit(Permit):
    """A permit that was awaited: the running event loop renews it."""

    _keep, drop, _watch = leases.akeep, leases.adrop, leases.awatch
    _new_event = asyncio.Event


class Acquisition:
    """
    The result of Semaphore.aacquire(). Nothing is sent before it is awaited, which gives the Permit, or used in an
    async with block, which gives the permit back at its end. *start* asks for the permit.
    """

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Permit]]) -> None:
        self._start = start
        self._permit: Permit | None = None

    def __await__(self) -> Generator[Any, None, Permit]:
        return self._start().__await__()

    async def __aenter__(self) -> Permit:
        self._permit = await self._start()
        return self._permit

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        permit, self._permit = self._permit, None
        if permit is not None:
            await permit.__aexit__(kind, error, trace)


def new_id(name: str, weight: int, owner: str | None, *, is_coroutine: bool = False) -> str:
    """Return a new, unique id of a permit."""
    return f"{_digest(name)}/{weight}/{new_token(owner, is_coroutine=is_coroutine).decode()}"


def check_id(name: str, permit: object) -> str:
    """Return *permit* if it is the id of a permit of the semaphore *name*. Raises ForeignPermit."""
    if not isinstance(permit, str) or not _ID.fullmatch(permit):
        raise ForeignPermit(f"{permit!r} is not the id of a permit, as Permit.id gives it.")
    if not permit.startswith(f"{_digest(name)}/"):
        raise ForeignPermit(f"The permit {permit} belongs to another semaphore, not to {name!r}.")
    return permit


def weight_of(permit: str) -> int:
    """Return the weight of the permit with this id; 1 for what is not an id."""
    return number_of(permit.split("/")[1], 1) if permit.count("/") > 1 else 1


def holder_of(permit: str) -> Holder:
    """Return the holder of the permit with this id, with the facts that the id contains."""
    return Holder.of(permit.split("/", 2)[-1])


def check_count(what: str, value: object) -> int:
    """Return *value* if it can be a limit or a weight. Raises InvalidValue."""
    return check_int(what, value, 1, MOST)


@lru_cache(maxsize=1_024)
def _digest(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
