"""Cancelling: what waits is dead at once; what runs stays with its worker, which is told."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.queues import Cancelled, Consumer, Finished, TaskQueue, keys
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    end_lease,
    failed,
    found,
    hand_in,
    places,
    push_new,
    server_time,
    to_retry,
)

CANCELLED = "components.exceptions.TaskCancelled"


def why(task_id: str) -> list[str]:
    return [error.exception_class_path for error in found(task_id).errors]


@pytest.mark.parametrize("delay", [None, 60])
def test_a_waiting_task_that_is_cancelled_is_dead_at_once(queue: TaskQueue, delay: float | None) -> None:
    before = server_time()
    task_id = push_new(delay=delay)

    assert queue.cancel("default", [task_id]) == Cancelled(at_once=1, asked=0)

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.state, info.is_cancelled, info.starts, info.worker_ids) == ("dead", True, 0, ())
    assert (info.started_at, info.last_attempted_at) == (None, None)
    assert info.finished_at is not None
    assert before <= info.finished_at <= server_time()
    assert why(task_id) == [CANCELLED]
    assert queue.tasks("default", "dead") == [info]
    assert claim(Consumer()) == []


def test_a_task_that_is_cancelled_before_its_next_attempt_keeps_its_story(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    hand_in(consumer, to_retry(claim_one(consumer), 60))
    before = found(task_id)

    queue.cancel("default", [task_id])

    info = found(task_id)
    assert why(task_id) == ["builtins.ValueError", CANCELLED]
    assert (info.starts, info.worker_ids) == (1, (consumer.id,))
    assert (info.started_at, info.last_attempted_at) == (before.started_at, before.last_attempted_at)
    assert info.finished_at is not None
    assert info.last_attempted_at is not None
    assert info.finished_at >= info.last_attempted_at


@pytest.mark.parametrize("finish", [failed, to_retry])
def test_a_cancelled_task_that_fails_is_dead_and_never_tried_again(
    queue: TaskQueue, finish: type[Finished]
) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    queue.cancel("default", [task_id])

    assert hand_in(consumer, finish(claimed)).lost == []

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.is_cancelled, info.starts, info.crashes) == (True, 1, 0)
    assert info.finished_at is not None
    assert why(task_id) == ["builtins.ValueError", CANCELLED]


def test_a_cancelled_task_that_is_given_back_is_not_started_again(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    queue.cancel("default", [task_id])
    redis.delete(keys.QueueKeys("default", "default").wake)

    assert consumer.release([claimed], delay=5) == 1

    assert places() == {"running": [task_id]}
    assert redis.llen(keys.QueueKeys("default", "default").wake) == 1
    assert claim(Consumer(), 5) == []
    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.is_cancelled, info.starts, info.crashes, info.worker_ids) == (True, 0, 0, ())
    assert why(task_id) == [CANCELLED]


def test_a_cancelled_task_whose_worker_died_is_not_started_again(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    dead = Consumer()
    claim_one(dead)
    queue.cancel("default", [task_id])
    end_lease(redis, task_id)

    assert claim(Consumer()) == []

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.is_cancelled, info.starts, info.crashes, info.worker_ids) == (True, 1, 1, (dead.id,))
    assert why(task_id) == [CANCELLED]


def test_a_waiting_task_is_cancelled_in_its_own_queue_only(queue: TaskQueue) -> None:
    task_id = push_new(queue="mail")

    assert queue.cancel("default", [task_id]) == Cancelled(0, 0)

    assert places("mail") == {"ready": [task_id]}
