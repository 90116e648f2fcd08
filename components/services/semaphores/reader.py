"""
SemaphoreReader: the list of all semaphores, in pages, for the control room.

Each bucket has an index of names. A page takes four round trips, however many semaphores there are: for the sizes of
all buckets, for the names in the buckets that it shows, and for the figures of these semaphores. Reading changes
nothing. Facts are of one moment by the server's clock; durations are in seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from redis import Redis

from components.kit.buckets import Index
from components.kit.client import get_client
from components.kit.decoding import instant_of, number_of
from components.kit.leases import Holder, server_clock
from components.kit.lua_headers import record
from components.kit.scripts import pipelined
from components.kit.sync_async import at_once
from components.services.semaphores.keys import SemaphoreKeys

_USE = record("semaphores", "use")
_ALL = Index(lambda tag: SemaphoreKeys.of_bucket(tag).names, desc=True)
_MINUTE = 60_000_000  # microseconds
_MINUTES = 120
#: The fields of the HASH of figures.
FIGURES = ("declared", "granted", "waits", "waited", "longest", "given_up", "expired")


@dataclass(frozen=True)
class MinuteOfUse:
    """How full a semaphore was in a minute."""

    #: When the minute began.
    at: datetime
    #: The highest total weight of the permits that were held at the same time.
    most: int


@dataclass(frozen=True)
class SemaphoreInfo:
    """The state of a semaphore. Figures count from its first use, or from its first use after a month without any."""

    name: str
    #: The limit that the code declared when it last asked for a permit; None if it never did.
    declared: int | None
    #: The limit that was set by hand, which overrides the declared one; None if there is none.
    override: int | None
    #: The total weight of the permits that are held now.
    used: int
    #: The number of holders, and of waiters.
    holders: int
    waiting: int
    #: The number of permits granted, and how many of these were granted after a wait.
    granted: int
    waits: int
    #: The total time of these waits, and the longest wait.
    total_waited: float
    longest_wait: float
    #: The number of waits that timed out, and of permits that were not given back in time.
    given_up: int
    expired: int
    #: The permits in use in each minute of the last two hours, the current minute last; empty unless asked for.
    use: Sequence[MinuteOfUse] = ()

    @property
    def limit(self) -> int | None:
        """Return the limit in force."""
        return self.declared if self.override is None else self.override


@dataclass(frozen=True)
class HolderInfo:
    """A permit that is held."""

    id: str
    weight: int
    holder: Holder
    since: datetime
    #: Seconds until its lease ends.
    remaining: float


@dataclass(frozen=True)
class WaiterInfo:
    """A waiter for a permit."""

    weight: int
    holder: Holder
    #: Seconds waited so far.
    waited: float


class SemaphoreReader:
    """
    The semaphores that were used within a month, or have a limit that was set by hand.

    Every method raises RedisUnavailable.
    """

    def count(self) -> int:
        """Return how many semaphores there are."""
        return sum(_ALL.sizes())

    def page(self, *, offset: int = 0, limit: int = 50, with_use: bool = False) -> list[SemaphoreInfo]:
        """
        Return a page of the semaphores, ordered by name within each bucket, from the *offset*-th on. With *with_use*,
        each has its use by the minute.

        Using a semaphore may move it to another page, at most once a day.
        """
        return look(get_client(), sorted(_ALL.page(offset, limit)), with_use=with_use)

    def find(self, name: str, *, with_use: bool = False) -> SemaphoreInfo | None:
        """
        Return the semaphore with this name; None if it was never used, or not within a month. With *with_use*, it has
        its use by the minute.
        """
        [info] = look(get_client(), [name], with_use=with_use)
        return info if info.limit is not None else None


def look(client: Redis, names: Sequence[str], *, with_use: bool = False) -> list[SemaphoreInfo]:
    """Return the state of these semaphores, in two round trips. With *with_use*, it includes the last two hours."""
    if not names:
        return []
    now = server_clock(client)

    def add(pipe: Any, name: str) -> None:
        keys = SemaphoreKeys(name)
        pipe.zcount(keys.holders, f"({now}", "+inf")
        pipe.zrangebyscore(keys.holders, "-inf", now)  # leases that have ended, but are still stored
        pipe.zrange(keys.heavy, 0, -1, withscores=True)
        pipe.zcount(keys.beats, f"({now}", "+inf")
        pipe.hget(keys.limits, name)
        pipe.hmget(keys.stats, FIGURES)
        if with_use:
            pipe.hvals(keys.use)

    size = 7 if with_use else 6
    found = iter(at_once(pipelined(client, names, add)))
    answers = zip(names, zip(*[found] * size, strict=True), strict=True)
    infos = [(_info(name, *each[:6]), each[6:]) for name, each in answers]
    return [replace(info, use=_use(stored[0], now // _MINUTE)) if stored else info for info, stored in infos]


def _use(stored: Sequence[bytes], this: int) -> list[MinuteOfUse]:
    """Return the use in each minute, up to *this* one, from the minutes in which it changed."""
    changes = {int(each["minute"]): each for each in map(_USE.read, stored) if _is_whole(each)}
    used, ends, found = 0, 0, []
    for minute in sorted({*changes, *range(this - _MINUTES + 1, this + 1)}):
        if minute * 60 >= ends:
            used = 0  # nobody gave it back, but all leases have ended
        most = used
        if change := changes.get(minute):
            most, used = max(used, int(change["most"])), int(change["last"])
            ends = max(ends, int(change["ends"]))
        if this - _MINUTES < minute <= this:
            found.append(MinuteOfUse(instant_of(minute * 60_000), most))
    return found


def _is_whole(change: Mapping[str, str]) -> bool:
    return all(value.isdecimal() for value in change.values())


def _info(
    name: str,
    holders: int,
    over: list[bytes],
    weights: list[tuple[bytes, float]],
    waiting: int,
    override: bytes | None,
    figures: list[bytes | None],
) -> SemaphoreInfo:
    of = {name: number_of(value) for name, value in zip(FIGURES, figures, strict=True)}
    heavier = sum(number_of(weight, 1) - 1 for permit, weight in weights if permit not in over)
    return SemaphoreInfo(
        name=name,
        declared=of["declared"] or None,
        override=number_of(override) or None if override else None,
        used=holders + heavier,
        holders=holders,
        waiting=waiting,
        granted=of["granted"],
        waits=of["waits"],
        total_waited=of["waited"] / 1e6,
        longest_wait=of["longest"] / 1e6,
        given_up=of["given_up"],
        expired=of["expired"],
    )
