"""Several locks at once: all or none, in one order."""

from __future__ import annotations

import asyncio
from threading import Thread

import pytest
from redis import Redis

from components.exceptions import InvalidName, LockLost, LockNotAcquired
from components.services.locks import LockReader, alocks, lock, locks
from components.services.locks.names import key_of

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


def test_none_is_held_if_one_is_not_free(redis: Redis) -> None:
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
    with pytest.raises(InvalidName, match="list of at least one"):
        locks(names)


def test_what_has_grown_old_while_others_were_waited_for_is_started_anew(redis: Redis) -> None:
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


def test_what_is_lost_while_others_were_waited_for_is_taken_again(redis: Redis) -> None:
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
