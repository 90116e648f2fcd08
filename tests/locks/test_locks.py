"""Locks by name: what is granted, refused, noted, told. Drop-in behaviour is held against redis-py's own tests."""

from __future__ import annotations

import asyncio
import math
from threading import Event, Thread

import pytest
from redis import Redis
from redis.exceptions import LockError, LockNotOwnedError

from components.exceptions import InvalidName, InvalidValue, LockLost, LockNotAcquired
from components.kit.at_once import at_once
from components.kit.leases import Holder
from components.services.locks import LockReader, alock, lock
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of


def end(redis: Redis, name: str) -> None:
    """Let the time of the lock *name* be over."""
    assert redis.delete(key_of(name))


def hold(name: str = "a", **options: object) -> object:
    held = lock(name, **options)  # type: ignore[arg-type]
    assert held.acquire(blocking=False)
    return held


def test_one_holds_it_and_no_other(redis: Redis) -> None:
    with lock("a") as held:
        assert held.owned()
        assert not lock("a").acquire(blocking=False)
        assert lock("b").acquire(blocking=False)

    assert lock("a").acquire(blocking=False)


def test_it_ends_with_its_time(redis: Redis) -> None:
    held = lock("a", timeout=5)
    held.acquire()

    assert 4_000 < redis.pttl(key_of("a")) <= 5_000
    assert 4 < held.remaining <= 5


def test_without_a_timeout_it_is_held_for_ever(redis: Redis) -> None:
    held = lock("a", timeout=None)
    held.acquire()

    assert redis.pttl(key_of("a")) == -1
    assert held.remaining == math.inf


def test_a_lock_by_name_has_a_timeout_of_half_a_minute() -> None:
    assert lock("a").timeout == 30


def test_a_late_buyer_is_refused(redis: Redis) -> None:
    with lock("a"), pytest.raises(LockNotAcquired, match="not free in time"), lock("a", blocking_timeout=0):
        pytest.fail("both hold it")


def test_the_fence_grows_with_each_holder(redis: Redis) -> None:
    fences = []
    for _ in range(3):
        with lock("a") as held:
            fences.append(held.fence)

    assert fences == sorted(set(fences))


def test_the_fence_grows_though_all_was_forgotten(redis: Redis) -> None:
    with lock("a") as held:
        before = held.fence
    redis.flushall()

    with lock("a") as held:
        assert held.fence > before


def test_the_fence_grows_though_the_clock_of_the_server_was_set_back(redis: Redis) -> None:
    with lock("a") as held:
        ahead = held.fence + 10**15
    redis.zadd(LockKeys.named("a").held, {"": -ahead})

    with lock("a") as held:
        assert held.fence == ahead + 1


def test_the_fence_is_of_the_holder_only(redis: Redis) -> None:
    held = lock("a")
    with held:
        pass

    with pytest.raises(LockError, match="not held here"):
        _ = held.fence


def test_a_release_wakes_the_waiters(redis: Redis) -> None:
    holder, got = lock("a", timeout=None), Event()
    holder.acquire()

    def wait() -> None:
        with lock("a"):
            got.set()

    waiter = Thread(target=wait)
    waiter.start()
    try:
        while not redis.zcard(LockKeys.named("a").queue):
            assert not got.wait(0.01)
        holder.release()
        assert got.wait(5)
    finally:
        waiter.join()


def test_a_wait_in_vain_leaves_nothing_behind(redis: Redis) -> None:
    with lock("a"):
        before = redis.dbsize()

        assert not lock("a").acquire(blocking_timeout=0.05)

        assert redis.dbsize() == before


def test_a_fair_lock_keeps_the_order_of_requests(redis: Redis) -> None:
    held = lock("a", fair=True)
    held.acquire()
    first, second = lock("a", fair=True), lock("a", fair=True)
    for waiter, token in ((first, b"first"), (second, b"second")):
        assert at_once(waiter._try(token, waits=True))
    held.release()

    assert not held.acquire(blocking=False)
    assert at_once(second._try(b"second", waits=True))
    assert not at_once(first._try(b"first", waits=True))
    first.release()
    assert not at_once(second._try(b"second", waits=True))


