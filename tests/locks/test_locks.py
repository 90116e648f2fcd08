"""Locks by name: what is granted, refused, noted, told."""

from __future__ import annotations

import asyncio
import math
from threading import Event, Thread
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import LockError, LockNotOwnedError

from components.exceptions import InvalidName, LockLost, LockNotAcquired
from components.kit.at_once import at_once
from components.kit.leases import Holder
from components.services.locks import Lock, LockReader, alock, drop_ins, lock
from components.services.locks.drop_ins import EXTEND
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.support.waiting import eventually

AWKWARD = ["a b\nc", "naïve ☂", "%7Ba%7D", "x" * 500, "{tag}:rest", "{a}{b}", "{a%2F}", "{", "a{b"]


pytestmark = pytest.mark.usefixtures("no_heartbeats")


def end(redis: Redis, name: str) -> None:
    """Let the time of the lock *name* be over."""
    assert redis.delete(key_of(name))


def acquired(name: str = "a", **options: object) -> Lock:
    held = lock(name, **options)  # type: ignore[arg-type]
    assert held.acquire(blocking=False)
    return held


def test_one_holds_it_and_no_other(redis: Redis) -> None:
    with lock("a") as held:
        assert held.owned()
        assert not lock("a").acquire(blocking=False)
        assert lock("b").acquire(blocking=False)
        with pytest.raises(LockNotAcquired), lock("a", blocking_timeout=0):
            pytest.fail("both hold it")

    assert lock("a").acquire(blocking=False)


@pytest.mark.parametrize(
    ("options", "seconds"), [({}, 30), ({"timeout": 500}, 500), ({"timeout": None}, math.inf)], ids=str
)
def test_it_ends_with_its_time(redis: Redis, options: dict[str, float | None], seconds: float) -> None:
    held = acquired(**options)

    left = redis.pttl(key_of("a"))
    assert left == -1 if seconds == math.inf else seconds - 20 < left / 1000 <= seconds
    assert held.remaining == seconds or seconds - 20 < held.remaining <= seconds


def test_the_fence_grows_with_each_holder_whatever_redis_has_forgotten(redis: Redis) -> None:
    fences = []
    for lose in (lambda: None, lambda: None, redis.flushall):
        lose()
        with lock("a") as held:
            fences.append(held.fence)
    ahead = fences[-1] + 10**15
    redis.zadd(LockKeys.named("a").held, {"": -ahead})  # as if the clock had been ahead
    for _ in range(2):
        with lock("a") as held:
            fences.append(held.fence)

    assert fences == sorted(set(fences))
    assert fences[-2:] == [ahead + 1, ahead + 2]
    with pytest.raises(LockError):
        _ = held.fence


def test_a_release_wakes_the_waiters(redis: Redis) -> None:
    holder, got = acquired(timeout=None), Event()

    def wait() -> None:
        with lock("a"):
            got.set()

    waiter = Thread(target=wait)
    waiter.start()
    assert eventually(lambda: redis.zcard(LockKeys.named("a").queue))
    holder.release()
    waiter.join(20)

    assert got.is_set()


def test_a_wait_in_vain_leaves_nothing_behind(redis: Redis) -> None:
    with lock("a"):
        before = redis.dbsize()

        assert not lock("a").acquire(blocking_timeout=0.05)

        assert redis.dbsize() == before


@pytest.mark.parametrize("is_evicted", [False, True])
def test_a_fair_lock_does_not_wait_for_the_dead(redis: Redis, is_evicted: bool) -> None:
    held, dead = acquired(fair=True), lock("a", fair=True)
    assert at_once(dead._try(b"dead", waits=True))
    held.release()
    assert not held.acquire(blocking=False)
    assert 0 < at_once(held._try(b"asks")) <= 60  # until the dead one counts as dead

    if is_evicted:
        redis.delete(LockKeys.named("a").beats)
        assert not held.acquire(blocking=False)  # and takes away the place of a waiter without a heartbeat
    else:
        redis.zadd(LockKeys.named("a").beats, {"dead": 1})

    assert held.acquire(blocking=False)
    assert not redis.exists(LockKeys.named("a").queue)


def test_a_release_wakes_the_first_and_a_waiter_who_leaves_the_next(redis: Redis) -> None:
    held, waiter = acquired(), lock("a")
    for token in (b"first", b"second"):
        assert 10 < at_once(waiter._try(token, waits=True)) <= 30  # the holder's time
    wake = LockKeys.named("a").wake

    held.release()
    assert (redis.llen(f"{wake}:first"), redis.llen(f"{wake}:second")) == (1, 0)
    assert 0 < redis.pttl(f"{wake}:first") <= 2_000

    at_once(waiter._leave(b"first"))
    assert (redis.llen(f"{wake}:first"), redis.llen(f"{wake}:second")) == (0, 1)


def test_a_lost_lock_is_reported_at_release_and_leaves_its_next_holder_alone(redis: Redis) -> None:
    held, other = acquired(), lock("a")
    end(redis, "a")
    other.acquire()

    with pytest.raises(LockLost) as caught:
        held.release()

    assert isinstance(caught.value, LockNotOwnedError)
    assert caught.value.lock_name == key_of("a")
    with pytest.raises(LockError) as again:
        held.release()
    assert not isinstance(again.value, LockNotOwnedError)
    assert other.owned()


