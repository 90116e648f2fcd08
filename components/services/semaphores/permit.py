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

import logging
import re
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Generator, Hashable
from functools import lru_cache, wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from components.exceptions import ForeignPermit, PermitLost, PermitReleased, RedisUnavailable
from components.kit.client import AnyRedis, get_async_client, get_client, server_of
from components.kit.decoding import number_of
from components.kit.ids import new_call
from components.kit.leases import Holder, Lease, clock, new_token
from components.kit.sync_async import at_once, both
from components.kit.validation import check_int
from components.services.counters import pattern_of, took

if TYPE_CHECKING:
    from components.services.semaphores.semaphore import Semaphore

logger = logging.getLogger(__name__)

_S = TypeVar("_S")
_P = ParamSpec("_P")

MOST = 2**31 - 1  # greatest limit or weight: sums of them are exact
_DIGITS = 12  # length of the digest: enough to make the names of one project differ
_ID = re.compile(rf"[0-9a-f]{{{_DIGITS}}}/[1-9][0-9]*/.+")


class Permit(Lease):
    """
    A permit of a semaphore. Use it in a with block, or give it back with release(); both have asynchronous twins.

    Leaving the block raises PermitLost if the permit was lost meanwhile, unless the block raises something itself.
    """

    def __init__(
        self,
        semaphore: Semaphore,
        permit_id: str,
        weight: int,
        valid_until: float,
        loop: AbstractEventLoop | None,
    ) -> None:
        super().__init__(semaphore.lease, valid_until, loop)
        self._semaphore = semaphore
        self.id = permit_id
        self.weight = weight
        #: The id of the release, by which a repeated release is recognised.
        self.call = f"release {new_call()}"

    @property
    def name(self) -> str:
        """Return the name of the semaphore."""
        return self._semaphore.name

    def ensure_held(self) -> None:
        """Raise PermitLost or PermitReleased unless the permit is surely held. Redis is not asked."""
        if self.is_released:
            raise PermitReleased(f"The permit {self.id} of the semaphore {self.name!r} was released.")
        if not self.remaining:
            raise PermitLost(
                f"The permit {self.id} of the semaphore {self.name!r} is lost, or may be: its lease ran "
                "out, or it was evicted."
            )

    async def _refresh(self, client: AnyRedis) -> None:
        """Restart the lease. Raises PermitLost, PermitReleased."""
        await self._semaphore._refresh(client, self)

    refresh, arefresh = both(_refresh)

    async def _release(self, client: AnyRedis) -> None:
        """
        Give the permit back.

        Raises PermitLost if its lease ran out or it was evicted, PermitReleased if it was given back before.
        """
        await self._semaphore._release(client, self)

    release, arelease = both(_release)

    @property
    def server(self) -> Hashable:
        return server_of(get_client(), self._semaphore._keys.holders)

    async def _renew(self) -> bool:
        try:
            await self._refresh(get_async_client() if self.loop else get_client())
        except (PermitLost, PermitReleased):
            return False
        return True

    def end(self, *, is_released: bool) -> None:
        """Record that the permit was given back, or that the attempt to give it back found it lost."""
        took("semaphores-held", clock() - self.began_at, of=pattern_of(self.name))
        self.is_released = is_released
        if is_released:
            self.valid_until = min(self.valid_until, clock())
        else:
            self.lose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        at_once(self._exit(get_client(), error))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._exit(get_async_client(), error)

    async def _exit(self, client: AnyRedis, error: BaseException | None) -> None:
        """Give the permit back. If the block itself raised an *error*, log what is wrong, so as not to hide it."""
        try:
            if not self.is_released:
                await self._release(client)
        except (PermitLost, PermitReleased, RedisUnavailable) as reason:
            if error is None:
                raise
            logger.warning("The block of a permit raised %r. In addition: %s", error, reason)


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


def acquisition(
    start: Callable[Concatenate[_S, _P], Coroutine[Any, Any, Permit]],
) -> Callable[Concatenate[_S, _P], Acquisition]:
    """Return a method that returns what *start* does as an Acquisition."""

    @wraps(start)
    def method(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> Acquisition:
        return Acquisition(lambda: start(self, *args, **kwargs))

    return method


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
