"""Leases: who holds a claim may hand in, renew and give back; who let it end may not, once another took over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis import Redis

from components.services.queues import Consumer, TaskQueue, keys
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    come_due,
    end_lease,
    found,
    hand_in,
    ids,
    options,
    places,
    push_many,
    push_new,
    step,
    succeeded,
)


def test_a_worker_that_took_over_from_itself_hands_in_both_and_the_later_claim_counts(
    queue: TaskQueue, redis: Redis
) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    early = claim_one(consumer)
    end_lease(redis, task_id)
    late = claim_one(consumer)

    lost = hand_in(consumer, succeeded(early, "early"), succeeded(late, "late")).lost

    assert lost == [task_id]
    info = found(task_id)
    assert info.return_value == "late"


def test_an_abandoned_task_remembers_who_started_it(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    workers = [Consumer(), Consumer()]
    started = []
    for worker in workers:
        started.append(claim_one(worker).read().last_attempted_at)
        end_lease(redis, task_id)

    info = queue.get(task_id)

    assert info is not None
    assert info.worker_ids == tuple(worker.id for worker in workers)
    assert (info.started_at, info.last_attempted_at) == tuple(started)


@pytest.mark.parametrize("max_crashes", [1, 3])
def test_a_task_that_kills_its_workers_dies(queue: TaskQueue, redis: Redis, max_crashes: int) -> None:
    with options(max_crashes=max_crashes):
        task_id = queue.push(ECHO)
        for start in range(1, max_crashes + 1):
            assert claim_one(Consumer()).starts == start
            end_lease(redis, task_id)

        assert claim(Consumer()) == []

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert [error.exception_class_path for error in info.errors] == ["components.exceptions.WorkerDied"]
    assert len(info.worker_ids) == max_crashes


def test_a_task_released_with_a_delay_returns_by_itself(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    given_back_at = step(consumer, 0).now

    consumer.release(claim(consumer), delay=5)

    assert places() == {"delayed": [task_id]}
    due = queue.stats("default").next_due_at
    assert due is not None
    assert timedelta(seconds=5) <= due - given_back_at < timedelta(seconds=15)
    come_due(redis, task_id)
    assert claim_one(consumer).starts == 1


def test_a_worker_without_takeover_leaves_abandoned_tasks(queue: TaskQueue, redis: Redis) -> None:
    consumer, other = Consumer(), Consumer()
    [abandoned] = push_many(1)
    claim_one(other)
    end_lease(redis, abandoned)
    step = consumer.advance(consumer.request({"default": 1}, 1, take_over=False))

    assert (step.claimed, step.look_again_at) == ([], None)
    assert other.renew(["default"], ()).lost == []
    assert ids(claim(consumer)) == [abandoned]


@pytest.mark.parametrize(("own", "expected"), [(None, 30.0), (7_200.0, 7_200.0)])
def test_a_lease_of_a_clock_that_had_jumped_ahead_ends(
    redis: Redis, own: float | None, expected: float
) -> None:
    """Else the tasks of a worker that died before the clock came back would be running until that date."""
    task_id = push_new(lease=own)
    consumer = Consumer()
    claim_one(consumer)
    running = keys.QueueKeys("default", "default").running
    redis.zincrby(running, 31 * 365 * 86_400_000, task_id)

    with options(lease=30.0):
        consumer.trim("default")

    seconds, _ = redis.time()
    assert redis.zscore(running, task_id) / 1000 - seconds == pytest.approx(expected, abs=5)


def test_a_lease_that_another_worker_may_have_given_is_left_alone(queue: TaskQueue, redis: Redis) -> None:
    """Workers of a release that gives longer leases run beside those of this one."""
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claim_one(consumer)
    running = keys.QueueKeys("default", "default").running
    redis.zincrby(running, 3_000_000, task_id)
    before = redis.zscore(running, task_id)

    consumer.trim("default")

    assert redis.zscore(running, task_id) == before
