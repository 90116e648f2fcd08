"""
The three semaphores of chapter 6 of "Redis in Action", built anew from their description.

The basic one is a ZSET of identifiers by the client's clock: whoever ranks below the limit holds a permit. The
fair one ranks by a counter in a second ZSET, and keeps the clock for expiry only. The third takes the book's lock
around that. None of them waits; here they try again after a millisecond, as the book's lock does.
"""

from __future__ import annotations

import time
import uuid
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from redis import Redis

from benchmarks.crew import client
from benchmarks.locking.base import LEASE, LIMIT, Guarantees, System
from benchmarks.locking.book import PATIENCE, PAUSE, give_back, take

_LOCK_PATIENCE = 0.01  # seconds that the third waits for its lock


def take_basic(redis: Redis, name: str) -> str | None:
    identifier, now = str(uuid.uuid4()), time.time()
    with redis.pipeline() as pipe:
        pipe.zremrangebyscore(name, "-inf", now - LEASE)
        pipe.zadd(name, {identifier: now})
        pipe.zrank(name, identifier)
        if pipe.execute()[-1] < LIMIT:
            return identifier
    redis.zrem(name, identifier)
    return None


def take_fair(redis: Redis, name: str) -> str | None:
    identifier, now = str(uuid.uuid4()), time.time()
    owners, counter = f"{name}:owner", f"{name}:counter"
    with redis.pipeline() as pipe:
        pipe.zremrangebyscore(name, "-inf", now - LEASE)
        pipe.zinterstore(owners, {owners: 1, name: 0})
        pipe.incr(counter)
        turn = pipe.execute()[-1]
        pipe.zadd(name, {identifier: now})
        pipe.zadd(owners, {identifier: turn})
        pipe.zrank(owners, identifier)
        if pipe.execute()[-1] < LIMIT:
            return identifier
    give_back_fair(redis, name, identifier)
    return None


def give_back_fair(redis: Redis, name: str, identifier: str) -> None:
    with redis.pipeline() as pipe:
        pipe.zrem(name, identifier)
        pipe.zrem(f"{name}:owner", identifier)
        pipe.execute()


def take_with_lock(redis: Redis, name: str) -> str | None:
    locked = take(redis, name, patience=_LOCK_PATIENCE)
    if locked is None:
        return None
    try:
        return take_fair(redis, name)
    finally:
        give_back(redis, name, locked)


class _BookSemaphore(System):
    def hold(self, name: str) -> AbstractContextManager[None]:
        return self._held(name)

    @contextmanager
    def _held(self, name: str) -> Iterator[None]:
        deadline = time.monotonic() + PATIENCE
        while (identifier := self._take(name)) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no permit of {name!r} was free within {PATIENCE:.0f} seconds")
            time.sleep(PAUSE)
        try:
            yield
        finally:
            self._give_back(name, identifier)

    @abstractmethod
    def _take(self, name: str) -> str | None: ...

    def _give_back(self, name: str, identifier: str) -> None:
        give_back_fair(client(), name, identifier)


class BasicSemaphore(_BookSemaphore):
    guarantees = Guarantees(
        fence="no", lease="by the client's clock", lost_replies="a permit less", wakes="no: polls", fair="no"
    )

    def _take(self, name: str) -> str | None:
        return take_basic(client(), name)

    def _give_back(self, name: str, identifier: str) -> None:
        client().zrem(name, identifier)


class FairSemaphore(_BookSemaphore):
    guarantees = Guarantees(
        fence="no",
        lease="by the client's clock",
        lost_replies="a permit less",
        wakes="no: polls",
        fair="among those who try at once",
    )

    def _take(self, name: str) -> str | None:
        return take_fair(client(), name)


class LockedSemaphore(FairSemaphore):
    guarantees = Guarantees(
        fence="no",
        lease="by the client's clock",
        lost_replies="no: stuck",
        wakes="no: polls",
        fair="among those who try at once",
    )

    def _take(self, name: str) -> str | None:
        return take_with_lock(client(), name)
