"""Who bounds each key of locks, semaphores and fenced values, and who ends it: nothing grows with use, or stays."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

import pytest
from redis import Redis

from components.exceptions import LockLost
from components.kit.at_once import at_once
from components.kit.keyspace import BUCKETS, bucket
from components.services.locks import Lock, LockReader, drop_ins, lock
from components.services.locks.fences import FencedValue
from components.services.locks.keys import FencedKeys, LockKeys
from components.services.locks.named import key_of
from components.services.semaphores import Semaphore, SemaphoreReader
from components.services.semaphores import semaphore as semaphores
from components.services.semaphores.keys import SemaphoreKeys
from tests.support.lost_locks import release_again
from tests.support.semaphores import Waiter, let_pass, take

DAY = 86_400_000  # milliseconds
NEVER_EXPIRES = {"limits", "names"}  # what was set by hand is reset by hand


def kinds(redis: Redis) -> Counter[str]:
    """How many keys there are of each kind."""
    return Counter(key.decode().split(":")[3] for key in redis.keys("*"))


def held_in(redis: Redis, name: str) -> dict[bytes, float]:
    """What the index of the lock's bucket says, without the latest fence."""
    listed = dict(redis.zrange(LockKeys.named(name).held, 0, -1, withscores=True))
    assert listed.pop(b"") < 0
    return listed


