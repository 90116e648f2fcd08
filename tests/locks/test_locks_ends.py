"""
Who bounds each key of locks and fenced values, and who ends it: nothing grows with use, or stays. A Redis at its
`maxmemory` still lets what is held be renewed and given back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.kit.at_once import at_once
from components.kit.keyspace import BUCKETS, bucket
from components.services.locks import Lock, LockReader, lock
from components.services.locks.fences import FencedValue
from components.services.locks.keys import FencedKeys, LockKeys
from components.services.locks.named import key_of
from tests.support.full import full
from tests.support.lost_locks import release_again

DAY = 86_400_000  # milliseconds


pytestmark = pytest.mark.usefixtures("no_heartbeats")


def kinds(redis: Redis) -> Counter[str]:
    """How many keys there are of each kind."""
    return Counter(key.decode().split(":")[3] for key in redis.keys("*"))


def held_in(redis: Redis, name: str) -> dict[bytes, float]:
    """What the index of the lock's bucket says, without the latest fence."""
    listed = dict(redis.zrange(LockKeys.named(name).held, 0, -1, withscores=True))
    assert listed.pop(b"") < 0
    return listed


def neighbour(name: str) -> str:
    """Return another name in the same bucket."""
    return next(each for each in map(str, range(10_000)) if bucket(each) == bucket(name))


def is_woken(redis: Redis, waiter: str) -> bool:
    return bool(redis.llen(f"{LockKeys.named('a').wake}:{waiter}"))


def test_a_lock_that_was_released_while_nobody_waited_leaves_nothing_of_its_own(redis: Redis) -> None:
    for number in range(100):
        with lock(f"item:{number}") as held:
            if number % 3 == 0:
                held.extend(5)
            elif number % 3 == 1:
                held.reacquire()
    for number in range(30):
        with Lock(redis, f"{{shop}}:item:{number}", timeout=9):
            pass
    for timeout in (None, 30):
        with_token = lock("a", timeout=timeout)
        assert with_token.acquire(token="mine")
        assert redis.exists(LockKeys.named("a").state)
        with_token.release()

    found = kinds(redis)
    assert found.keys() == {"held", "released"}
    assert found["held"] <= len(BUCKETS) + 1  # on a cluster, keys of the own slot have their own
    assert found["released"] <= 2 * len(BUCKETS) + 2  # a hundred seconds may end meanwhile
    assert all(held_in(redis, f"item:{number}") == {} for number in range(100))
    assert all(0 < redis.pttl(key) <= 120_000 for key in redis.keys("*:released:*"))
    assert all(DAY < redis.pttl(key) < 2 * DAY for key in redis.keys("*:held"))


