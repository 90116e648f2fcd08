"""What the control room asks and does: how semaphores stand, who holds a permit, limits by hand, evictions."""

import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.kit.keyspace import BUCKETS, bucket
from components.services.semaphores import Semaphore, SemaphoreControls, SemaphoreReader
from components.services.semaphores.keys import SemaphoreKeys
from components.services.semaphores.reader import _use
from tests.support.semaphores import Waiter, let_pass, take

pytestmark = pytest.mark.usefixtures("no_heartbeats")


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=3, lease=10)


@pytest.fixture
def controls(redis: Redis) -> SemaphoreControls:
    return SemaphoreControls("api")


def test_a_semaphore_that_was_never_used_is_as_declared(
    semaphore: Semaphore, controls: SemaphoreControls
) -> None:
    info = semaphore.info()

    assert (info.name, info.limit, info.declared, info.override) == ("api", 3, 3, None)
    assert controls.info().limit is None
    assert SemaphoreReader().find("api") is None
    assert SemaphoreReader().page() == []


def test_waiting_times_are_counted(semaphore: Semaphore, redis: Redis) -> None:
    permits, began = take(semaphore, 3), time.monotonic()
    for seconds in (0.5, 0.25):
        waiter = Waiter(semaphore)
        waiter.ask()
        let_pass(redis, "api", seconds)
        permits.pop().release()
        assert waiter.ask() == "granted"

    info, took = semaphore.info(), time.monotonic() - began

    assert (info.granted, info.waits) == (5, 2)
    assert 0.75 <= info.total_waited < 0.75 + took
    assert 0.5 <= info.longest_wait < 0.5 + took
    assert info.longest_wait < info.total_waited


def test_holders_are_listed_by_page_the_earliest_first(redis: Redis, controls: SemaphoreControls) -> None:
    semaphore = Semaphore("api", limit=9, lease=10)
    permits = []
    for owner in ("order 0", "Jöns/7 %2F\n{}", "", "", ""):
        permits += take(semaphore, owner=owner, weight=1 + len(permits) % 2)
        let_pass(redis, "api", 1)
    permits[0].refresh()

    first, second = controls.holders(limit=2), controls.holders(offset=2, limit=9)

    assert [holder.id for holder in first + second] == [permit.id for permit in permits]
    assert [holder.holder.owner for holder in first] == ["order 0", "Jöns/7 %2F\n{}"]
    assert [holder.weight for holder in second] == [1, 2, 1]
    assert (first[0].holder.process, first[0].holder.thread) == (os.getpid(), "MainThread")
    assert first[0].holder.host
    assert 7 < first[0].remaining <= 10
    assert 1 < first[1].remaining <= 6
    age = datetime.now(UTC) - second[-1].since
    assert timedelta(seconds=1) <= age < timedelta(seconds=60)


def test_waiters_are_listed_in_order_without_the_dead(
    semaphore: Semaphore, controls: SemaphoreControls, redis: Redis
) -> None:
    take(semaphore, 3)
    dead, heavy, light = waiters = [Waiter(semaphore), Waiter(semaphore, weight=3), Waiter(semaphore)]
    began = time.monotonic()
    for waiter in waiters:
        waiter.ask()
    let_pass(redis, "api", 61)
    beats = SemaphoreKeys("api").beats
    redis.zadd(beats, {heavy.id: 9e15, light.id: 9e15})

    first, second = controls.waiters()

    assert [first.weight, second.weight] == [3, 1]
    assert first.holder.process == os.getpid()
    assert 61 <= first.waited < 61 + time.monotonic() - began
    assert controls.info().waiting == 2
    redis.zrem(beats, dead.id)
    assert controls.waiters(limit=1) == []


def test_one_holder_is_found_by_the_id_of_its_permit(
    semaphore: Semaphore, controls: SemaphoreControls, redis: Redis
) -> None:
    [light], [heavy] = take(semaphore), take(semaphore, weight=2)

    found = [controls.holder(permit.id) for permit in (light, heavy)]
    assert [each and (each.id, each.weight) for each in found] == [(light.id, 1), (heavy.id, 2)]
    assert found[0]
    assert 5 < found[0].remaining <= 10
    assert datetime.now(UTC) - found[0].since < timedelta(seconds=60)
    light.release()
    assert controls.holder(light.id) is None
    let_pass(redis, "api", 10)
    assert controls.holder(heavy.id) is None


