"""
The scripts of locks, each with what is done while its reply gets lost (tests/kit/test_lost_replies.py): first a
preparation, then calls through the proxy.

Tokens are given, so that two runs can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis import Redis

from components.exceptions import LockLost
from components.kit.at_once import at_once
from components.kit.client import get_client
from components.services.locks import Lock, LockReader, lock
from components.services.locks.drop_ins import RELEASE
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of

Act = Callable[[], Any]


def acquire_free(redis: Redis) -> Act:
    with lock("a"):
        pass
    held = lock("a", timeout=10)
    return lambda: on(held).acquire(token="one") and (held.fence > 0, held.remaining // 20)


def acquire_held(redis: Redis) -> Act:
    lock("a").acquire(token="other")
    return lambda: on(lock("a")).acquire(token="one", blocking=False)


def acquire_in_turn(redis: Redis) -> Act:
    """Grant the lock to a waiter that has another one behind it."""
    held, waiter = lock("a", fair=True), lock("a", fair=True)
    held.acquire(token="other")
    for token in (b"one", b"two"):
        assert at_once(waiter._try(token, waits=True))
    held.release()

    def act() -> Any:
        granted = on(waiter).acquire(token="one")
        return granted, forget(redis, "waited", "longest")

    return act


def acquire_and_wait(redis: Redis) -> Act:
    lock("a", timeout=None).acquire(token="other")
    return lambda: at_once(on(lock("a"))._try(b"one", waits=True))


def acquire_of_another_client(redis: Redis) -> Act:
    """Acquire a key that redis-py's Lock holds."""
    redis.set("a", "other")
    return lambda: on(Lock(redis, "a")).acquire(token="one", blocking=False)


def release(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    return lambda: on(held).release()


def release_lost(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    redis.delete(key_of("a"))

    def act() -> str:
        try:
            return str(on(held).release())
        except LockLost as lost:
            return str(lost)

    return act


def release_by_force(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    return lambda: LockReader().force_release(key_of("a"), "one", held.fence)


def leave(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    return lambda: at_once(on(held)._leave(b"two"))


def leave_while_holding(redis: Redis) -> Act:
    held = _with_waiters(redis, "one")
    return lambda: at_once(on(held)._leave(b"one"))


def extend(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    return lambda: (on(held).extend(20), held.remaining // 20, forget(redis, "extension"))


def extend_twice(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    return lambda: (on(held).extend(20), held.extend(20), held.remaining // 20, forget(redis, "extension"))


def extend_to_its_end(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    return lambda: (on(held).extend(-20), held.remaining, held.locked(), forget(redis, "ended"))


def end_at_once(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    return lambda: (
        on(held).extend(0, replace_ttl=True),
        held.remaining,
        held.locked(),
        forget(redis, "ended"),
    )


def reacquire(redis: Redis) -> Act:
    held = lock("a", timeout=10)
    held.acquire(token="one")
    redis.pexpire(key_of("a"), 5_000)
    return lambda: (on(held).reacquire(), held.remaining // 20)


CASES: dict[str, list[Callable[[Redis], Act]]] = {
    "locks/acquire": [
        acquire_free,
        acquire_held,
        acquire_in_turn,
        acquire_and_wait,
        acquire_of_another_client,
    ],
    "locks/extend": [extend, extend_twice, extend_to_its_end, end_at_once, reacquire],
    "locks/release": [release, release_lost, release_by_force, leave, leave_while_holding],
}


def on(held: Lock) -> Lock:
    """Return a lock that uses the project's present client."""
    held.redis = get_client()
    return held


def release_again(redis: Redis, held: Lock, token: bytes | str, fence: int) -> bool:
    """Send the release of that acquisition, as if its reply had been lost, and return what the script says."""
    return bool(
        at_once(RELEASE.run(redis, held.keys, token=token, asker=token, fence=fence, reason="released"))
    )


def forget(redis: Redis, *fields: str) -> int:
    """Delete the parts of the state that differ from run to run, and return how many there were."""
    return redis.hdel(LockKeys.named("a").state, *fields)


def _with_waiters(redis: Redis, token: str) -> Lock:
    held = lock("a", timeout=None)
    held.acquire(token=token)
    for waiter in (b"two", b"three"):
        assert at_once(held._try(waiter, waits=True))
    return held
