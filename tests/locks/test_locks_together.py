"""Several locks at once: all or none, in one order."""

from __future__ import annotations

import asyncio
import threading
from threading import Thread

import pytest
from redis import Redis

from components.exceptions import InvalidName, LockLost, LockNotAcquired
from components.kit import leases as renewals
from components.services.locks import LockReader, alock, alocks, lock, locks
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.support.waiting import eventually

NAMES = ["c", "a", "b"]


def free() -> list[str]:
    return [name for name in sorted(NAMES) if not lock(name).locked()]


def test_all_are_held_and_all_released(redis: Redis) -> None:
    with locks(NAMES) as held:
        assert free() == []
        assert list(held.fences) == ["a", "b", "c"]
        assert held.fences["a"] == lock_fence("a")
        held.ensure_held()

    assert free() == ["a", "b", "c"]


def lock_fence(name: str) -> int:
    info = LockReader().find(name)
    assert info
    return info.fence


def test_no_permit_is_held_unless_all_are_free(redis: Redis) -> None:
    with lock("b"):
        assert not locks(NAMES).acquire(blocking=False)
        with pytest.raises(LockNotAcquired, match="a, b, c"), locks(NAMES, blocking_timeout=0.05):
            pytest.fail("b is held twice")

        assert free() == ["a", "c"]


def test_two_who_name_them_in_another_order_do_not_wait_for_each_other(redis: Redis) -> None:
    done: list[str] = []

    def work(names: list[str]) -> None:
        for _ in range(30):
            with locks(names, blocking_timeout=20):
                done.append(names[0])

    threads = [Thread(target=work, args=[order]) for order in (NAMES, NAMES[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(done) == 60


def test_a_name_that_is_given_twice_is_one_lock(redis: Redis) -> None:
    with locks(["a", "a"]) as held:
        assert list(held.fences) == ["a"]


@pytest.mark.parametrize("names", [[], "abc"])
def test_there_must_be_names(names: list[str]) -> None:
    with pytest.raises(InvalidName, match="list with at least one name"):
        locks(names)


def test_a_lock_that_grew_old_in_the_wait_for_others_is_acquired_anew(redis: Redis) -> None:
    both = locks(["a", "b"], timeout=20)
    first = both._locks["a"]
    acquire = first.acquire

    def slowly(**options: object) -> bool:
        got: bool = acquire(**options)
        redis.pexpire(key_of("a"), 3_000)
        first.local.holding.valid_until -= 17
        return got

    first.acquire = slowly

    assert both.acquire()
    assert redis.pttl(key_of("a")) > 15_000
    assert first.remaining > 15


def test_a_lock_lost_in_the_wait_for_others_is_acquired_again(redis: Redis) -> None:
    both = locks(["a", "b"], timeout=20)
    first = both._locks["a"]
    acquire = first.acquire
    times = []

    def slowly(**options: object) -> bool:
        got: bool = acquire(**options)
        times.append(got)
        if len(times) == 1:
            redis.delete(key_of("a"))
            first.local.holding.valid_until -= 21
        return got

    first.acquire = slowly

    assert both.acquire()
    assert times == [True, True]
    both.ensure_held()


def test_a_loss_is_told_and_the_others_are_released(redis: Redis) -> None:
    held = locks(NAMES)
    held.acquire()
    redis.delete(key_of("b"))

    with pytest.raises(LockLost):
        held.ensure_held()
    with pytest.raises(LockLost):
        held.release()

    assert free() == ["a", "b", "c"]


def test_coroutines_have_the_same(redis: Redis) -> None:
    async def main() -> None:
        async with alocks(NAMES) as held:
            assert list(held.fences) == ["a", "b", "c"]
            await held.ensure_held()
            assert not await alocks(["c", "d"]).acquire(blocking=False)
            with pytest.raises(LockNotAcquired):
                await alocks(["c", "d"], blocking_timeout=0.01).__aenter__()

    asyncio.run(main())
    assert free() == ["a", "b", "c"]


def fence_of(redis: Redis, name: str) -> int:
    """Return that of the holder, by what Redis says."""
    return -int(redis.zscore(LockKeys.named(name).held, b"\xff" + key_of(name).encode()) or 0)


def test_those_that_are_held_are_renewed_while_another_is_waited_for_longer_than_their_time(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewals, "_PART", 20)
    other, seen = lock("b", timeout=None), threading.Event()
    other.acquire()
    first: list[int] = []

    def hold() -> None:
        assert eventually(lambda: fence_of(redis, "a"))
        first.append(fence_of(redis, "a"))
        seen.wait(1.5)  # longer than a lock is held for
        other.local.token = token
        other.release()

    token = other.local.token
    thread = Thread(target=hold)
    thread.start()
    try:
        with locks(["a", "b"], timeout=1, blocking_timeout=20) as held:
            assert [held.fences["a"]] == first  # it was held all the time
            held.ensure_held()
    finally:
        thread.join()

    assert free() == ["a", "b", "c"]


def test_coroutines_renew_those_that_they_hold_while_they_wait(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewals, "_PART", 20)

    async def main() -> None:
        other = alock("c", timeout=None)
        await other.acquire()
        several = alocks(NAMES, timeout=1, blocking_timeout=20)
        acquiring = asyncio.create_task(several.acquire())
        while not (fence_of(redis, "a") and fence_of(redis, "b")):
            await asyncio.sleep(0.005)
        first = [fence_of(redis, "a"), fence_of(redis, "b")]
        await asyncio.sleep(1.5)
        assert [fence_of(redis, "a"), fence_of(redis, "b")] == first
        await other.release()
        assert await acquiring
        assert [several.fences["a"], several.fences["b"]] == first
        await several.release()

    asyncio.run(main())
    assert free() == ["a", "b", "c"]


def test_a_caller_that_gives_up_renews_nothing_any_more(redis: Redis) -> None:
    other, before = lock("b", timeout=None), len(list(renewals._starter.get()._kept))
    other.acquire()

    assert not locks(["a", "b"], timeout=0.5, blocking_timeout=0.3).acquire()

    assert not lock("a").locked()
    assert len(list(renewals._starter.get()._kept)) == before
    other.release()
