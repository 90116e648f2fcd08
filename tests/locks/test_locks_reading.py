"""What the control room sees of locks, and the forced release."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.exceptions import LockLost
from components.kit.at_once import at_once
from components.services.locks import Lock, LockReader, drop_ins, lock
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from tests.support.lost_locks import release_again

reader = LockReader()


@pytest.fixture(autouse=True)
def fresh_reader() -> None:
    global reader
    reader = LockReader()


def test_locks_are_listed_with_their_holders(redis: Redis) -> None:
    held = lock("a", timeout=20, owner="jill")
    held.acquire()
    lock("b", timeout=None).acquire()
    with lock("c"):
        pass

    infos = {info.name: info for info in reader.held()}

    assert infos.keys() == {"a", "b"}
    assert reader.count() == 2
    info = infos["a"]
    assert (info.holder.owner, info.holder.process) == ("jill", os.getpid())
    assert info.fence == held.fence
    assert info.since
    assert abs(datetime.now(UTC) - info.since) < timedelta(minutes=1)
    assert info.remaining
    assert 19 < info.remaining <= 20
    assert info.is_held
    assert infos["b"].remaining is None


def test_a_lock_whose_time_is_over_is_not_listed(redis: Redis) -> None:
    lock("a").acquire()
    redis.delete(key_of("a"))
    lock("b").acquire()
    redis.zadd(LockKeys.named("b").held, {key_of("b"): 1})

    assert reader.held() == []


def test_a_long_list_has_pages(redis: Redis) -> None:
    names = {f"item:{number}" for number in range(120)}
    for name in names:
        lock(name).acquire()

    pages = [reader.held(offset=offset, limit=50) for offset in (0, 50, 100, 150)]

    assert [len(page) for page in pages] == [50, 50, 20, 0]
    assert {info.name for page in pages for info in page} == names
    assert reader.count() == 120


def test_waiting_requests_are_shown_in_their_order(redis: Redis) -> None:
    lock("a").acquire()
    for token in (b"h/1/t/jack/x", b"h/1/t/jill/y", b"h/1/t/dead/z"):
        assert at_once(lock("a")._try(token, waits=True))
    redis.zadd(LockKeys.named("a").beats, {"h/1/t/dead/z": 1})

    info = reader.find("a")

    assert info
    assert info.waiting == 2
    assert [waiter.holder.owner for waiter in reader.waiters(info.key)] == ["jack", "jill"]
    assert all(waiter.waited >= 0 for waiter in reader.waiters(info.key))


def test_contention_is_counted(redis: Redis) -> None:
    holder, waiter = lock("a"), lock("a")
    holder.acquire()
    assert at_once(waiter._try(b"waiter", waits=True))
    holder.release()
    assert not at_once(waiter._try(b"waiter", waits=True, waited=2.5))
    redis.delete(key_of("a"))
    holder.acquire()

    info = reader.find("a")

    assert info
    assert (info.acquired, info.waits, info.expired, info.forced) == (3, 1, 1, 0)
    assert info.longest_wait == info.waited == 2.5


def test_one_that_was_not_used_is_not_found(redis: Redis) -> None:
    assert reader.find("a") is None
    with lock("a"):
        assert reader.find("a")
    assert reader.find("a") is None


def test_one_that_was_waited_for_is_found_when_nobody_holds_it(redis: Redis) -> None:
    with lock("a"):
        pass
    at_once(lock("a")._try(b"waiter", waits=True, waited=1.5))
    release_again(redis, lock("a"), b"waiter", 0)

    info = reader.find("a")

    assert info
    assert not info.is_held
    assert info.waits == 1
    assert reader.find(key_of("a")) == info


def test_a_key_of_the_callers_own_is_found_by_it(redis: Redis, redis_mode: str) -> None:
    Lock(redis, "{own}key", timeout=5).acquire()

    info = reader.find("{own}key")

    assert info
    assert (info.name, info.is_held) == ("{own}key", True)
    assert reader.count() == (1 if redis_mode == "plain" else 0)


def test_a_forced_release_is_for_the_holder_that_was_seen(redis: Redis) -> None:
    held = lock("a")
    held.acquire()
    [info] = reader.held()

    assert not reader.force_release(info.key, "another", info.fence)
    assert held.owned()
    assert reader.force_release(info.key, info.token, info.fence)
    assert not held.locked()
    assert reader.force_release(info.key, info.token, info.fence)  # sent again
    assert not reader.force_release(info.key, "another", info.fence - 1)
    found = reader.find("a")
    assert found
    assert found.forced == 1
    with pytest.raises(LockLost, match="by force"):
        held.release()


def test_a_forced_release_wakes_the_waiters(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drop_ins, "ALIVE", 60_000_000)  # there is no heartbeat here
    lock("a").acquire()
    assert at_once(lock("a")._try(b"waiter", waits=True))
    [info] = reader.held()

    reader.force_release(info.key, info.token, info.fence)

    assert redis.llen(f"{LockKeys.named('a').wake}:waiter") == 1


def test_a_lock_can_be_read_by_its_key_alone(redis: Redis) -> None:
    lock("a", owner="of the name").acquire()
    Lock(redis, "a", timeout=10).acquire(token="t")

    by_name, by_key = reader.at(key_of("a")), reader.at("a")

    assert by_name
    assert by_key
    assert (by_name.holder.owner, by_key.token) == ("of the name", "t")


def test_a_lock_without_end_is_found_after_its_figures_are_forgotten(redis: Redis) -> None:
    lock("a", timeout=None).acquire()
    redis.delete(LockKeys.named("a").state)

    info = reader.find("a")

    assert info
    assert info.is_held


def test_a_key_that_is_no_lock_is_not_read(redis: Redis) -> None:
    redis.set("session:1", "secret")
    redis.hset("profile:1", "name", "secret")

    assert reader.find("session:1") is reader.find("profile:1") is None


def test_a_token_that_is_no_text_can_be_released_by_force(redis: Redis) -> None:
    Lock(redis, "a", timeout=10).acquire(token=b"\xff")

    info = reader.find("a")

    assert info
    assert reader.force_release(info.key, info.token, info.fence)
    assert not redis.exists("a")


def test_a_lock_whose_key_was_overwritten_with_something_else_spoils_no_list(redis: Redis) -> None:
    for name in ("a", "b"):
        lock(name).acquire()
    redis.delete(key_of("a"))
    redis.sadd(key_of("a"), "x")

    assert [info.name for info in reader.held()] == ["b"]


def test_a_name_may_be_as_long_as_names_may_be(redis: Redis) -> None:
    name = "x" * 500
    with lock(name):
        info = reader.find(name)

    assert info
    assert info.name == name


def test_a_forced_release_does_not_adopt_another_acquisition_with_the_same_token(
    redis: Redis, redis_mode: str
) -> None:
    first, second = (Lock(redis, "report", timeout=60) for _ in range(2))
    assert first.acquire(token="mine")
    first.ensure_held()
    info = reader.find("report")
    assert info
    assert reader.force_release(info.key, info.token, info.fence)
    assert second.acquire(token="mine")

    second.ensure_held()
    with pytest.raises(LockLost):
        first.ensure_held()
    second.ensure_held()
    second.release()
