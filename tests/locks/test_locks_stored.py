"""What the control room sees of locks, and the forced release."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.exceptions import LockLost, RedisUnavailable
from components.kit.keyspace import BUCKETS, bucket
from components.kit.readings import gather
from components.kit.sync_async import at_once
from components.services.locks import Lock, LockInfo, LockReader, lock, report
from components.services.locks.drop_ins import RELEASE
from components.services.locks.fences import FencedValue
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.observing.test_metrics import Samples
from tests.support.full import full

pytestmark = pytest.mark.usefixtures("no_heartbeats")


@pytest.fixture
def reader(redis: Redis) -> LockReader:
    return LockReader()


def found(name: str) -> LockInfo:
    info = LockReader().find(name)
    assert info
    return info


def test_what_is_no_held_lock_spoils_no_list(reader: LockReader, redis: Redis) -> None:
    beside = next(name for name in map(str, range(10_000)) if bucket(name) == bucket("c"))
    for name in ("a", "b", "c", beside):
        lock(name).acquire()
    redis.delete(key_of("a"), key_of("b"))
    redis.sadd(key_of("b"), "x")
    redis.zadd(LockKeys.named("c").held, {key_of("c"): redis.time()[0] * 1_000 - 2_000})

    assert [info.name for info in reader.held()] == [beside]
    assert reader.count() == 3
    assert Samples.gather().of("locks_held") == 3


def test_waiting_requests_are_shown_in_their_order(reader: LockReader, redis: Redis) -> None:
    lock("a").acquire()
    for token in (b"h/1/t/jack/x", b"h/1/t/jill/y", b"h/1/t/dead/z"):
        assert at_once(lock("a")._try(token, waits=True))
    of_a = LockKeys.named("a")
    redis.zadd(of_a.beats, {"h/1/t/dead/z": 1})
    redis.zadd(of_a.queue, {"h/1/t/jack/x": int(redis.time()[0]) * 1_000_000 - 50_000_000})

    info = found("a")

    assert info.waiting == 2
    waiters = reader.waiters(info.key)
    assert [waiter.holder.owner for waiter in waiters] == ["jack", "jill"]
    assert 50 <= waiters[0].waited < 110
    assert 0 <= waiters[1].waited < 60
    assert [waiter.holder.owner for waiter in reader.waiters(info.key, limit=1)] == ["jack"]


def test_contention_is_counted(redis: Redis) -> None:
    holder, waiter = lock("a"), lock("a")
    holder.acquire()
    for waited in (2.5, 1.5):
        assert at_once(waiter._try(b"waiter", waits=True))
        holder.release()
        assert not at_once(waiter._try(b"waiter", waits=True, waited=waited))
        redis.delete(key_of("a"))
        holder.acquire()

    assert found(key_of("a")).name == "a"
    assert (found("a").waits, found("a").longest_wait, found("a").waited) == (2, 2.5, 4)


def test_a_key_of_the_callers_own_is_found_by_it_and_a_key_that_is_no_lock_is_not_read(
    reader: LockReader, redis: Redis
) -> None:
    Lock(redis, "{own}key", timeout=5).acquire()
    Lock(redis, "a", timeout=10).acquire(token=b"\xff")
    lock("a", owner="of the name").acquire()
    redis.set("session:1", "secret")
    redis.hset("profile:1", "name", "secret")

    assert (found("{own}key").name, found("{own}key").is_held) == ("{own}key", True)
    assert found("a").holder.owner == "of the name"
    by_key = reader.at("a")
    assert by_key
    assert by_key.token == "\udcff"
    assert reader.force_release("a", by_key.token, by_key.fence)
    assert not redis.exists("a")
    assert reader.find("session:1") is reader.find("profile:1") is None


def test_a_forced_release_does_not_adopt_another_acquisition_with_the_same_token(redis: Redis) -> None:
    first, second = (Lock(redis, "report", timeout=60) for _ in range(2))
    assert first.acquire(token="mine")
    info = found("report")
    assert LockReader().force_release(info.key, info.token, info.fence)
    assert second.acquire(token="mine")

    with pytest.raises(LockLost):
        first.ensure_held()
    LockReader().force_release(info.key, info.token, info.fence)
    second.ensure_held()
    second.release()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("item", {key_of("item:42"), key_of("item:43")}),
        ("item:43", {key_of("item:43")}),
        (key_of("item:42"), {key_of("item:42")}),
        ("lost", {key_of("lost")}),
        ("los", set()),
        ("own", {"own"}),
        ("x" * 501, set()),
    ],
)
def test_the_finder_finds_held_locks_by_their_beginnings_and_free_ones_by_their_names(
    redis: Redis, text: str, keys: set[str]
) -> None:
    for name in ("item:42", "item:43", "lost"):
        lock(name).acquire()
    [lost] = [info for info in LockReader().held() if info.name == "lost"]
    LockReader().force_release(lost.key, lost.token, lost.fence)
    Lock(redis, "own", timeout=9).acquire()

    found = gather({"": report.find(text)}).found[""]

    assert {each.page.query["key"] for each in found} == keys


DAY = 86_400_000  # milliseconds


def kinds(redis: Redis) -> Counter[str]:
    return Counter(key.decode().split(":")[3] for key in redis.keys("*"))


def held_in(redis: Redis, name: str) -> dict[bytes, float]:
    """What the index of the lock's bucket says, without the latest fence and the longest time."""
    listed = dict(redis.zrange(LockKeys.named(name).held, 0, -1, withscores=True))
    assert listed.pop(b"") < 0
    assert listed.pop(b"\xfe") < 0
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
        assert (redis.pttl(LockKeys.named("a").state) == -1) == (timeout is None)
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


