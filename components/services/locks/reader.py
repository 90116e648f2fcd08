"""
LockReader: the held locks, their holders and waiters, and since when; and the release by force.

Each bucket has an index of held locks, ordered by the end of their time. A page takes four round trips, however many
locks are held: for the sizes of all buckets, for the locks in the buckets that it shows, and for the figures of these
locks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from redis import Redis

from components.exceptions import InvalidName
from components.kit.buckets import Index
from components.kit.client import get_client
from components.kit.decoding import instant_of, number_of
from components.kit.errors import redis_errors
from components.kit.leases import Holder, server_clock, waiters_in
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.services.locks.keys import LockKeys

RELEASE = Script("locks/release")

_T = TypeVar("_T")
_HELD = Index(lambda tag: LockKeys.of_bucket(tag).held)

_FIGURES = ("fence", "acquired", "waits", "waited", "longest", "expired", "forced")


@dataclass(frozen=True)
class LockInfo:
    """The state of a lock a moment ago. Durations are in seconds."""

    key: str
    #: The name that was passed to lock(); for a key of the caller's own, the key itself.
    name: str
    #: The owner that the holder named; "" if nobody holds it. Bytes that are not UTF-8 become half surrogate pairs.
    token: str
    fence: int
    #: When it was last acquired, according to the fence; None if unknown.
    since: datetime | None
    #: Seconds until its time ends; None if it has no end, or if nobody holds it.
    remaining: float | None
    waiting: int
    #: The number of acquisitions, how many of these had to wait, the total wait and the longest wait. Counting begins
    #: with the first holder who made others wait, or who lost the lock.
    acquired: int
    waits: int
    waited: float
    longest_wait: float
    #: The number of times it expired before the holder released it, if a later holder noticed.
    expired: int
    #: The number of times it was released by force.
    forced: int

    @classmethod
    def of_free(cls, key: str) -> LockInfo:
        """Return the facts of a lock at *key* that nobody holds and of which nothing is stored."""
        return _info(key, None, -2, [None] * len(_FIGURES), None, 0)

    @property
    def is_held(self) -> bool:
        return bool(self.token)

    @property
    def holder(self) -> Holder:
        return Holder.of(self.token)


@dataclass(frozen=True)
class WaiterInfo:
    """A waiter for a lock."""

    holder: Holder
    #: Seconds waited so far.
    waited: float


class LockReader:
    """The locks in this project's Redis. Every method raises RedisUnavailable."""

    @cached_property
    def _client(self) -> Redis:
        return get_client()

    def count(self) -> int:
        """Return how many locks are held."""
        return sum(_HELD.sizes(_later(self._now())))

    def held(self, *, offset: int = 0, limit: int = 50) -> list[LockInfo]:
        """Return a page of the held locks, from the *offset*-th on. Raises InvalidValue."""
        now = self._now()
        found = self._look([key for key in _HELD.page(offset, limit, _later(now)) if self._is_key(key)], now)
        return [info for info in found if info.is_held]

    def find(self, name: str) -> LockInfo | None:
        """
        Return the lock *name*, or the lock at the key *name*; None if nothing is stored about either.

        A free lock is stored for a day after its last use if somebody had to wait for it, if it was lost, or if it
        was released by force.
        """
        for key in (LockKeys.named(name).lock, name):
            if info := self.at(key):
                return info
        return None

    def at(self, key: str) -> LockInfo | None:
        """Return the lock at *key*, as find() does; None, without reading it, for a key that no lock can have."""
        now = self._now()

        def add(pipe: Any, of_lock: LockKeys) -> None:
            pipe.exists(of_lock.state)
            pipe.zscore(of_lock.held, key)

        if not any(self._ask([LockKeys.of(key, self._client)], add)):
            return None
        [info] = self._look([key], now)
        return info

    def waiters(self, key: str, *, limit: int = 50) -> list[WaiterInfo]:
        """Return the first waiters for the lock at *key*, in order. Raises InvalidValue."""
        found = waiters_in(self._client, LockKeys.of(key, self._client), limit)
        return [
            WaiterInfo(Holder.of(token.decode(errors="surrogateescape")), waited) for token, waited in found
        ]

    def force_release(self, key: str, token: str, fence: int) -> bool:
        """
        Release the lock at *key* if its holder has this *token* and *fence*. Return False if they do not hold it.

        The holder is not stopped: they learn of the loss at the next renewal or check. Only the fence keeps them from
        writing.
        """
        of_lock = LockKeys.of(key, self._client)
        encoded = token.encode(errors="surrogateescape")
        request = {"token": encoded, "asker": encoded, "fence": fence, "reason": "evicted"}
        return bool(at_once(RELEASE.run(self._client, of_lock, **request)))

    def _is_key(self, key: str) -> bool:
        try:
            LockKeys.of(key, self._client)
        except InvalidName:
            return False
        return True

    def _now(self) -> int:
        return server_clock(self._client)

    def _ask(self, things: Sequence[_T], add: Callable[[Any, _T], object]) -> list[Any]:
        """
        Return the answers to the commands that *add* adds to a pipeline for each of *things*. The answer is None for
        a key of another type than a lock's.
        """
        with redis_errors(), self._client.pipeline(transaction=False) as pipe:
            for thing in things:
                add(pipe, thing)
            answers = pipe.execute(raise_on_error=False) if things else []
            for answer in answers:
                if isinstance(answer, Exception) and "WRONGTYPE" not in str(answer):
                    raise answer
        return [None if isinstance(answer, Exception) else answer for answer in answers]

    def _look(self, lock_keys: Sequence[str], now: int) -> list[LockInfo]:
        def add(pipe: Any, key: str) -> None:
            of_lock = LockKeys.of(key, self._client)
            pipe.get(key)
            pipe.pttl(key)
            pipe.hmget(of_lock.state, _FIGURES)
            pipe.zscore(of_lock.held, b"\xff" + key.encode())
            pipe.zcount(of_lock.beats, f"({now}", "+inf")

        answers = iter(self._ask(lock_keys, add))
        return [
            _info(key, *five) for key, five in zip(lock_keys, zip(*[answers] * 5, strict=True), strict=True)
        ]


def _later(now: int) -> str:
    """Return the least score of a lock that is held at the microsecond *now*."""
    return f"({now // 1000}"


def _info(
    key: str,
    token: bytes | None,
    left: int,
    figures: list[bytes | None],
    of_holder: float | None,
    waiting: int,
) -> LockInfo:
    of = {name: number_of(value) for name, value in zip(_FIGURES, figures, strict=True)}
    fence = number_of(-of_holder) if of_holder else of["fence"]
    return LockInfo(
        key=key,
        name=LockKeys.name_of(key) or key,
        token=(token or b"").decode(errors="surrogateescape"),
        fence=fence,
        since=instant_of(fence / 1000) if fence else None,
        remaining=left / 1000 if left >= 0 else None,
        waiting=waiting,
        acquired=of["acquired"] or int(bool(token)),
        waits=of["waits"],
        waited=of["waited"] / 1e6,
        longest_wait=of["longest"] / 1e6,
        expired=of["expired"],
        forced=of["forced"],
    )