def test_lost_locks_are_listed_for_a_day(redis: Redis) -> None:
    for name, age, stay in (("lost", DAY + 1, 0), ("lost too", DAY - 60_000, 2)):
        lock(name).acquire()
        redis.delete(key_of(name))
        held = LockKeys.named(name).held
        redis.zadd(held, {key_of(name): redis.time()[0] * 1000 - age})
        with lock("other"):
            pass
        assert len(held_in(redis, name)) == 2
        # Each 64th fence of a bucket cleans its index; this one is ahead of the clock.
        last = -int(redis.zscore(held, "") or 0)
        redis.zadd(held, {"": -((last // 64 + 2_000_000) * 64 - 1)})
        with lock(neighbour(name)):
            pass

        left = [member for member in held_in(redis, name) if member.endswith(key_of(name).encode())]
        assert len(left) == stay


def test_the_index_outlives_what_it_lists(redis: Redis) -> None:
    held = LockKeys.named("a").held
    with lock("a", timeout=5):
        assert DAY + 3_545_000 < redis.pttl(held) <= DAY + 3_605_000
    with lock("a", timeout=1_000_000) as longer:
        assert redis.pttl(held) > 1_000_000_000 + DAY
        longer.extend(9_000_000)
        assert redis.pttl(held) > 10_000_000_000 + DAY

    forever = lock("a", timeout=None)
    forever.acquire()
    assert redis.pttl(held) == -1
    with lock(neighbour("a")):
        assert redis.pttl(held) == -1
    forever.release()
    with lock(neighbour("a")):
        assert redis.pttl(held) > DAY


@pytest.mark.parametrize("is_fair", [False, True], ids=["any order", "fair"])
def test_dead_waiters_go_while_others_wait_and_by_themselves(redis: Redis, is_fair: bool) -> None:
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
    assert all(60_000 < redis.pttl(key) <= 65_000 for key in (of_a.queue, of_a.beats))


def test_everything_of_what_is_held_waited_for_lost_and_ended_expires(redis: Redis) -> None:
    """One of each key of the schema; what is for ever is so by the caller's word."""
    held, waiter = lock("a"), lock("a")
    held.acquire()
    at_once(waiter._try(b"waiter", waits=True))
    held.release()
    waiter.acquire(token="given")
    LockReader().force_release(key_of("a"), "given", waiter.fence)
    waiter.acquire()
    at_once(waiter._leave(waiter.local.token))
    waiter.acquire()
    FencedValue("a").set("x", fence=1, ttl=5)

    stored = {key.decode() for key in redis.keys("*")}
    made = (LockKeys.named("a"), FencedKeys("a"))
    for of, name in [(entity, name) for entity in made for name in vars(type(entity))]:
        if isinstance(getattr(type(of), name), property | cached_property):
            of_it = [each for each in stored if each.startswith(getattr(of, name))]
            assert of_it, name
            assert all(redis.pttl(each) > 0 for each in of_it), name


# A server without memory, which knows none of our scripts, as one that was restarted


@pytest.mark.parametrize("token", [None, "given"])
@pytest.mark.parametrize("waits", [False, True])
def test_on_a_full_server_a_lock_is_extended_and_released(
    redis: Redis, token: str | None, waits: bool
) -> None:
    held, waiter = lock("a", timeout=10), lock("a")
    held.acquire(token=token)
    if waits:
        assert at_once(waiter._try(b"waiter", waits=True))

    with full(redis):
        assert held.extend(10)
        assert held.extend(20, replace_ttl=True)
        assert held.reacquire()
        held.ensure_held()
        assert held._holding.renew()
        held.release()

    assert not held.locked()
    assert is_woken(redis, "waiter") == waits


def test_on_a_full_server_a_release_is_repeated_or_forced_and_a_waiter_leaves(redis: Redis) -> None:
    held, waiter, forced = lock("a", timeout=10), lock("a"), lock("b")
    held.acquire()
    forced.acquire(token="t")
    for token in (b"first", b"second"):
        assert at_once(waiter._try(token, waits=True))
    mine, fence = held.local.token, held.fence
    value = FencedValue("a")
    value.set("x", fence=1)

    with full(redis):
        assert release_again(redis, held, mine, fence)
        redis.delete(f"{LockKeys.named('a').wake}:first")
        assert release_again(redis, held, mine, fence)
        assert is_woken(redis, "first")
        at_once(waiter._leave(b"first"))
        assert is_woken(redis, "second")
        assert LockReader().force_release(key_of("b"), "t", forced.fence)
        value.delete(fence=2)

    assert not forced.locked()
    assert value.get() is None


@pytest.mark.parametrize(
    "take_more",
    [
        lambda: lock("a").acquire(blocking=False),
        lambda: lock("a", fair=True).acquire(blocking_timeout=1),
        lambda: FencedValue("a").set("x", fence=1),
    ],
)
def test_on_a_full_server_a_new_request_fails_at_once_and_leaves_nothing(
    redis: Redis, take_more: Callable[[], Any]
) -> None:
    with full(redis), pytest.raises(RedisUnavailable):
        take_more()

    assert redis.keys("*") == []
