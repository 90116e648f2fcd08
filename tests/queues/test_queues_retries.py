"""
Attempts: what failed is tried again at its time; what its workers died under is counted apart; what was only
claimed does not count at all.
"""

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
    push_new,
    server_time,
    step,
    succeeded,
    to_retry,
)

MILLISECOND = timedelta(milliseconds=1)
RUNS = keys.BackendKeys("default").runs


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
    messages = ["attempt 1", "attempt 2"] if succeeds else ["attempt 1", "attempt 2", "the last"]
    assert [error.traceback for error in info.errors] == messages


def test_the_latest_of_many_errors_are_kept(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)

    fail(redis, task_id, MOST_ERRORS + 3)

    messages = [error.traceback for error in found(task_id).errors]
    assert messages == [f"attempt {number}" for number in range(4, MOST_ERRORS + 4)]


def test_a_retry_comes_by_itself_at_its_time(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    hand_in(consumer, to_retry(claim_one(consumer), 0.02))
    due = found(task_id).due_at
    assert due is not None

    answer = step(consumer)
    while not answer.claimed:
        assert answer.look_again_at == due
        answer = step(consumer)

    assert ids(answer.claimed) == [task_id]
    assert answer.now >= due


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
    assert [error.traceback for error in info.errors[:4]] == [
        "attempt 1",
        "attempt 2",
        "attempt 3",
        "attempt 1",
    ]
    assert [error.exception_class_path for error in info.errors[4:]] == ["components.exceptions.WorkerDied"]
    assert info.finished_at is not None
    assert [info] == queue.tasks("default", "dead")


def test_a_released_task_keeps_its_failures_but_not_its_last_start(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    workers = fail(redis, task_id, 2)
    careful = Consumer()
    claimed = claim_one(careful)

    careful.release([claimed])

    info = found(task_id)
    assert (info.state, info.starts, info.worker_ids) == ("ready", 2, tuple(workers))
    assert len(info.errors) == 2
    assert claim_one(Consumer()).starts == 3


@pytest.mark.parametrize("lease", [5, 600])
def test_a_claim_lasts_as_long_as_the_task_says(queue: TaskQueue, lease: int) -> None:
    own, common = push_new(lease=lease), push_new()

    with options(lease=20):
        now = step(Consumer(), 2).now

    ends = [found(task_id).lease_expires_at for task_id in (own, common)]
    assert [round((end - now) / MILLISECOND, -1) for end in ends if end] == [lease * 1_000, 20_000]


def test_a_repeated_request_keeps_the_tasks_own_lease(queue: TaskQueue) -> None:
    task_id = push_new(lease=600)
    consumer = Consumer()
    request = consumer.request({"default": 1}, 1)
    consumer.advance(request)

    now = consumer.advance(request).now

    ends = found(task_id).lease_expires_at
    assert ends is not None
    assert round((ends - now) / MILLISECOND, -1) == 600_000


def test_renewing_begins_the_tasks_own_lease_anew(queue: TaskQueue, redis: Redis) -> None:
    own, common = push_new(lease=600, unique="a", queue="mail"), push_new()
    consumer = Consumer()
    claimed = claim(consumer, 2, ["mail", "default"])
    end_lease(redis, own, queue="mail")
    end_lease(redis, common)

    with options(lease=20):
        consumer.renew(["mail", "default"], claimed)

    now = server_time()
    ends = [found(task_id).lease_expires_at for task_id in (own, common)]
    assert [round((end - now).total_seconds(), -1) for end in ends if end] == [600, 20]
