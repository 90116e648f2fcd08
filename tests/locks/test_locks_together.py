"""Several locks at once: all or none, in one order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from components.exceptions import LockLost, LockNotAcquired
from components.kit import leases as renewals
from components.services.locks import alock, alocks, lock, locks
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.support.waiting import eventually

NAMES = ["c", "a", "b"]


def free() -> list[str]:
    return [name for name in sorted(NAMES) if not lock(name).locked()]


def fence_of(redis: Redis, name: str) -> int:
    """Return that of the holder, by what Redis says."""
    return -int(redis.zscore(LockKeys.named(name).held, b"\xff" + key_of(name).encode()) or 0)


def test_all_are_held_and_all_released(redis: Redis) -> None:
    with locks([*NAMES, "a"]) as held:
        assert free() == []
        assert held.fences == {name: fence_of(redis, name) for name in sorted(NAMES)}
        assert list(held.fences) == sorted(NAMES)
        held.ensure_held()

    assert free() == ["a", "b", "c"]


def test_none_is_held_unless_all_are_free(redis: Redis) -> None:
    kept = len(list(renewals._starter.get()._kept))
    with lock("b"):
        assert not locks(NAMES).acquire(blocking=False)
        with pytest.raises(LockNotAcquired), locks(NAMES, blocking_timeout=0.05):
            pytest.fail("b is held twice")

        assert free() == ["a", "c"]
    assert len(list(renewals._starter.get()._kept)) == kept


def test_two_who_name_them_in_another_order_do_not_wait_for_each_other(redis: Redis) -> None:
    def work(names: list[str]) -> int:
        done = 0
        for _ in range(15):
            with locks(names, blocking_timeout=20):
                done += 1
        return done

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, (NAMES, NAMES[::-1]))) == [15, 15]


@pytest.mark.parametrize(
    ("seconds", "left", "is_lost", "times"),
    [(6, 14_000, False, 1), (7, 3_000, False, 1), (21, 0, True, 2)],
    ids=["young", "old", "lost"],
)
def test_what_grew_old_in_the_wait_for_others_is_renewed_or_acquired_again(
    redis: Redis, seconds: int, left: int, is_lost: bool, times: int
) -> None:
    """Of a time of 20 seconds; below two thirds of it, it is renewed."""
    both = locks(["a", "b"], timeout=20)
    first = both._locks["a"]
    acquire: Callable[..., bool] = first.acquire
    calls = []

    def slowly(**options: object) -> bool:
        got = acquire(**options)
        calls.append(got)
        if len(calls) == 1:
            redis.delete(key_of("a")) if is_lost else redis.pexpire(key_of("a"), left)
            first.local.holding.valid_until -= seconds
        return got

    first.acquire = slowly

    assert both.acquire()
    assert calls == [True] * times
    both.ensure_held()
    stays = seconds == 6
    assert (redis.pttl(key_of("a")) <= 14_000) == stays
    assert (first.remaining <= 14) == stays


def test_a_loss_is_told_and_the_others_are_released(redis: Redis) -> None:
    held = locks(NAMES)
    held.acquire()
    redis.delete(key_of("b"))

    with pytest.raises(LockLost):
        held.ensure_held()
    with pytest.raises(LockLost):
        held.release()

    assert free() == ["a", "b", "c"]


def test_those_that_are_held_are_renewed_while_another_is_waited_for(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewals, "_PART", 200)
    other = lock("b", timeout=None, thread_local=False)
    other.acquire()
    several = locks(["a", "b"], timeout=10, blocking_timeout=20)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(several.acquire)
        assert eventually(lambda: redis.exists(key_of("a")))
        redis.pexpire(key_of("a"), 7_000)
        assert eventually(lambda: redis.pttl(key_of("a")) > 7_000)
        other.release()
        assert waiting.result(20)


def test_coroutines_have_the_same(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewals, "_PART", 200)

    async def main() -> None:
        async with alocks(NAMES) as held:
            assert held.fences == {name: fence_of(redis, name) for name in NAMES}
            await held.ensure_held()
            assert not await alocks(["c", "d"]).acquire(blocking=False)
            with pytest.raises(LockNotAcquired):
                await alocks(["c", "d"], blocking_timeout=0.01).__aenter__()
        other = alock("c", timeout=None)
        await other.acquire()
        several = alocks(NAMES, timeout=10, blocking_timeout=20)
        acquiring = asyncio.create_task(several.acquire())
        while not redis.exists(key_of("b")):
            await asyncio.sleep(0.005)
        redis.pexpire(key_of("a"), 7_000)
        while redis.pttl(key_of("a")) <= 7_000:
            assert redis.exists(key_of("a"))
            await asyncio.sleep(0.005)
        await other.release()
        assert await acquiring
        await several.release()
        await several.acquire()
        redis.delete(key_of("b"))
        with pytest.raises(LockLost):
            await several.release()

    asyncio.run(main())
    assert free() == ["a", "b", "c"]