def let_the_next_clean_up(redis: Redis, name: str) -> None:
    """Let the next fence of the bucket be one of those, one of 64, with which the index is cleaned."""
    held = LockKeys.named(name).held
    last = -int(redis.zscore(held, "") or 0)
    redis.zadd(held, {"": -((last // 64 + 2_000_000) * 64 - 1)})  # ahead of the clock


def test_a_lock_that_was_released_while_nobody_waited_leaves_nothing_of_its_own(redis: Redis) -> None:
    for number in range(300):
        with lock(f"item:{number}") as held:
            if number % 3 == 0:
                held.extend(5)
            elif number % 3 == 1:
                held.reacquire()

    found = kinds(redis)
    assert found.keys() == {"held", "released"}
    assert found["held"] <= len(BUCKETS)
    assert found["released"] <= 2 * len(
        BUCKETS
    )  # the test may begin in one hundred seconds, and end in the next
    assert all(held_in(redis, f"item:{number}") == {} for number in range(300))
    assert all(0 < redis.pttl(key) <= 120_000 for key in redis.keys("*:released:*"))
    assert all(DAY < redis.pttl(key) < 2 * DAY for key in redis.keys("*:held"))


def test_a_request_with_the_callers_token_does_the_same(redis: Redis) -> None:
    for timeout in (None, 30):
        held = lock("a", timeout=timeout)
        assert held.acquire(token="mine")
        assert redis.exists(LockKeys.named("a").state)
        held.release()

        assert kinds(redis).keys() == {"held", "released"}


def test_keys_of_the_callers_own_share_what_stays(redis: Redis, redis_mode: str) -> None:
    for number in range(50):
        with Lock(redis, f"{{shop}}:item:{number}", timeout=9):
            pass

    found = kinds(redis)
    assert found.keys() == {"held", "released"}
    assert found["held"] <= (1 if redis_mode == "cluster" else len(BUCKETS))


def test_the_fence_grows_from_one_name_to_the_next_and_though_the_clock_is_set_back(redis: Redis) -> None:
    with lock("a") as held:
        first = held.fence
    redis.zadd(LockKeys.named("a").held, {"": -(first + 10**12)})  # as if the clock had been ahead

    fences = []
    for _ in range(3):
        with lock("a") as held:
            fences.append(held.fence)

    assert fences == [first + 10**12 + number for number in (1, 2, 3)]


def test_a_release_that_is_sent_again_is_told_the_same_however_many_have_held_it_since(redis: Redis) -> None:
    held, other = lock("a"), lock("a")
    held.acquire()
    token, fence = held.local.token, held.fence
    held.release()
    for _ in range(50):
        with other:
            pass
    other.acquire()

    assert release_again(redis, held, token, fence)
    assert other.owned()


def test_a_loss_is_told_however_many_have_held_it_since(redis: Redis) -> None:
    held, other = lock("a"), lock("a")
    held.acquire()
    redis.delete(key_of("a"))
    for _ in range(50):
        with other:
            pass

    with pytest.raises(LockLost):
        held.release()


def test_lost_locks_are_listed_for_a_day(redis: Redis) -> None:
    for name in ("lost", "lost too"):
        lock(name).acquire()
        redis.delete(key_of(name))
        held = LockKeys.named(name).held
        now = redis.time()[0] * 1000
        redis.zadd(held, {key_of(name): now - DAY - 1 if name == "lost" else now - DAY + 60_000})
        assert len(held_in(redis, name)) == 2
        with lock("other in its bucket"):
            pass
    for name, stay in (("lost", 0), ("lost too", 2)):
        other = next(each for each in map(str, range(10_000)) if bucket(each) == bucket(name))
        let_the_next_clean_up(redis, name)
        with lock(other):
            pass

        left = [member for member in held_in(redis, name) if member.endswith(key_of(name).encode())]
        assert len(left) == stay


def test_the_index_outlives_what_it_lists(redis: Redis) -> None:
    held = LockKeys.named("a").held
    with lock("a", timeout=5):
        soon = redis.pttl(held)
    with lock("a", timeout=1_000_000) as longer:
        assert redis.pttl(held) > 1_000_000_000 + DAY
        longer.extend(9_000_000)
        assert redis.pttl(held) > 10_000_000_000 + DAY
    assert soon > DAY

    forever = lock("a", timeout=None)
    forever.acquire()
    assert redis.pttl(held) == -1
    other = next(each for each in map(str, range(10_000)) if bucket(each) == bucket("a"))
    with lock(other):
        assert redis.pttl(held) == -1
    forever.release()
    with lock(other):
        assert redis.pttl(held) > DAY


@pytest.mark.parametrize("is_fair", [False, True], ids=["any order", "fair"])
def test_dead_waiters_of_a_lock_go_while_others_wait(redis: Redis, is_fair: bool) -> None:
    of_a = LockKeys.of(key_of("a"), redis)
    lock("a").acquire()
    waiter = lock("a", fair=is_fair)
    for number in range(20):  # in front of those who live, among them and behind them
        assert at_once(waiter._try(b"dead %d" % number, waits=True))
        assert at_once(waiter._try(b"alive %d" % (number // 10), waits=True))
    redis.zadd(of_a.beats, {f"dead {number}": 1 for number in range(20)})

    assert at_once(waiter._try(b"alive 1", waits=True))

    assert redis.zrange(of_a.queue, 0, -1) == [b"alive 0", b"alive 1"]
    assert set(redis.zrange(of_a.beats, 0, -1)) == {b"alive 0", b"alive 1"}


def test_dead_waiters_that_nobody_is_behind_go_by_themselves(redis: Redis) -> None:
    lock("a").acquire()
    assert at_once(lock("a")._try(b"dead", waits=True))
    semaphore = Semaphore("a", limit=1)
    take(semaphore)
    Waiter(semaphore).ask()

    made = [LockKeys.named("a").queue, LockKeys.named("a").beats]
    made += [SemaphoreKeys("a").queue, SemaphoreKeys("a").beats]
    for key in made:
        assert 0 < redis.pttl(key) <= 6_000


def test_a_name_of_a_semaphore_goes_a_month_after_its_last_use_also_if_it_was_the_last(redis: Redis) -> None:
    semaphore = Semaphore("a", limit=1)
    semaphore.acquire().release()
    names = SemaphoreKeys("a").names
    assert 30 * DAY < redis.pttl(names) <= 33 * DAY

    semaphore.set_limit(3)
    semaphore.acquire().release()
    assert redis.pttl(names) == -1
    assert SemaphoreReader().find("a")

    semaphore.reset_limit()
    redis.zadd(names, {"a": 1})
    semaphore.acquire().release()
    assert redis.pttl(names) > 30 * DAY


def test_everything_of_what_is_held_waited_for_lost_and_ended_expires(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of each key of the schema; what is for ever is so by the caller's word."""
    monkeypatch.setattr(drop_ins, "ALIVE", 60_000_000)
    monkeypatch.setattr(semaphores, "ALIVE", 60.0)
    held, waiter = lock("a"), lock("a")
    held.acquire()
    at_once(waiter._try(b"waiter", waits=True))
    held.release()
    waiter.acquire(token="given")
    LockReader().force_release(key_of("a"), "given", waiter.fence)
    waiter.acquire()
    at_once(waiter._leave(waiter.local.token))
    waiter.acquire()
    semaphore = Semaphore("a", limit=3)
    heavy, light = take(semaphore, weight=2) + take(semaphore)
    Waiter(semaphore, weight=2).ask()
    light.release()
    heavy.refresh()
    FencedValue("a").set("x", fence=1, ttl=5)
    semaphore.set_limit(3)

    stored = {key.decode() for key in redis.keys("*")}
    made = (LockKeys.named("a"), FencedKeys("a"), SemaphoreKeys("a"))
    for of, name in [(entity, name) for entity in made for name in vars(type(entity))]:
        if isinstance(getattr(type(of), name), property | cached_property):
            of_it = [each for each in stored if each.startswith(getattr(of, name))]
            assert of_it, name
            assert {redis.pttl(each) > 0 for each in of_it} == {name not in NEVER_EXPIRES}, name


def test_permits_of_dead_holders_go_with_the_next_request(redis: Redis) -> None:
    take(Semaphore("a", limit=100), 100, weight=1)
    take(Semaphore("a", limit=200), 50, weight=2)
    let_pass(redis, "a", 31)

    take(Semaphore("a", limit=1))

    assert redis.zcard(SemaphoreKeys("a").holders) == redis.zcard(SemaphoreKeys("a").since) == 1
    assert redis.zcard(SemaphoreKeys("a").heavy) == 0


def test_a_fenced_value_and_its_fence_end(redis: Redis) -> None:
    value = FencedValue("a", keep=100)
    value.set("x", fence=3, ttl=50)
    assert 0 < redis.pttl(FencedKeys("a").value) <= 50_000
    assert 50_000 < redis.pttl(FencedKeys("a").fence) <= 150_000

    value.delete(fence=4)
    assert not redis.exists(FencedKeys("a").value)
    assert 0 < redis.pttl(FencedKeys("a").fence) <= 100_000
