"""
The locks of chapter 6 of "Redis in Action", built anew from their description: same commands, same round trips.

An identifier is stored with SETNX; who finds the key taken tries again after a millisecond. The second lock
adds a lease, in a round trip of its own. Release watches the key, compares, and deletes in a transaction. The one
change: whoever has not got it within ten seconds fails loudly.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from redis import Redis
from redis.exceptions import WatchError

from benchmarks.crew import client
from benchmarks.locking.base import LEASE, Guarantees, System

PATIENCE = 10.0  # seconds that the book's locks wait by default
PAUSE = 0.001  # seconds between two tries


def take(redis: Redis, name: str, *, patience: float = PATIENCE) -> str | None:
    """The identifier under which *name* is held until it is released; None if it was not free in time."""
    identifier, key = str(uuid.uuid4()), f"lock:{name}"
    deadline = time.time() + patience
    while time.time() < deadline:
        if redis.setnx(key, identifier):
            return identifier
        time.sleep(PAUSE)
    return None


def take_with_lease(redis: Redis, name: str, lease: int) -> str | None:
    """The same, and the lock is free again after *lease* seconds; who waits gives it a lease if it has none."""
    identifier, key = str(uuid.uuid4()), f"lock:{name}"
    deadline = time.time() + PATIENCE
    while time.time() < deadline:
        if redis.setnx(key, identifier):
            redis.expire(key, lease)
            return identifier
        if redis.ttl(key) < 0:
            redis.expire(key, lease)
        time.sleep(PAUSE)
    return None


def give_back(redis: Redis, name: str, identifier: str) -> bool:
    """Free *name* if the identifier is still in it."""
    key = f"lock:{name}"
    with redis.pipeline() as pipe:
        while True:
            with suppress(WatchError):
                pipe.watch(key)
                if pipe.get(key) != identifier.encode():
                    pipe.unwatch()
                    return False
                pipe.multi()
                pipe.delete(key)
                pipe.execute()
                return True


class Book(System):
    guarantees = Guarantees(
        fence="no", lease="no: lost with its holder", lost_replies="no: stuck", wakes="no: polls", fair="no"
    )

    def hold(self, name: str) -> AbstractContextManager[None]:
        return self._held(name)

    @contextmanager
    def _held(self, name: str) -> Iterator[None]:
        identifier = self._take(name)
        if identifier is None:
            raise TimeoutError(f"{name!r} was not free within {PATIENCE:.0f} seconds")
        try:
            yield
        finally:
            give_back(client(), name, identifier)

    def _take(self, name: str) -> str | None:
        return take(client(), name)


class BookWithLease(Book):
    guarantees = Guarantees(
        fence="no",
        lease="in a second step",
        lost_replies="no: held by nobody",
        wakes="no: polls",
        fair="no",
    )

    def _take(self, name: str) -> str | None:
        return take_with_lease(client(), name, LEASE)
