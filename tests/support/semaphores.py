"""
Helpers for tests of semaphores.

No test sleeps: `let_pass` makes all stored instants of a semaphore earlier.
"""

from dataclasses import replace
from typing import Any

from redis import Redis

from components.kit.client import get_client
from components.kit.sync_async import at_once
from components.services.semaphores import Permit, Semaphore
from components.services.semaphores.keys import SemaphoreKeys


class Waiter:
    """Asks for a permit like a waiter, but only when the test says so."""

    def __init__(self, semaphore: Semaphore, weight: int = 1) -> None:
        self._semaphore = semaphore
        self._wish = semaphore._wish(get_client(), None, weight, None, False)

    @property
    def id(self) -> str:
        return self._wish.id

    def ask(self) -> str:
        return self.ask_all()[0]

    def ask_all(self) -> tuple[str, Any]:
        said, number = at_once(self._semaphore._ask(get_client(), self._wish))
        return said.decode(), number

    def leave(self) -> None:
        at_once(self._semaphore._leave(get_client(), self._wish))

    def is_woken(self, redis: Redis, *, keep: bool = False) -> bool:
        """Return True if it was woken, and take the wake-up unless *keep* is true."""
        wake = f"{self._semaphore._keys.wake}:{self.id}"
        return bool(redis.llen(wake)) if keep else redis.lpop(wake) is not None

    def become(self, permit: str) -> None:
        """Ask for this permit from now on."""
        self._wish = replace(self._wish, id=permit)


def let_pass(redis: Redis, name: str, seconds: float) -> None:
    keys = SemaphoreKeys(name)
    for part in ("holders", "since", "queue", "beats"):
        key = getattr(keys, part)
        for member, score in redis.zrange(key, 0, -1, withscores=True):
            redis.zadd(key, {member: score - seconds * 1e6})
    for key in redis.scan_iter(f"{keys.ended}:*"):
        redis.pexpire(key, redis.pttl(key) - round(seconds * 1e3))


def take(semaphore: Semaphore, count: int = 1, **options: Any) -> list[Permit]:
    permits = [semaphore.try_acquire(**options) for _ in range(count)]
    assert None not in permits
    return permits


def queued(redis: Redis, name: str) -> list[str]:
    return [waiter.decode() for waiter in redis.zrange(SemaphoreKeys(name).queue, 0, -1)]