def test_a_fair_lock_does_not_wait_for_the_dead(redis: Redis) -> None:
    held, dead = lock("a", fair=True), lock("a", fair=True)
    held.acquire()
    assert at_once(dead._try(b"dead", waits=True))
    held.release()
    assert not held.acquire(blocking=False)

    redis.zadd(LockKeys.named("a").beats, {"dead": 1})

    assert held.acquire(blocking=False)
    assert not redis.exists(LockKeys.named("a").queue)


def test_any_other_lock_goes_to_whoever_comes_first(redis: Redis) -> None:
    held, waiter = lock("a"), lock("a")
    held.acquire()
    assert at_once(waiter._try(b"waiter", waits=True))
    held.release()

    assert held.acquire(blocking=False)


def test_a_release_wakes_the_first_and_a_waiter_who_leaves_the_next(redis: Redis) -> None:
    held, waiter = lock("a"), lock("a")
    held.acquire()
    for token in (b"first", b"second"):
        assert at_once(waiter._try(token, waits=True))
    wake = LockKeys.named("a").wake

    held.release()
    assert redis.llen(f"{wake}:first") == 1
    assert redis.llen(f"{wake}:second") == 0

    at_once(waiter._leave(b"first"))
    assert redis.llen(f"{wake}:first") == 0
    assert redis.llen(f"{wake}:second") == 1


def test_a_lost_lock_is_reported_at_release(redis: Redis) -> None:
    held = lock("a")
    held.acquire()
    end(redis, "a")

    with pytest.raises(LockLost, match="ran out") as caught:
        held.release()

    assert isinstance(caught.value, LockNotOwnedError)
    assert caught.value.lock_name == key_of("a")
    with pytest.raises(LockError, match="not owned"):
        held.release()


def test_an_inner_error_is_not_hidden_by_the_loss_of_the_lock(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        with lock("a"):
            end(redis, "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert "could not be released" in caplog.text


def test_a_release_after_another_has_taken_it_leaves_the_other_alone(redis: Redis) -> None:
    held, other = lock("a"), lock("a")
    held.acquire()
    end(redis, "a")
    other.acquire()

    with pytest.raises(LockLost):
        held.release()

    assert other.owned()


def test_ensure_held_asks_redis(redis: Redis) -> None:
    held = lock("a")
    held.acquire()
    held.ensure_held()
    lost = held.lost
    assert not lost.is_set()
    end(redis, "a")

    with pytest.raises(LockLost):
        held.ensure_held()

    assert lost.is_set()
    assert held.remaining == 0


def test_it_can_be_extended_and_started_anew(redis: Redis) -> None:
    held = lock("a", timeout=5)
    held.acquire()

    assert held.extend(10)
    assert 14 < held.remaining <= 15
    assert held.extend(7, replace_ttl=True)
    assert 6_000 < redis.pttl(key_of("a")) <= 7_000
    assert held.reacquire()
    assert 4 < held.remaining <= 5


def test_a_thread_that_has_not_acquired_it_can_ask_and_not_release(redis: Redis) -> None:
    held = lock("a")
    held.acquire()
    said: list[object] = []

    def look() -> None:
        said.append(held.owned())
        with pytest.raises(LockError, match="not owned"):
            held.release()

    thread = Thread(target=look)
    thread.start()
    thread.join()

    assert said == [False]
    assert held.owned()


def test_an_owner_and_where_it_is_can_be_read_off_the_token(redis: Redis) -> None:
    held = lock("a", owner="jill / 2%")
    held.acquire()

    holder = Holder.of(held.local.token.decode())

    assert holder.owner == "jill / 2%"
    assert holder.host
    assert holder.process
    assert holder.thread == "MainThread"


@pytest.mark.parametrize("token", ["", "test", "a/b/c/d/e", "a/1/c"])
def test_other_tokens_are_unknown(token: str) -> None:
    assert Holder.of(token) == Holder()


@pytest.mark.parametrize("name", ["", "x" * 501, 7, None, "\ud800"])
def test_a_name_must_be_text_of_some_length(name: object) -> None:
    with pytest.raises(InvalidName, match="name is text of 1 to 500"):
        lock(name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "seconds"),
    [
        *((option, seconds) for option in ("timeout", "sleep") for seconds in (-1, math.inf, 10**12)),
        *(
            (option, seconds)
            for option in ("timeout", "sleep", "blocking_timeout")
            for seconds in (math.nan, "5", True)
        ),
    ],
)
def test_a_duration_must_be_one(option: str, seconds: object) -> None:
    with pytest.raises(InvalidValue, match=option):
        lock("a", **{option: seconds})  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0, 0.0001])