def test_what_a_clock_stored_that_was_a_day_ahead_ends_as_if_it_were_stored_now(redis: Redis) -> None:
    keys, waiter = LockKeys.named("a"), lock("a", timeout=5, fair=True)
    with lock("a", timeout=10) as held:
        held.extend(20, replace_ttl=True)
        assert at_once(waiter._try(b"dead", waits=True))
        now = redis.time()[0]
        redis.pexpire(keys.lock, DAY)
        ahead = now * 1_000 + DAY
        redis.zadd(keys.held, {keys.lock: ahead, b"\xff" + keys.lock.encode(): -ahead * 1_000})
        redis.zadd(keys.beats, {"dead": ahead * 1_000})

        assert 15 < at_once(waiter._try(b"other")) <= 20
        assert redis.pttl(keys.lock) <= 20_000
        assert redis.zscore(keys.held, keys.lock) <= (redis.time()[0] + 21) * 1_000
        assert redis.zscore(keys.beats, "dead") <= (redis.time()[0] + 61) * 1_000_000  # see no_heartbeats
        redis.set(keys.lock, "of redis-py, which writes no index", px=DAY)
        assert at_once(waiter._try(b"other")) > 80_000
        redis.set(keys.lock, held.local.token, px=5_000)


def test_released_fences_are_kept_by_the_time_of_their_release(redis: Redis) -> None:
    redis.zadd(LockKeys.named("a").held, {"": -(redis.time()[0] + 86_400) * 1_000_000})
    taken = lock("a", timeout=None)
    taken.acquire()
    call = taken._release_call(taken.local.token)
    taken.release()

    [key] = redis.keys("*:released:*")
    start, _, part = key.decode().rpartition(":")
    assert redis.time()[0] - 110 < int(part) * 100 <= redis.time()[0]
    redis.rename(key, f"{start}:{int(part) - 1}")
    assert at_once(taken._send(RELEASE, call)) == 1


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
        assert at_once(held._holding._renew())
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


def release_again(redis: Redis, held: Lock, token: bytes | str, fence: int) -> bool:
    """Send the release of that acquisition, as if its reply had been lost, and return what the script says."""
    return bool(
        at_once(RELEASE.run(redis, held.keys, token=token, asker=token, fence=fence, reason="released"))
    )