def test_semaphores_unused_for_a_month_are_forgotten_unless_their_limit_was_set(redis: Redis) -> None:
    for name in ("old", "set", "new", "kept"):
        take(Semaphore(name, limit=7))
    SemaphoreControls("set").set_limit(9)
    for name in ("old", "new", "kept"):
        key = SemaphoreKeys.of_bucket(bucket(name)).names
        redis.zadd(key, {name: redis.zscore(key, name) - (30 if name == "kept" else 32)})
    for tag in BUCKETS:  # something in each bucket is used
        number = next(each for each in range(1_000) if bucket(f"any {each}") == tag)
        take(Semaphore(f"any {number}", limit=1))
    take(Semaphore("new", limit=7))

    names = {info.name for info in SemaphoreReader().page(limit=99) if not info.name.startswith("any")}

    assert names == {"set", "new", "kept"}
    SemaphoreControls("set").reset_limit()
    assert redis.zscore(SemaphoreKeys.of_bucket(bucket("set")).names, "set") == int(redis.time()[0]) // 86_400


NOW = 29_000_000  # minutes since 1970


@pytest.fixture
def roomy(redis: Redis) -> Semaphore:
    return Semaphore("api", limit=5, lease=10)


def most_in_use() -> list[int]:
    info = SemaphoreReader().find("api", with_use=True)
    assert info
    return [each.most for each in info.use]


def earlier(redis: Redis, minutes: int) -> None:
    """Make what is stored of this minute that of an earlier one."""
    key = SemaphoreKeys("api").use
    for field, stored in redis.hgetall(key).items():
        minute, most, last, ends = map(int, stored.split())
        redis.hdel(key, field)
        moved = minute - minutes
        redis.hset(key, str(moved % 120), f"{moved} {most} {last} {ends - minutes * 60}")


def test_the_most_permits_at_the_same_time_are_noted(roomy: Semaphore) -> None:
    heavy, light = take(roomy, weight=3)[0], take(roomy)[0]
    heavy.release()
    take(roomy)
    light.release()

    found = most_in_use()

    assert len(found) == 120
    assert max(found[-2:]) == 4
    assert sum(found[:-2]) == 0


def test_they_are_read_only_if_they_are_asked_for(roomy: Semaphore) -> None:
    take(roomy)

    [listed], [with_use] = SemaphoreReader().page(), SemaphoreReader().page(with_use=True)

    assert list(roomy.info().use) == list(listed.use) == []
    assert len(with_use.use) == 120
    age = datetime.now(UTC) - with_use.use[-1].at
    assert -timedelta(seconds=30) < age < timedelta(seconds=90)


def test_a_minute_in_which_permits_are_only_given_back_counts_them(roomy: Semaphore, redis: Redis) -> None:
    first, _second = take(roomy, 2)
    redis.delete(SemaphoreKeys("api").use)

    first.release()

    assert max(most_in_use()) == 2


def test_a_renewed_permit_stays_in_use(roomy: Semaphore, redis: Redis) -> None:
    [permit] = take(roomy, weight=2)
    earlier(redis, 30)
    assert sum(most_in_use()[-25:]) == 0  # its lease of ten seconds was over

    permit.refresh()

    assert most_in_use()[-1] == 2


def test_permits_of_dead_holders_count_until_their_leases_end(roomy: Semaphore, redis: Redis) -> None:
    take(roomy, 5)
    let_pass(redis, "api", 10)

    take(roomy, 2)

    assert [each for each in most_in_use() if each] in ([5], [5, 5], [5, 2])


@pytest.mark.parametrize(
    ("changes", "last_five"),
    [
        ([], [0, 0, 0, 0, 0]),
        ([(3, 4, 4, 600)], [0, 4, 4, 4, 4]),  # held, with a lease of ten minutes
        ([(3, 4, 4, 90)], [0, 4, 4, 0, 0]),  # the lease ended a minute later, and nobody gave it back
        ([(3, 4, 1, 600)], [0, 4, 1, 1, 1]),  # of four, three were given back
        ([(3, 4, 2, 600), (1, 5, 0, 0)], [0, 4, 2, 5, 0]),
        ([(3, 4, 2, 600), (1, 2, 0, 0)], [0, 4, 2, 2, 0]),
        ([(200, 3, 3, 20_000)], [3, 3, 3, 3, 3]),  # hours ago, with a lease of hours
        ([(200, 3, 3, 600)], [0, 0, 0, 0, 0]),
        ([(-1, 9, 9, 600)], [0, 0, 0, 0, 0]),  # another node's clock is ahead
    ],
)
def test_minutes_without_a_change_are_as_the_last_change_left_them(
    changes: list[tuple[int, int, int, int]], last_five: list[int]
) -> None:
    stored = [
        f"{NOW - ago} {most} {last} {(NOW - ago) * 60 + seconds if seconds else 0}".encode()
        for ago, most, last, seconds in changes
    ]

    found = _use([*stored, b"what is this?"], NOW)

    assert [each.most for each in found][-5:] == last_five
    assert found[-1].at == datetime.fromtimestamp(NOW * 60, UTC)
