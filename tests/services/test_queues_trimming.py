"""What goes by itself: successful and dead tasks, by number and by age, a limited number per step."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis import Redis

from components import keys
from components.services.queues import Consumer, TaskQueue
from tests.support.queues import age, claim, failed, hand_in, ids, options, places, push_many, step, succeeded

DEAD = keys.queue_dead
SUCCESSFUL = keys.queue_successful


@pytest.fixture
def queue(redis: Redis) -> TaskQueue:
    return TaskQueue()


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


def look() -> None:
    step(Consumer(), 0, {"default": 0})


def test_the_latest_successful_tasks_are_listed(queue: TaskQueue, redis: Redis) -> None:
    with options(successful_limit=3):
        first, second = succeed(), succeed(4)

    assert places()["successful"] == second[:0:-1]
    assert queue.stats("default").successful == 3
    info = queue.get(first[0])
    assert info is not None
    assert info.state == "successful"


def test_no_successful_task_need_be_listed(queue: TaskQueue) -> None:
    with options(successful_limit=0):
        [task_id] = succeed()

    assert places() == {}
    assert queue.get(task_id) is not None


def test_what_has_expired_is_no_longer_counted(queue: TaskQueue, redis: Redis) -> None:
    with options(result_ttl=3_600):
        succeed(2)
        age(redis, SUCCESSFUL("default", "default"), timedelta(hours=1))
        [last] = succeed()

    assert places() == {"successful": [last]}
    assert redis.zcard(SUCCESSFUL("default", "default")) == 1


def test_a_result_is_kept_for_its_time(queue: TaskQueue, redis: Redis) -> None:
    with options(result_ttl=100):
        [task_id] = succeed()

    assert 99_000 < redis.pttl(keys.queue_result("default", task_id)) <= 100_000


def test_dead_tasks_go_when_they_are_old(queue: TaskQueue, redis: Redis) -> None:
    with options(dead_ttl=3_600):
        old = die(2)
        age(redis, DEAD("default", "default"), timedelta(minutes=59))
        look()
        assert sorted(places()["dead"]) == old
        age(redis, DEAD("default", "default"), timedelta(minutes=1))
        young = die(1)

        assert places() == {"dead": young}
    assert [queue.get(task_id) for task_id in old] == [None, None]
    parts = (keys.queue_tasks, keys.queue_runs, keys.queue_errors)
    assert [redis.hlen(part("default")) for part in parts] == [1, 1, 1]


def test_dead_tasks_rest_for_half_a_year_unless_set_otherwise(queue: TaskQueue, redis: Redis) -> None:
    old = die()
    age(redis, DEAD("default", "default"), timedelta(days=179))
    look()
    assert places() == {"dead": old}

    age(redis, DEAD("default", "default"), timedelta(days=1))
    look()

    assert places() == {}


def test_the_oldest_dead_go_when_there_are_too_many(queue: TaskQueue, redis: Redis) -> None:
    with options(dead_limit=3):
        old = die(2)
        age(redis, DEAD("default", "default"), timedelta(minutes=1))
        young = die(3)
        look()

        assert sorted(places()["dead"]) == young
    assert [queue.get(task_id) for task_id in old] == [None, None]
    parts = (keys.queue_tasks, keys.queue_runs, keys.queue_errors)
    assert [redis.hlen(part("default")) for part in parts] == [3, 3, 3]


def test_many_dead_go_little_by_little(queue: TaskQueue, redis: Redis) -> None:
    die(350)
    with options(dead_limit=50):
        counts = []
        for _ in range(4):
            look()
            counts.append(queue.stats("default").dead)

    assert counts == [250, 150, 50, 50]


def test_the_dead_of_other_queues_do_not_count(queue: TaskQueue, redis: Redis) -> None:
    with options(dead_limit=1):
        consumer = Consumer()
        for name in ("a", "b"):
            push_many(1, queue=name)
            hand_in(consumer, *map(failed, claim(consumer, 1, [name])))
        step(Consumer(), 0, {"a": 0, "b": 0})

    assert [stats.dead for stats in queue.all_stats()] == [1, 1]