def test_an_inner_error_is_not_hidden_by_the_loss_of_the_lock(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        with lock("a"):
            end(redis, "a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_ensure_held_asks_redis(redis: Redis) -> None:
    held = acquired()
    held.ensure_held()
    lost = held.lost
    assert not lost.is_set()
    end(redis, "a")

    with pytest.raises(LockLost):
        held.ensure_held()

    assert lost.is_set()
    assert held.remaining == 0


def test_it_can_be_extended_and_started_anew(redis: Redis) -> None:
    held = acquired(timeout=500)

    assert held.extend(1_000)
    assert 1_400 < held.remaining <= 1_500
    assert held.extend(700, replace_ttl=True)
    assert 600_000 < redis.pttl(key_of("a")) <= 700_000
    assert held.reacquire()
    assert 400 < held.remaining <= 500


def test_a_negative_extension_shortens_or_loses_the_lock(redis: Redis) -> None:
    held = acquired(timeout=3_000)

    assert held.extend(-2_000)
    assert 900 < held.remaining <= 1_000
    assert held.extend(-2_000)
    assert held.remaining == 0
    with pytest.raises(LockLost):
        held.release()
    assert lock("a").acquire(blocking=False)


def test_an_extension_that_is_sent_again_adds_once_and_ends_once(redis: Redis) -> None:
    held = acquired(timeout=10)
    token = held.local.token

    adds = held._extend_call(token, 20_000, "adds", "first")
    assert [20_000 < at_once(held._send(EXTEND, adds)) <= 30_000 for _ in range(3)] == [True] * 3
    ends = held._extend_call(token, -90_000, "adds", "second")
    assert [at_once(held._send(EXTEND, ends)) for _ in range(2)] == [0, 0]
    assert at_once(held._send(EXTEND, adds)) == -1
    assert 86_000_000 < redis.pttl(LockKeys.named("a").state) <= 86_400_000


@pytest.mark.parametrize(
    ("seconds", "waits"), [(-1, False), (-math.inf, False), (0, False), (math.inf, True), (10**12, True)]
)
def test_patience_may_be_less_than_none_or_without_end(redis: Redis, seconds: float, waits: bool) -> None:
    assert lock("a")._patience(None, seconds)[0] is waits
    assert lock("a", blocking_timeout=seconds).acquire()


def test_how_long_it_was_held_and_waited_for_is_measured(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    seen: dict[str, tuple[str, float]] = {}
    monkeypatch.setattr(drop_ins, "took", lambda event, seconds, *, of: seen.update({event: (of, seconds)}))

    with lock("item:42"):
        assert not lock("item:42").acquire(blocking_timeout=0.02)

    assert seen.keys() == {"locks-held", "locks-waited", "locks-refused"}
    assert all(of == "item:*" and 0.02 <= seconds < 60 for of, seconds in seen.values())


def test_an_owner_and_where_it_is_can_be_read_off_the_token(redis: Redis) -> None:
    holder = Holder.of(acquired(owner="jill / 2%").local.token.decode())

    assert (holder.owner, holder.thread) == ("jill / 2%", "MainThread")
    assert holder.host
    assert holder.process


@pytest.mark.parametrize("token", ["", "test", "a/b/c/d/e", "a/1/c"])
def test_other_tokens_are_unknown(token: str) -> None:
    assert Holder.of(token) == Holder()


@pytest.mark.parametrize("name", AWKWARD, ids=ascii)
def test_a_lock_may_be_called_anything_and_be_at_any_key(redis: Redis, name: str) -> None:
    with lock(name) as held, Lock(redis, name, timeout=100) as own:
        [by_name] = [info for info in LockReader().held() if info.key == held.name]
        assert (by_name.name, by_name.token.encode()) == (name, held.local.token)
        assert redis.get(name) == own.local.token != held.local.token
        assert not Lock(redis, name.encode()).acquire(blocking_timeout=0.005)

    assert not redis.exists(name)
    assert LockReader().count() == 0


@pytest.mark.parametrize("key", ["}", "{}", "a{}b", "{}{a}", "}{"])
def test_a_key_whose_other_keys_lie_in_another_slot_is_refused_on_a_cluster(key: str) -> None:
    LockKeys(key)
    with pytest.raises(InvalidName):
        LockKeys(key, on_cluster=True)


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
            assert 30 < held.remaining <= 40
            assert await held.reacquire()
            assert 10 < held.remaining <= 30
            [info] = await asyncio.to_thread(LockReader().held)
            assert info.holder.owner == "jill"
        assert not await held.locked()
        await held.acquire()
        await asyncio.to_thread(end, redis, "a")
        for act in (held.ensure_held, lambda: held.extend(5), held.reacquire, held.release):
            with pytest.raises(LockLost):
                await act()

    asyncio.run(main())


def test_a_coroutine_that_waits_is_woken(redis: Redis) -> None:
    async def main() -> None:
        held, waiter = alock("a", timeout=None), alock("a", timeout=None)
        await held.acquire()
        waiting = asyncio.create_task(waiter.acquire())
        while not await held.redis.zcard(LockKeys.named("a").queue):
            await asyncio.sleep(0.005)
        await held.release()
        assert await asyncio.wait_for(waiting, 20)
        assert await waiter.owned()

    asyncio.run(main())
