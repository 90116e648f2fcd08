"""What the control room asks and does: how semaphores stand, who holds a permit, limits by hand, evictions."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import ForeignPermit, InvalidValue, PermitLost
from components.kit.keyspace import BUCKETS, bucket
from components.services.semaphores import Semaphore, SemaphoreControls, SemaphoreReader
from components.services.semaphores.keys import index
from tests.support.monitoring import sent_to
from tests.support.semaphores import Waiter, let_pass, take


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=3, lease=10)


@pytest.fixture
def controls(redis: Redis) -> SemaphoreControls:
    return SemaphoreControls("api")


def test_a_semaphore_that_was_never_used_is_as_declared(semaphore: Semaphore) -> None:
    info = semaphore.info()

    assert (info.name, info.limit, info.declared, info.override) == ("api", 3, 3, None)
    assert (info.used, info.holders, info.waiting, info.granted) == (0, 0, 0, 0)
    assert (info.waits, info.total_waited, info.longest_wait) == (0, 0.0, 0.0)
    assert (info.given_up, info.expired) == (0, 0)


def test_nothing_is_known_of_a_limit_that_no_code_has_declared(controls: SemaphoreControls) -> None:
    assert controls.info().limit is None
    assert SemaphoreReader().find("api") is None


def test_a_semaphore_counts_who_holds_and_who_waits(
    semaphore: Semaphore, controls: SemaphoreControls
) -> None:
    take(semaphore)
    take(semaphore, weight=2)
    Waiter(semaphore).ask()

    info = controls.info()

    assert (info.limit, info.used, info.holders, info.waiting, info.granted) == (3, 3, 2, 1, 2)


def test_a_vanished_holder_is_not_counted_even_if_unnoticed(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore)
    take(semaphore, weight=2)
    Waiter(semaphore).ask()
    let_pass(redis, "api", 10)

    info = semaphore.info()

    assert (info.used, info.holders, info.waiting) == (0, 0, 0)
    assert semaphore.holders() == []


def test_waiting_times_are_counted(semaphore: Semaphore, redis: Redis) -> None:
    permits, began = take(semaphore, 3), time.monotonic()
    for seconds in (0.25, 0.5):
        waiter = Waiter(semaphore)
        waiter.ask()
        let_pass(redis, "api", seconds)
        permits.pop().release()
        assert waiter.ask() == "granted"

    info, took = semaphore.info(), time.monotonic() - began

    assert (info.granted, info.waits) == (5, 2)
    assert 0.75 <= info.total_waited < 0.75 + took
    assert 0.5 <= info.longest_wait < 0.5 + took


def test_holders_are_listed_by_page_the_earliest_first(redis: Redis, controls: SemaphoreControls) -> None:
    semaphore = Semaphore("api", limit=9, lease=10)
    permits = []
    for number in range(5):
        permits += take(semaphore, owner=f"order {number}", weight=1 + number % 2)
        let_pass(redis, "api", 1)
    permits[0].refresh()

    first, second = controls.holders(limit=2), controls.holders(offset=2, limit=9)

    assert [holder.id for holder in first + second] == [permit.id for permit in permits]
    assert [holder.holder.owner for holder in first] == ["order 0", "order 1"]
    assert [holder.weight for holder in second] == [1, 2, 1]
    assert first[0].holder.process == os.getpid()
    assert first[0].holder.host
    assert first[0].holder.thread == "MainThread"
    assert 9 < first[0].remaining <= 10
    assert 5 < first[1].remaining <= 6
    age = datetime.now(UTC) - second[-1].since
    assert timedelta(seconds=1) <= age < timedelta(seconds=60)


def test_waiters_are_listed_in_order_without_the_dead(
    semaphore: Semaphore, controls: SemaphoreControls, redis: Redis
) -> None:
    take(semaphore, 3)
    dead, heavy, light = Waiter(semaphore), Waiter(semaphore, weight=3), Waiter(semaphore)
    began = time.monotonic()
    for waiter in (dead, heavy, light):
        waiter.ask()
    let_pass(redis, "api", 0.5)
    for waiter in (heavy, light):
        waiter.ask()
    let_pass(redis, "api", 0.5)

    first, second = controls.waiters()

    assert [first.weight, second.weight] == [3, 1]
    assert first.holder.process == os.getpid()
    assert 1 <= first.waited < 1 + time.monotonic() - began


def test_an_owner_may_be_called_anything(semaphore: Semaphore) -> None:
    with semaphore.acquire(owner="Jöns/7 %2F\n{}") as permit:
        [holder] = semaphore.holders()

        assert holder.holder.owner == "Jöns/7 %2F\n{}"
        assert holder.id == permit.id


def test_a_limit_that_was_set_by_hand_wins_over_what_code_declares(
    semaphore: Semaphore, controls: SemaphoreControls
) -> None:
    controls.set_limit(1)
    take(semaphore)

    assert semaphore.try_acquire() is None
    assert Semaphore("api", limit=99).try_acquire() is None
    info = controls.info()
    assert (info.limit, info.override, info.declared) == (1, 1, 99)


def test_a_smaller_limit_takes_nothing_from_holders(
    semaphore: Semaphore, controls: SemaphoreControls
) -> None:
    permits = take(semaphore, 3)
    controls.set_limit(1)
    assert controls.info().used == 3
    for permit in permits[:2]:
        permit.release()
        assert semaphore.try_acquire() is None

    permits[2].release()

    assert semaphore.try_acquire() is not None
    assert semaphore.try_acquire() is None


def test_a_limit_is_reset_to_what_the_code_declares(
    semaphore: Semaphore, controls: SemaphoreControls, redis: Redis
) -> None:
    controls.set_limit(1)
    take(semaphore)
    waiter = Waiter(semaphore)
    assert waiter.ask() == "wait"

    controls.reset_limit()

    assert waiter.is_woken(redis)
    assert waiter.ask() == "granted"
    assert controls.info().override is None


def test_raising_a_limit_wakes_one_after_the_other(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore, 3)
    waiters = [Waiter(semaphore) for _ in range(3)]
    for waiter in waiters:
        waiter.ask()

    semaphore.set_limit(5)

    first, second, third = waiters
    assert first.is_woken(redis)
    assert first.ask() == "granted"
    assert second.is_woken(redis)
    assert second.ask() == "granted"
    assert not third.is_woken(redis)


def test_a_heavy_waiter_is_told_that_the_limit_has_sunk_below_its_weight(semaphore: Semaphore) -> None:
    take(semaphore)
    heavy = Waiter(semaphore, weight=3)
    assert heavy.ask() == "wait"

    semaphore.set_limit(2)

    assert heavy.ask_all() == ("heavy", 2)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3", None, 2**31])
def test_a_limit_is_a_whole_number_from_1_on(
    semaphore: Semaphore, controls: SemaphoreControls, limit: int
) -> None:
    controls.set_limit(2)

    with pytest.raises(InvalidValue, match="whole number"):
        controls.set_limit(limit)

    assert controls.info().limit == 2


def test_an_evicted_permit_is_free_and_its_holder_is_told(
    semaphore: Semaphore, controls: SemaphoreControls
) -> None:
    permit, *_others = take(semaphore, 3)

    assert controls.evict(permit.id)

    assert controls.info().used == 2
    assert semaphore.try_acquire() is not None
    with pytest.raises(PermitLost, match="was evicted"):
        permit.refresh()
    with pytest.raises(PermitLost, match="was evicted"):
        permit.release()
    assert permit.lost.is_set()


def test_an_eviction_wakes_the_next(semaphore: Semaphore, controls: SemaphoreControls, redis: Redis) -> None:
    permit, *_others = take(semaphore, 3)
    waiter = Waiter(semaphore)
    waiter.ask()

    controls.evict(permit.id)

    assert waiter.is_woken(redis)
    assert waiter.ask() == "granted"


def test_only_what_is_held_can_be_evicted(
    semaphore: Semaphore, controls: SemaphoreControls, redis: Redis
) -> None:
    evicted, released, expired = take(semaphore, 3)
    controls.evict(evicted.id)
    released.release()
    let_pass(redis, "api", 10)

    assert [controls.evict(permit.id) for permit in (evicted, released, expired)] == [False] * 3
    with pytest.raises(ForeignPermit):
        SemaphoreControls("ipa").evict(evicted.id)


def test_all_semaphores_are_listed_by_page(redis: Redis) -> None:
    names = {f"api {number}" for number in range(100)}
    for name in names:
        take(Semaphore(name, limit=7))
    reader = SemaphoreReader()

    pages = [reader.page(offset=offset, limit=30) for offset in range(0, 150, 30)]

    assert reader.count() == 100
    assert [len(page) for page in pages] == [30, 30, 30, 10, 0]
    assert {info.name for page in pages for info in page} == names
    assert all([info.name for info in page] == sorted(info.name for info in page) for page in pages)
    assert {(info.limit, info.used) for page in pages for info in page} == {(7, 1)}


def test_a_page_is_empty_where_there_is_nothing(redis: Redis) -> None:
    assert SemaphoreReader().page() == []
    assert SemaphoreReader().count() == 0


def test_a_page_costs_four_round_trips(redis: Redis, server: EmbeddedServer) -> None:
    for number in range(20):
        take(Semaphore(f"api {number}", limit=7))

    with sent_to(server) as commands:
        SemaphoreReader().page(limit=10)

    kinds = [kind for kind, _same in groupby(command.split()[0] for command in commands)]
    assert kinds[:3] == ["ZCARD", "ZREVRANGE", "TIME"]
    assert len(commands) == 32 + kinds_of(commands, "ZREVRANGE") + 1 + 6 * 10


def kinds_of(commands: list[str], kind: str) -> int:
    return sum(command.split()[0] == kind for command in commands)


def test_a_semaphore_is_found_by_its_name(semaphore: Semaphore) -> None:
    take(semaphore, 2)

    info = SemaphoreReader().find("api")

    assert info is not None
    assert (info.name, info.limit, info.used) == ("api", 3, 2)
    assert SemaphoreReader().find("ap") is None


def test_semaphores_unused_for_a_month_are_forgotten_unless_their_limit_was_set(redis: Redis) -> None:
    for name in ("old", "set", "new"):
        take(Semaphore(name, limit=7))
    SemaphoreControls("set").set_limit(9)
    for tag in BUCKETS:
        for name, day in redis.zrange(index(tag), 0, -1, withscores=True):
            redis.zadd(index(tag), {name: day - 32})
    for tag in BUCKETS:  # something in each bucket is used
        number = next(each for each in range(1_000) if bucket(f"any {each}") == tag)
        take(Semaphore(f"any {number}", limit=1))
    take(Semaphore("new", limit=7))

    names = {info.name for info in SemaphoreReader().page(limit=99) if not info.name.startswith("any")}

    assert names == {"set", "new"}


def test_a_limit_that_is_reset_is_forgotten_again(redis: Redis) -> None:
    controls = SemaphoreControls("api")
    controls.set_limit(9)
    assert [info.limit for info in SemaphoreReader().page()] == [9]

    controls.reset_limit()

    [(_name, day)] = [entry for tag in BUCKETS for entry in redis.zrange(index(tag), 0, -1, withscores=True)]
    assert day == redis_day(redis)


def redis_day(redis: Redis) -> int:
    answer = redis.time()
    seconds, _microseconds = next(iter(answer.values())) if isinstance(answer, dict) else answer
    return int(seconds // 86_400)


def test_one_holder_is_found_by_the_id_of_its_permit(
    semaphore: Semaphore, controls: SemaphoreControls, redis: Redis
) -> None:
    light, heavy = take(semaphore), take(semaphore, weight=2)

    found = [controls.holder(permit.id) for permit in (light[0], heavy[0])]
    assert [each and (each.id, each.weight) for each in found] == [(light[0].id, 1), (heavy[0].id, 2)]
    light[0].release()
    assert controls.holder(light[0].id) is None
    let_pass(redis, "api", 10)
    assert controls.holder(heavy[0].id) is None
    with pytest.raises(ForeignPermit):
        controls.holder("odd")
