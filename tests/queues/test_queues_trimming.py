"""What goes by itself: successful and dead tasks, by number and by age, a limited number per call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.queues import Consumer, TaskQueue, keys
from tests.support.monitoring import sent_to
from tests.support.queues import (
    age,
    claim,
    failed,
    found,
    hand_in,
    ids,
    options,
    places,
    push_many,
    succeeded,
)

KEYS = keys.QueueKeys("default", "default")
DEAD, SUCCESSFUL = KEYS.dead, KEYS.successful
RECORDS = (KEYS.tasks, KEYS.runs, KEYS.errors)


def die(count: int = 1) -> list[str]:
    """Ids of new dead tasks, the first one first."""
    consumer = Consumer()
    push_many(count)
    claimed = claim(consumer, count)
    hand_in(consumer, *map(failed, claimed))
    return ids(claimed)


def succeed(count: int = 1) -> list[str]:
    consumer = Consumer()
    push_many(count)
    claimed = claim(consumer, count)
    hand_in(consumer, *map(succeeded, claimed))
    return ids(claimed)


def trim(queue: str = "default") -> int:
    return Consumer().trim(queue)


@pytest.mark.parametrize("limit", [3, 1, 0])
def test_the_latest_successful_tasks_are_listed(queue: TaskQueue, limit: int) -> None:
    with options(successful_limit=limit):
        first, second = succeed(), succeed(4)

    assert queue.ids("default", "successful", limit=9) == second[::-1][:limit]
    assert queue.stats("default").successful == limit
    assert found(first[0]).state == "successful"


def test_a_result_that_has_expired_is_no_longer_counted(queue: TaskQueue, redis: Redis) -> None:
    with options(result_ttl=3_600):
        succeed(2)
        age(redis, SUCCESSFUL, timedelta(hours=1))
        [last] = succeed()
        assert queue.stats("default").successful == 3

        gone = trim()

    assert gone == 0  # of the dead
    assert places() == {"successful": [last]}
    assert redis.zcard(SUCCESSFUL) == 1


def test_a_result_is_kept_for_its_time(queue: TaskQueue, redis: Redis) -> None:
    with options(result_ttl=1_000):
        [task_id] = succeed()

    assert 940_000 < redis.pttl(keys.BackendKeys("default").result(task_id)) <= 1_000_000


def test_dead_tasks_go_when_they_are_old(queue: TaskQueue, redis: Redis) -> None:
    with options(dead_ttl=3_600):
        old = die(2)
        age(redis, DEAD, timedelta(minutes=59))
        assert trim() == 0
        assert sorted(places()["dead"]) == old
        age(redis, DEAD, timedelta(minutes=1))
        young = die(1)

        gone = trim()

    assert gone == 2
    assert places() == {"dead": young}
    assert [queue.get(task_id) for task_id in old] == [None, None]
    assert [redis.hlen(part) for part in RECORDS] == [1, 1, 1]


def test_dead_tasks_rest_for_half_a_year_unless_set_otherwise(queue: TaskQueue, redis: Redis) -> None:
    old = die()
    age(redis, DEAD, timedelta(days=179))
    trim()
    assert places() == {"dead": old}

    age(redis, DEAD, timedelta(days=1))
    trim()

    assert places() == {}


def test_the_oldest_dead_go_when_there_are_too_many(queue: TaskQueue, redis: Redis) -> None:
    with options(dead_limit=3):
        old = die(2)
        age(redis, DEAD, timedelta(minutes=1))
        young = die(3)

        gone = trim()

    assert gone == 2
    assert sorted(places()["dead"]) == young
    assert [queue.get(task_id) for task_id in old] == [None, None]
    assert [redis.hlen(part) for part in RECORDS] == [3, 3, 3]


@pytest.mark.parametrize(("old", "left"), [(1, 3), (3, 2)], ids=["more are too many", "more are too old"])
def test_too_old_and_too_many_tasks_go_at_once(
    queue: TaskQueue, redis: Redis, server: EmbeddedServer, old: int, left: int
) -> None:
    die(old)
    age(redis, DEAD, timedelta(days=180))
    young = die(5 - old)
    trim("other")

    with options(dead_limit=3), sent_to(server) as commands:
        gone = trim()

    assert commands == ["EVALSHA"]
    assert gone == 5 - left
    assert sorted(places()["dead"]) == young[-left:]


def test_many_dead_go_little_by_little(queue: TaskQueue, redis: Redis, server: EmbeddedServer) -> None:
    trim()
    redis.zadd(DEAD, {f"task{number:04}": number for number in range(2_300)})
    redis.hset(keys.BackendKeys("default").tasks, mapping={f"task{number:04}": "" for number in range(2_300)})

    with options(dead_ttl=10**10, dead_limit=50), sent_to(server) as commands:
        gone = trim()

    assert gone == 2_250
    assert commands == ["EVALSHA"] * 3
    kept = [task_id.decode() for task_id in redis.zrange(DEAD, 0, -1)]
    assert kept == [f"task{number:04}" for number in range(2_250, 2_300)]
    assert redis.hlen(keys.BackendKeys("default").tasks) == 50
