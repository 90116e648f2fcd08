"""
The locks and semaphores of chapter 6 of "Redis in Action", rebuilt from their description with the same commands and
round trips.

A lock is an identifier that is stored with SETNX; a waiter tries again after a millisecond. The second lock adds a
lease in a separate round trip. Release watches the key, compares, and deletes in a transaction.

A semaphore is a ZSET of identifiers by the client's clock, and the first ones hold a permit. The fair one orders them
by a counter in a second ZSET and keeps the clock for expiry only; the third takes the book's lock around that. The
book's semaphores do not wait: here they try again after a millisecond, as its lock does.

The only change: if the lock or permit is not free within ten seconds, an error is raised.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from redis import Redis
from redis.exceptions import WatchError

from benchmarks.harness import client

# Seconds, for all systems: less than the five after which redis-py gives up on a blocking command.
LEASE = 4
LIMIT = 5  # permits of every semaphore
PATIENCE = 10.0  # seconds that the book's locks wait by default
PAUSE = 0.001  # seconds between two attempts


def take(redis: Redis, name: str, *, patience: float = PATIENCE, lease: int = 0) -> str | None:
    """
    Take the lock; return its identifier, or None if it was not free in time.

    With a *lease* it is free again after that many seconds, and a waiter gives it a lease if it has none.
    """
    identifier, key = str(uuid.uuid4()), f"lock:{name}"
    deadline = time.time() + patience
    while time.time() < deadline:
        if redis.setnx(key, identifier):
            if lease:
                redis.expire(key, lease)
            return identifier
        if lease and redis.ttl(key) < 0:
            redis.expire(key, lease)
        time.sleep(PAUSE)
    return None


def give_back(redis: Redis, name: str, identifier: str) -> bool:
    """Free the lock if the identifier is still in it."""
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


@contextmanager
def lock(name: str, lease: int = 0) -> Iterator[None]:
    identifier = take(client(), name, lease=lease)
    if identifier is None:
        raise TimeoutError(f"{name!r} was not free within {PATIENCE:.0f} seconds.")
    try:
        yield
    finally:
        give_back(client(), name, identifier)


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


def take_locked(redis: Redis, name: str) -> str | None:
    # The seconds that it waits for its lock.
    locked = take(redis, name, patience=0.01)
    if locked is None:
        return None
    try:
        return take_fair(redis, name)
    finally:
        give_back(redis, name, locked)


@contextmanager
def permit(
    name: str,
    take: Callable[[Redis, str], str | None],
    give_back: Callable[[Redis, str, str], object] = give_back_fair,
) -> Iterator[None]:
    deadline = time.monotonic() + PATIENCE
    while (identifier := take(client(), name)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"No permit of {name!r} was free within {PATIENCE:.0f} seconds.")
        time.sleep(PAUSE)
    try:
        yield
    finally:
        give_back(client(), name, identifier)
