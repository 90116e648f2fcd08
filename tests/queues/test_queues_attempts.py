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

    before = server_time()
    with options(lease=200):
        consumer.renew(["mail", "default"], claimed)

    now = server_time()
    for task_id, lease in ((own, 600), (common, 200)):
        ends = found(task_id).lease_expires_at
        assert ends is not None
        assert before <= ends - timedelta(seconds=lease) + MILLISECOND <= now + MILLISECOND


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
    assert redis.zscore(running, task_id) / 1000 - seconds == pytest.approx(expected, abs=25)


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
