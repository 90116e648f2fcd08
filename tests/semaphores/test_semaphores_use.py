"""How full a semaphore was, by the minute: noted by each script that changes it, and read with its state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.services.semaphores import Semaphore, SemaphoreReader
from components.services.semaphores.keys import SemaphoreKeys
from components.services.semaphores.reader import _use
from tests.support.semaphores import let_pass, take

NOW = 29_000_000  # minutes since 1970


@pytest.fixture
def semaphore(redis: Redis) -> Semaphore:
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


def test_the_most_permits_at_the_same_time_are_noted(semaphore: Semaphore) -> None:
    heavy, light = take(semaphore, weight=3)[0], take(semaphore)[0]
    heavy.release()
    take(semaphore)
    light.release()

    found = most_in_use()

    assert len(found) == 120
    assert max(found[-2:]) == 4
    assert sum(found[:-2]) == 0


def test_they_are_read_only_if_they_are_asked_for(semaphore: Semaphore) -> None:
    take(semaphore)

    [listed], [with_use] = SemaphoreReader().page(), SemaphoreReader().page(with_use=True)

    assert list(semaphore.info().use) == list(listed.use) == []
    assert len(with_use.use) == 120
    age = datetime.now(UTC) - with_use.use[-1].at
    assert -timedelta(seconds=30) < age < timedelta(seconds=90)


def test_a_minute_in_which_permits_are_only_given_back_counts_them(
    semaphore: Semaphore, redis: Redis
) -> None:
    first, _second = take(semaphore, 2)
    redis.delete(SemaphoreKeys("api").use)

    first.release()

    assert max(most_in_use()) == 2


def test_a_renewed_permit_stays_in_use(semaphore: Semaphore, redis: Redis) -> None:
    [permit] = take(semaphore, weight=2)
    earlier(redis, 30)
    assert sum(most_in_use()[-25:]) == 0  # its lease of ten seconds was over

    permit.refresh()

    assert most_in_use()[-1] == 2


def test_permits_of_dead_holders_count_until_their_leases_end(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore, 5)
    let_pass(redis, "api", 10)

    take(semaphore, 2)

    assert [each for each in most_in_use() if each] in ([5], [5, 5], [5, 2])


def test_it_is_kept_a_day_longer_than_the_longest_lease(semaphore: Semaphore, redis: Redis) -> None:
    take(semaphore)

    days = redis.pttl(SemaphoreKeys("api").use) / 86_400_000

    assert 7.9 < days <= 8


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
