"""A Redis at its `maxmemory` that evicts nothing: what is held is renewed and given back, and permits are granted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.kit.at_once import at_once
from components.services.locks import LockReader, drop_ins, lock
from components.services.locks.fences import FencedValue
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.services.semaphores import Semaphore
from components.services.semaphores import semaphore as semaphores
from components.services.semaphores.semaphore import RELEASE as GIVE_BACK
from tests.support.lost_locks import release_again
from tests.support.semaphores import Waiter, take


@contextmanager
def full(redis: Redis) -> Iterator[None]:
    """Let the server have no room left, and know none of our scripts, as one that was restarted."""
    redis.script_flush()
    redis.config_set("maxmemory-policy", "noeviction")
    redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(Exception, match="maxmemory"):
            redis.set("more", 1)
        yield
    finally:
        redis.config_set("maxmemory", 0)


@pytest.fixture(autouse=True)
def no_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits here does not tell again that they are alive."""
    monkeypatch.setattr(drop_ins, "ALIVE", 60_000_000)
    monkeypatch.setattr(semaphores, "ALIVE", 60.0)


def is_woken(redis: Redis, waiter: str) -> bool:
    return bool(redis.llen(f"{LockKeys.named('a').wake}:{waiter}"))


@pytest.mark.parametrize("token", [None, "given"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_lock_is_extended_and_released(redis: Redis, token: str | None, waits: bool) -> None:
    held, waiter = lock("a", timeout=10), lock("a")
    held.acquire(token=token)
    if waits:
        assert at_once(waiter._try(b"waiter", waits=True))

    with full(redis):
        assert held.extend(10)
        assert held.extend(20, replace_ttl=True)
        assert held.reacquire()
        held.ensure_held()
        assert held._renew(held._holding)
        held.release()

    assert not held.locked()
    assert is_woken(redis, "waiter") == waits


def test_a_release_is_repeated_and_a_waiter_leaves(redis: Redis) -> None:
    held, waiter = lock("a", timeout=10), lock("a")
    held.acquire()
    for token in (b"first", b"second"):
        assert at_once(waiter._try(token, waits=True))
    token, fence = held.local.token, held.fence

    with full(redis):
        assert release_again(redis, held, token, fence)
        redis.delete(f"{LockKeys.named('a').wake}:first")
        assert release_again(redis, held, token, fence)
        assert is_woken(redis, "first")
        at_once(waiter._leave(b"first"))
        assert is_woken(redis, "second")


def test_a_lock_is_released_by_force(redis: Redis) -> None:
    held = lock("a")
    held.acquire(token="t")

    with full(redis):
        assert LockReader().force_release(key_of("a"), "t", held.fence)

    assert not held.locked()


def test_a_permit_is_refreshed_released_and_evicted(redis: Redis) -> None:
    semaphore = Semaphore("a", limit=2)
    first, second = take(semaphore, 2)
    waiter = Waiter(semaphore)
    waiter.ask()

    with full(redis):
        first.refresh()
        assert first.renew()
        first.release()
        assert waiter.is_woken(redis)
        again = GIVE_BACK.run(redis, semaphore._keys, permit=first.id, call=first.call)
        assert at_once(again) == first.call.encode()
        assert waiter.is_woken(redis)
        assert semaphore.evict(second.id)
        waiter.leave()
        semaphore.reset_limit()

    assert semaphore.info().used == semaphore.info().waiting == 0


def test_a_permit_is_taken_so_that_tasks_under_a_limit_can_be_run(redis: Redis) -> None:
    semaphore = Semaphore("a", limit=1)

    with full(redis):
        permit = semaphore.acquire(wait=0)
        assert semaphore.info().used == 1
        permit.release()

    assert semaphore.info().used == 0


def test_a_limit_is_set_and_reset_and_who_waits_is_woken(redis: Redis) -> None:
    semaphore = Semaphore("a", limit=1)
    take(semaphore, 1)
    waiter = Waiter(semaphore)
    assert waiter.ask() == "wait"

    with full(redis):
        semaphore.set_limit(2)
        assert waiter.is_woken(redis)
        assert semaphore.info().limit == 2
        assert waiter.ask() == "granted"
        semaphore.reset_limit()

    assert semaphore.info().limit == 1
    assert semaphore.info().used == 2


def test_a_fenced_value_is_deleted(redis: Redis) -> None:
    value = FencedValue("a")
    value.set("x", fence=1)

    with full(redis):
        value.delete(fence=2)

    assert value.get() is None


@pytest.mark.parametrize(
    "take_more",
    [
        lambda: lock("a").acquire(blocking=False),
        lambda: lock("a", fair=True).acquire(blocking_timeout=1),
        lambda: FencedValue("a").set("x", fence=1),
    ],
)
def test_a_request_above_the_limit_fails_at_once_and_leaves_nothing(
    redis: Redis, take_more: Callable[[], Any]
) -> None:
    with full(redis), pytest.raises(RedisUnavailable, match="maxmemory"):
        take_more()

    assert [key for key in redis.keys("*") if b":ended:" not in key] == []