def test_nothing_can_be_held_for_no_time(seconds: float) -> None:
    with pytest.raises(InvalidValue, match="timeout"):
        lock("a", timeout=seconds)


@pytest.mark.parametrize(
    ("seconds", "waits"), [(-1, False), (-math.inf, False), (math.inf, True), (10**12, True)]
)
def test_patience_may_be_less_than_none_or_without_end(redis: Redis, seconds: float, waits: bool) -> None:
    assert lock("a")._patience(None, seconds)[0] is waits
    assert lock("a", blocking_timeout=seconds).acquire()


def test_durations_given_later_are_checked_as_well(redis: Redis) -> None:
    held = lock("a")
    with pytest.raises(InvalidValue, match="blocking_timeout"):
        held.acquire(blocking_timeout=math.nan)
    for wrong in (-1, math.nan):
        with pytest.raises(InvalidValue, match="sleep"):
            held.acquire(sleep=wrong)
    assert not held.locked()
    held.acquire()
    with pytest.raises(InvalidValue, match="additional_time"):
        held.extend(math.nan)
    assert 29_000 < redis.pttl(key_of("a")) <= 30_000


def test_a_negative_extension_shortens_or_loses_the_lock(redis: Redis) -> None:
    held = lock("a")
    held.acquire()

    assert held.extend(-20)
    assert 9 < held.remaining <= 10
    assert held.extend(-20)
    assert held.remaining == 0
    with pytest.raises(LockLost):
        held.release()
    assert lock("a").acquire(blocking=False)


def test_renewal_needs_a_timeout_and_fairness_no_sleep() -> None:
    with pytest.raises(ValueError, match="needs a timeout"):
        lock("a", timeout=None, auto_renewal=True)
    with pytest.raises(ValueError, match="give no sleep"):
        lock("a", fair=True, sleep=0.5)


def test_coroutines_have_the_same(redis: Redis) -> None:
    async def main() -> None:
        async with alock("a", owner="jill") as held:
            assert held.fence
            assert await held.owned()
            assert not await alock("a").acquire(blocking=False)
            assert not lock("a").acquire(blocking=False)
            with pytest.raises(LockNotAcquired):
                await alock("a", blocking_timeout=0.01).__aenter__()
            await held.ensure_held()
            assert await held.extend(10)
            assert await held.reacquire()
            [info] = await asyncio.to_thread(LockReader().held)
            assert info.holder.owner == "jill"
        assert not await held.locked()

    asyncio.run(main())


def test_a_coroutine_that_waits_is_woken(redis: Redis) -> None:
    async def main() -> None:
        held, waiter = alock("a", timeout=None), alock("a", timeout=None)
        await held.acquire()
        waiting = asyncio.create_task(waiter.acquire())
        while not await held.redis.zcard(LockKeys.named("a").queue):
            await asyncio.sleep(0.005)
        await held.release()
        assert await asyncio.wait_for(waiting, 5)
        assert await waiter.owned()

    asyncio.run(main())
