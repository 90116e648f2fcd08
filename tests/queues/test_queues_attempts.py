"""Attempts and leases: what failed is tried again at its time, and whose lease has ended is taken over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis import Redis

from components.services.queues import Consumer, TaskQueue, keys
from components.services.queues.formats import MOST_ERRORS
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    come_due,
    end_lease,
    failed,
    found,
    hand_in,
    ids,
    options,
    places,
    push_many,
    push_new,
    server_time,
    step,
    succeeded,
    to_retry,
)

MILLISECOND = timedelta(milliseconds=1)


def fail(redis: Redis, task_id: str, times: int = 1) -> list[str]:
    """Let attempts of the task fail, and each be due; ids of the workers."""
    workers = []
    for number in range(times):
        consumer = Consumer()
        hand_in(consumer, to_retry(claim_one(consumer), 60, f"attempt {number + 1}"))
        come_due(redis, task_id)
        workers.append(consumer.id)
    return workers


def test_a_failed_task_waits_among_the_delayed_for_its_next_attempt(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)

    answer = hand_in(consumer, to_retry(claimed, 60, "out of stamps"))

    assert answer.lost == []
    assert places() == {"delayed": [task_id]}
    info = found(task_id)
    assert (info.state, info.starts, info.crashes) == ("delayed", 1, 0)
    assert info.due_at == answer.now + timedelta(seconds=60)
    assert (info.run_after, info.finished_at, info.lease_expires_at) == (None, None, None)
    assert [error.traceback for error in info.errors] == ["out of stamps"]
    assert [info] == queue.tasks("default", "delayed")
    assert queue.stats("default").next_due_at == info.due_at


@pytest.mark.parametrize("succeeds", [True, False])
def test_the_story_of_all_attempts_is_told_at_the_end(queue: TaskQueue, redis: Redis, succeeds: bool) -> None:
    task_id = queue.push(ECHO)
    workers = fail(redis, task_id, 2)
    consumer = Consumer()
    claimed = claim_one(consumer)
    tried = claimed.read()

    hand_in(consumer, succeeded(claimed) if succeeds else failed(claimed, "the last"))

    info = found(task_id)
    assert info.worker_ids == (*workers, consumer.id)
    assert (info.starts, info.crashes) == (3, 0)
    assert (info.started_at, info.last_attempted_at) == (tried.started_at, tried.last_attempted_at)
    assert info.finished_at >= info.last_attempted_at
    messages = ["attempt 1", "attempt 2"] if succeeds else ["attempt 1", "attempt 2", "the last"]
    assert [error.traceback for error in info.errors] == messages


def test_the_latest_of_many_errors_are_kept(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)

    fail(redis, task_id, MOST_ERRORS + 3)

    messages = [error.traceback for error in found(task_id).errors]
    assert messages == [f"attempt {number}" for number in range(4, MOST_ERRORS + 4)]


def test_a_retry_at_once_may_be_claimed_in_the_same_step(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    early = claim_one(consumer)

    [late] = step(consumer, 1, finished=[to_retry(early)]).claimed

    assert (late.id, late.starts) == (task_id, 2)
    assert hand_in(consumer, succeeded(early)).lost == [task_id]
    assert places() == {"running": [task_id]}


def test_failures_do_not_count_as_crashes_nor_crashes_as_failures(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    with options(max_crashes=2):
        fail(redis, task_id, 3)
        claim_one(Consumer())
        end_lease(redis, task_id)
        fail(redis, task_id)

        assert (found(task_id).starts, found(task_id).crashes) == (5, 1)
        claim_one(Consumer())
        end_lease(redis, task_id)
        step(Consumer(), 0)

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.starts, info.crashes) == (6, 2)
    assert [error.traceback for error in info.errors[:4]] == [f"attempt {each}" for each in (1, 2, 3, 1)]
    assert [error.exception_class_path for error in info.errors[4:]] == ["components.exceptions.WorkerDied"]
    assert info.finished_at is not None
    assert [info] == queue.tasks("default", "dead")


@pytest.mark.parametrize("lease", [5, 600])
def test_a_claim_lasts_as_long_as_the_task_says_if_repeated_too(queue: TaskQueue, lease: int) -> None:
    own, common = push_new(lease=lease), push_new()
    consumer = Consumer()
    request = consumer.request({"default": 2}, 2)

    for _ in range(2):
        with options(lease=20):
            now = consumer.advance(request).now
        ends = [found(task_id).lease_expires_at for task_id in (own, common)]
        assert [round((end - now) / MILLISECOND, -1) for end in ends if end] == [lease * 1_000, 20_000]


def test_renewing_begins_the_tasks_own_lease_anew(redis: Redis) -> None:
    own, common = push_new(lease=600, unique="a", queue="mail"), push_new()
    consumer = Consumer()
    claimed = claim(consumer, 2, ["mail", "default"])
    end_lease(redis, own, queue="mail")
    end_lease(redis, common)

    before = server_time()
    with options(lease=200):
        consumer.renew(["mail", "default"], claimed)

    now = server_time()
    for task_id, lease in ((own, 600), (common, 200)):
        ends = found(task_id).lease_expires_at
        assert before <= ends - timedelta(seconds=lease) + MILLISECOND <= now + MILLISECOND


def test_a_task_released_with_a_delay_returns_by_itself(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    given_back_at = step(consumer, 0).now

    consumer.release(claim(consumer), delay=5)

    assert places() == {"delayed": [task_id]}
    due = queue.stats("default").next_due_at
    assert timedelta(seconds=5) <= due - given_back_at < timedelta(seconds=15)
    come_due(redis, task_id)
    assert claim_one(consumer).starts == 1


@pytest.mark.parametrize(
    ("own", "ahead", "expected"),
    [
        (None, timedelta(days=31 * 365), 30.0),
        (7_200.0, timedelta(days=31 * 365), 7_200.0),
        (None, timedelta(seconds=3_000), 3_030.0),  # a worker of another release may give longer leases
    ],
)
def test_a_lease_from_the_future_ends(
    redis: Redis, own: float | None, ahead: timedelta, expected: float
) -> None:
    """Else the tasks of a worker that died before the clock came back would be running until that date."""
    with options(lease=30.0):
        task_id = push_new(lease=own)
        consumer = Consumer()
        claim_one(consumer)
        running = keys.QueueKeys("default", "default").running
        redis.zincrby(running, ahead / MILLISECOND, task_id)

        consumer.trim("default")

    seconds, _ = redis.time()
    assert redis.zscore(running, task_id) / 1000 - seconds == pytest.approx(expected, abs=25)


def test_a_task_ended_when_its_worker_says(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    ended_at = server_time() + timedelta(seconds=5)

    hand_in(consumer, failed(claimed)._replace(number=ended_at))

    info = found(task_id)
    assert info.finished_at == ended_at


def test_a_task_of_a_queue_that_is_not_asked_for_can_be_acked(queue: TaskQueue) -> None:
    mail, other = queue.push(ECHO, queue="mail"), queue.push(ECHO, queue="mail")
    consumer = Consumer()
    claimed = claim_one(consumer, "mail")

    answer = step(consumer, 5, ["default"], [succeeded(claimed)])

    assert answer.claimed == []
    assert places("mail") == {"ready": [other], "successful": [mail]}


def test_a_thousand_are_claimed_and_handed_in_by_one_request_and_more_by_the_next(queue: TaskQueue) -> None:
    pushed = push_many(1_200)
    consumer = Consumer()
    claimed = claim(consumer, 1_200)
    answer = consumer.advance(
        consumer.request({"default": 1_200}, 1_200, [succeeded(task) for task in claimed])
    )

    assert ids(claimed) == pushed[:1_000]
    assert ids(answer.claimed) == pushed[1_000:]
    assert (queue.stats("default").successful, queue.stats("default").running) == (1_000, 200)
