"""Wake lists: at most one token, which says "look". Losing one costs time, never a task."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

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
    options,
    push_many,
    step,
    succeeded,
)

ANY = "default"


@pytest.fixture
def queue(redis: Redis) -> TaskQueue:
    """With tokens of its first use taken."""
    queue = TaskQueue()
    queue.push(ECHO)
    consumer = Consumer()
    hand_in(consumer, succeeded(claim_one(consumer)))
    forget(redis)
    return queue


def tokens(redis: Redis, queue: str = "default") -> int:
    return redis.llen(keys.QueueKeys(ANY, queue).wake)


def forget(redis: Redis) -> None:
    found = keys.QueueKeys(ANY, "default")
    redis.delete(found.wake, found.wake_all, found.wake_poller)


def test_pushes_leave_one_token(queue: TaskQueue, redis: Redis) -> None:
    queue.push(ECHO)
    assert tokens(redis) == 1

    push_many(1_000)
    queue.push(ECHO, delay=60)

    assert tokens(redis) == 1
    assert redis.llen(keys.BackendKeys(ANY).wake_all) == 0


def test_the_first_task_of_a_queue_wakes_workers_of_all_queues(queue: TaskQueue, redis: Redis) -> None:
    queue.push(ECHO, queue="new")
    queue.push(ECHO, queue="newer")

    assert tokens(redis, "new") == 1
    assert redis.llen(keys.BackendKeys(ANY).wake_all) == 1


def test_only_what_is_due_before_all_others_wakes_the_poller(queue: TaskQueue, redis: Redis) -> None:
    poller = keys.BackendKeys(ANY).wake_poller
    queue.push(ECHO)
    assert redis.llen(poller) == 0

    queue.push(ECHO, delay=60)
    assert redis.llen(poller) == 1
    forget(redis)
    queue.push(ECHO, delay=90)
    assert (redis.llen(poller), tokens(redis)) == (0, 0)
    queue.push(ECHO, delay=30)
    queue.push(ECHO, delay=20)

    assert (redis.llen(poller), tokens(redis)) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "queues"),
    [("worker", ["other", "new"]), ("worker", []), ("poller", [])],
    ids=["-q", "*", "poller"],
)
def test_a_push_wakes_whoever_waits(queue: TaskQueue, kind: str, queues: list[str]) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Consumer(kind=kind).wait, queues, 10, newcomers=not queues)
        queue.push(ECHO, queue="new", delay=60)

        assert waiting.result() is True


def test_a_worker_of_some_queues_leaves_the_token_of_a_new_one_to_a_worker_of_all(
    queue: TaskQueue, redis: Redis
) -> None:
    queue.push(ECHO, queue="new")

    assert Consumer().wait(["other"], 0.01) is False
    assert Consumer().wait(["other"], 10, newcomers=True) is True


def test_waiting_ends_after_the_time_that_was_given(queue: TaskQueue) -> None:
    assert Consumer().wait(["default"], 0.01) is False
    assert Consumer().wait(["default"], -1) is False


def test_a_worker_does_not_hear_the_poller_nor_the_poller_the_worker(queue: TaskQueue, redis: Redis) -> None:
    redis.rpush(keys.BackendKeys(ANY).wake_poller, "1")
    assert Consumer().wait(["default"], 0.01) is False
    forget(redis)
    redis.rpush(keys.BackendKeys(ANY).wake_all, "1")

    assert Consumer(kind="poller").wait([], 0.01) is False


@pytest.mark.parametrize(
    ("ready", "due_in", "want", "expected"),
    [
        (3, None, 1, 1),  # it had no room for the rest
        (1, None, 1, 0),
        (2, None, 2, 0),
        (2, None, 3, 0),
        (1, 4.9, 1, 1),  # it is full, and another is needed soon
        (1, 3_600, 1, 0),
        (0, 4.9, 1, 0),  # it is idle, and looks again by itself
        (0, None, 0, 0),
    ],
)
def test_a_step_wakes_another_worker_if_there_is_more_to_do_than_it_wanted(
    queue: TaskQueue, redis: Redis, ready: int, due_in: float | None, want: int, expected: int
) -> None:
    push_many(ready)
    if due_in:
        queue.push(ECHO, delay=due_in)
    forget(redis)

    consumer = Consumer()
    claimed = claim(consumer, want)

    assert tokens(redis) == expected
    forget(redis)
    consumer.release(claimed)
    assert tokens(redis) == bool(claimed)


def test_a_poller_wakes_a_worker_for_what_it_has_moved(queue: TaskQueue, redis: Redis) -> None:
    due, abandoned = queue.push(ECHO, delay=60), queue.push(ECHO)
    claim_one(Consumer())
    forget(redis)
    come_due(redis, due)

    step(Consumer(kind="poller"), 0, {"default": 0})
    assert tokens(redis) == 1
    claim(Consumer())
    forget(redis)
    end_lease(redis, abandoned)
    step(Consumer(kind="poller"), 0, {"default": 0})

    assert tokens(redis) == 1


def test_a_paused_queue_gives_nothing_and_wakes_nobody(queue: TaskQueue, redis: Redis) -> None:
    queue.pause("default")
    due = queue.push(ECHO, delay=60)
    push_many(2)
    come_due(redis, due)
    forget(redis)

    claimed = [*claim(Consumer(), 1), *claim(Consumer(kind="poller"), 0)]

    assert claimed == []
    assert tokens(redis) == 0
    assert queue.stats("default").ready == 3


def test_resuming_wakes_a_worker_once(queue: TaskQueue, redis: Redis) -> None:
    queue.pause("default")
    push_many(3)

    resumed = [queue.resume("default") for _ in range(3)]

    assert resumed == [True, False, False]
    assert tokens(redis) == 1
    assert len(claim(Consumer(), 5)) == 3


def test_a_step_tells_when_to_look_again(queue: TaskQueue, redis: Redis) -> None:
    assert step(Consumer()).look_again_at is None

    queue.push(ECHO, delay=60)
    due = queue.push(ECHO, delay=30)
    assert step(Consumer()).look_again_at == queue.get(due).run_after
    queue.push(ECHO)
    with options(lease=10):
        claimed = step(Consumer())

    assert (claimed.look_again_at - claimed.now).total_seconds() == pytest.approx(10, abs=0.002)


@pytest.mark.parametrize("names", [["a", "b"], ["b", "a"]])
def test_a_step_tells_of_the_queue_that_is_due_first(queue: TaskQueue, names: list[str]) -> None:
    queue.push(ECHO, queue="a", delay=60)
    sooner = queue.push(ECHO, queue="b", delay=30)

    answer = step(Consumer(), 1, names)

    due = found(sooner)
    assert answer.look_again_at == due.run_after


def test_more_due_tasks_than_one_call_moves_are_looked_at_again_at_once(
    queue: TaskQueue, redis: Redis
) -> None:
    tasks = push_many(1_001, delay=60)
    come_due(redis, *tasks)

    answer = step(Consumer(), 1)

    assert answer.look_again_at is not None
    assert answer.look_again_at <= answer.now
