"""
The scripts of locks, each with what is done when its calls are repeated : first a
preparation, then calls through the proxy.

Tokens are given, so that two runs can be compared.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from components.exceptions import LockLost, StaleFence
from components.kit.at_once import at_once
from components.services.locks import Lock, LockReader, lock
from components.services.locks.drop_ins import RELEASE
from components.services.locks.fences import FencedValue
from components.services.locks.named import key_of
from tests.support.repeating import Act, cases

case = cases("locks")


@case
def acquire_free(redis: Redis) -> Act:
    with lock("a"):
        pass
    held = lock("a", timeout=10)
    return lambda: held.acquire(token="one")


@case
def acquire_held(redis: Redis) -> Act:
    lock("a").acquire(token="other")
    return lambda: lock("a").acquire(token="one", blocking=False)


@case
def acquire_in_turn(redis: Redis) -> Act:
    """Grant the lock to a waiter that has another one behind it."""
    held, waiter = lock("a", fair=True), lock("a", fair=True)
    held.acquire(token="other")
    for token in (b"one", b"two"):
        assert at_once(waiter._try(token, waits=True))
    held.release()
    return lambda: waiter.acquire(token="one")


@case
def acquire_and_wait(redis: Redis) -> Act:
    lock("a", timeout=None).acquire(token="other")
    return lambda: at_once(lock("a")._try(b"one", waits=True))


@case
def acquire_of_another_client(redis: Redis) -> Act:
    """Acquire a key that redis-py's Lock holds."""
    redis.set("a", "other")
    return lambda: Lock(redis, "a").acquire(token="one", blocking=False)


@case
def release(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    return lambda: held.release()


@case
def release_lost(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    redis.delete(key_of("a"))

    def act() -> str:
        try:
            return str(held.release())
        except LockLost as lost:
            return str(lost)

    return act


@case
def release_by_force(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    return lambda: LockReader().force_release(key_of("a"), "one", held.fence)


@case
def leave(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    return lambda: at_once(held._leave(b"two"))


@case
def leave_while_holding(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    return lambda: at_once(held._leave(b"one"))


@case
def extend(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    return lambda: held.extend(20)


@case
def extend_twice(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    return lambda: (held.extend(20), held.extend(20))


@case
def extend_to_its_end(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    return lambda: held.extend(-20)


@case
def end_at_once(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    return lambda: held.extend(0, replace_ttl=True)


@case
def reacquire(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    redis.pexpire(key_of("a"), 5_000)
    return lambda: held.reacquire()


def release_again(redis: Redis, held: Lock, token: bytes | str, fence: int) -> bool:
    """Send the release of that acquisition, as if its reply had been lost, and return what the script says."""
    return bool(
        at_once(RELEASE.run(redis, held.keys, token=token, asker=token, fence=fence, reason="released"))
    )


def _with_waiters(redis: Redis, token: str) -> Lock:
    held = lock("a", timeout=None)
    held.acquire(token=token)
    for waiter in (b"two", b"three"):
        assert at_once(held._try(waiter, waits=True))
    return held


def refused(act: Callable[[], None]) -> None:
    with pytest.raises(StaleFence):
        act()


@case
def fenced_set(redis: Redis) -> Act:
    FencedValue("a").set("old", fence=1)
    return lambda: FencedValue("a").set("new", fence=2, ttl=60)


@case
def fenced_set_for_good(redis: Redis) -> Act:
    FencedValue("a").set("old", fence=2, ttl=60)
    return lambda: FencedValue("a").set("new", fence=2)


@case
def fenced_set_refused(redis: Redis) -> Act:
    FencedValue("a").set("new", fence=2)
    return lambda: refused(lambda: FencedValue("a").set("old", fence=1))


@case
def fenced_delete(redis: Redis) -> Act:
    FencedValue("a").set("old", fence=1)
    return lambda: FencedValue("a").delete(fence=2)


@case
def fenced_delete_refused(redis: Redis) -> Act:
    FencedValue("a").set("new", fence=2)
    return lambda: refused(lambda: FencedValue("a").delete(fence=1))
