"""Cancelling: what waits is dead at once; what runs stays with its worker, which is told."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.queues import Cancelled, Consumer, Finished, Progress, State, TaskQueue, keys
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    end_lease,
    failed,
    found,
    hand_in,
    places,
    push_many,
    push_new,
    server_time,
    succeeded,
    to_retry,
)
from tests.support.snapshots import snapshot

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


def test_a_running_task_that_is_cancelled_stays_with_its_worker_which_is_reported(queue: TaskQueue) -> None:
    first, second = push_many(2)
    consumer = Consumer()
    claimed = claim(consumer, 2)
    assert consumer.progress(claimed[0], Progress(1)) is True

    assert queue.cancel("default", [first]) == Cancelled(at_once=0, asked=1)

    assert places() == {"running": [first, second]}
    assert [found(task_id).is_cancelled for task_id in (first, second)] == [True, False]
    assert why(first) == []
    heartbeat = consumer.renew(["default"], claimed)
    assert (heartbeat.lost, heartbeat.cancelled) == ([], [first])
    assert [consumer.progress(task, Progress(2)) for task in claimed] == [False, True]
    assert found(first).progress == Progress(2)


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


def test_a_cancelled_task_that_succeeds_nevertheless_is_successful(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    queue.cancel("default", [task_id])

    hand_in(consumer, succeeded(claimed, 5))

    assert places() == {"successful": [task_id]}
    info = found(task_id)
    assert (info.return_value, info.is_cancelled, info.errors) == (5, False, ())


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


def test_cancelling_again_changes_nothing(queue: TaskQueue, redis: Redis) -> None:
    running, ready, _other = push_many(3)
    claim_one(Consumer())
    once = queue.cancel("default", [running, ready])
    before = snapshot(redis)

    twice = queue.cancel("default", [running, ready])

    assert once == twice == Cancelled(at_once=1, asked=1)
    assert snapshot(redis) == before


def test_an_ended_task_cannot_be_cancelled(
    queue: TaskQueue, one_of_each: dict[State, str], redis: Redis
) -> None:
    before = snapshot(redis)

    ended = [one_of_each["dead"], one_of_each["successful"], "nothing"]
    assert queue.cancel("default", ended) == Cancelled(0, 0)
    assert queue.cancel("default", []) == Cancelled(0, 0)

    assert snapshot(redis) == before


def test_a_waiting_task_is_cancelled_in_its_own_queue_only(queue: TaskQueue) -> None:
    task_id = push_new(queue="mail")

    assert queue.cancel("default", [task_id]) == Cancelled(0, 0)

    assert places("mail") == {"ready": [task_id]}
