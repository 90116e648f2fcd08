"""Locks and semaphores that are held and waited for, made the way real ones come about."""

from typing import Any

from components.kit.client import get_client
from components.kit.sync_async import at_once
from components.services.locks import Lock, lock
from components.services.locks.keys import LockKeys
from components.services.semaphores import Permit, Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.semaphores import Waiter

LATER = 9e15  # microseconds: a waiter that never misses a heartbeat


def held(name: str = "item:42", **options: Any) -> Lock:
    taken = lock(name, **{"owner": "jill", **options})
    assert taken.acquire(blocking=False)
    return taken


def contended(name: str = "item:42") -> None:
    """A lock was held, and then by somebody who had waited for it; now it is free."""
    held(name).release()
    waiter = lock(name, owner="jill")
    assert not at_once(waiter._try(b"shop-2/7/worker/jill/0", waits=True, waited=1.5))
    waiter.release()


def own_key(key: str, token: str | bytes | None = None) -> Lock:
    """A lock at a key of the caller's own, as redis-py's users have them."""
    taken = Lock(get_client(), key, timeout=30)
    assert taken.acquire(blocking=False, token=token)
    return taken


def waits(name: str = "item:42", *owners: str) -> None:
    """Some wait for the lock *name*, in this order."""
    tokens = [f"shop-2/7/worker/{owner}/{number}".encode() for number, owner in enumerate(owners)]
    for token in tokens:
        assert at_once(lock(name)._try(token, waits=True)) is not None
    get_client().zadd(LockKeys.named(name).beats, dict.fromkeys(tokens, LATER))


def semaphore(name: str = "api", *, limit: int = 3, lease: float = 30) -> Semaphore:
    return Semaphore(name, limit=limit, lease=lease)


def permit(name: str = "api", *, limit: int = 3, owner: str = "jill", weight: int = 1) -> Permit:
    taken = semaphore(name, limit=limit).try_acquire(owner=owner, weight=weight)
    assert taken
    return taken


def waits_for_permit(name: str = "api", *, limit: int = 3, count: int = 1, weight: int = 1) -> list[Waiter]:
    waiters = [Waiter(semaphore(name, limit=limit), weight) for _ in range(count)]
    for waiter in waiters:
        assert waiter.ask() == "wait"
        get_client().zadd(SemaphoreKeys(name).beats, {waiter.id: LATER})
    return waiters
