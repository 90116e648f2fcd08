"""Waiting for the end of a task: it blocks on a list of that task, is woken by any end, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.queues import Consumer, TaskInfo, TaskQueue, keys
from tests.support.monitoring import sent_to
from tests.support.queues import (
    ECHO,
    be_cancelled,
    be_cancelled_as_it_runs,
    be_deleted,
    claim_one,
    die,
    die_of_crashes,
    end_lease,
    found,
    hand_in,
    places,
    step,
    succeed,
    succeeded,
    to_retry,
)
from tests.support.waiting import eventually

AWAITED = keys.BackendKeys("default").awaited
LONG = 30.0  # seconds: longer than any test

End = Callable[[Redis, str], object]


@contextmanager
def waiting(redis: Redis, task_id: str, count: int = 1) -> Iterator[list[Future[TaskInfo | None]]]:
    """So many wait for the task, and are blocked."""
    with ThreadPoolExecutor(count) as pool:
        waiters = [pool.submit(TaskQueue().wait_for, task_id, wait=LONG) for _ in range(count)]
        assert eventually(lambda: redis.info("clients")["blocked_clients"] == count)
        yield waiters


ENDS: list[tuple[End, str | None]] = [
    (succeed, "successful"),
    (die, "dead"),
    (die_of_crashes, "dead"),
    (be_cancelled, "dead"),
    (be_cancelled_as_it_runs, "dead"),
    (be_deleted, None),
]


@pytest.mark.parametrize(("end", "state"), ENDS, ids=lambda part: getattr(part, "__name__", part))
def test_a_wait_for_a_task_is_woken_by_its_end(
    queue: TaskQueue, redis: Redis, end: End, state: str | None
) -> None:
    task_id = queue.push(ECHO)

    with waiting(redis, task_id) as [waiter]:
        end(redis, task_id)
        info = waiter.result()

    assert info == queue.get(task_id)
    assert (info and info.state) == state
    assert redis.scard(AWAITED) == 0
    assert 0 < redis.ttl(keys.BackendKeys("default").ended(task_id)) <= 60


def test_a_coroutine_is_woken_as_well(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)

    async def wait() -> TaskInfo | None:
        return await TaskQueue().await_for(task_id, wait=LONG)

    with waiting(redis, task_id) as [waiter], ThreadPoolExecutor(1) as pool:
        coroutine = pool.submit(asyncio.run, wait())
        assert eventually(lambda: redis.info("clients")["blocked_clients"] == 2)
        succeed(redis, task_id)
        answers = [waiter.result(), coroutine.result()]

    assert answers == [found(task_id)] * 2
    assert redis.scard(AWAITED) == 0


def test_steps_on_the_way_wake_nobody(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)

    with waiting(redis, task_id) as [waiter]:
        consumer = Consumer()
        hand_in(consumer, to_retry(claim_one(consumer)))
        consumer.release([claim_one(consumer)])
        claim_one(consumer)
        end_lease(redis, task_id)
        step(consumer, 0)
        assert not redis.exists(keys.BackendKeys("default").ended(task_id))
        assert not waiter.done()
        succeed(redis, task_id)

        assert waiter.result() == found(task_id)


def test_a_wait_asks_once_before_and_once_after(
    queue: TaskQueue, redis: Redis, server: EmbeddedServer
) -> None:
    queue.wait_for(queue.push(ECHO), wait=0)
    succeed(redis, "")
    task_id = queue.push(ECHO)
    consumer = Consumer()
    done = succeeded(claim_one(consumer))

    with sent_to(server) as commands, waiting(redis, task_id) as [waiter]:
        hand_in(consumer, done)
        waiter.result()

    asked = [command for command in commands if command not in ("AUTH", "CLIENT", "HELLO", "INFO")]
    before, after = ["EVALSHA", "EVALSHA", "ZSCORE", "ZSCORE", "BLPOP"], ["EVALSHA", "EVALSHA"]
    assert asked == [*before, "EVALSHA", *after, "EVALSHA"]


@pytest.mark.parametrize("claims", [False, True])
def test_a_task_that_does_not_end_in_time_is_told_as_it_is(queue: TaskQueue, claims: bool) -> None:
    task_id = queue.push(ECHO)
    if claims:
        claim_one(Consumer())

    info = queue.wait_for(task_id, wait=0.02)

    assert info == found(task_id)
    assert info.state == ("running" if claims else "ready")


@pytest.mark.parametrize("wait", [0, -1])
def test_a_wait_of_zero_looks_once(queue: TaskQueue, wait: float, server: EmbeddedServer) -> None:
    task_id = queue.push(ECHO)
    queue.wait_for(task_id, wait=0)  # the server knows the scripts

    with sent_to(server) as commands:
        info = queue.wait_for(task_id, wait=wait)

    assert info == found(task_id)
    assert commands == ["EVALSHA", "EVALSHA", "ZSCORE", "ZSCORE"]


@pytest.mark.parametrize("end", [succeed, die, be_cancelled], ids=lambda end: end.__name__)
def test_a_task_that_has_ended_before_is_told_at_once(queue: TaskQueue, redis: Redis, end: End) -> None:
    task_id = queue.push(ECHO)
    end(redis, task_id)

    assert queue.wait_for(task_id, wait=LONG) == found(task_id)

    assert redis.scard(AWAITED) == 0
    assert not redis.exists(keys.BackendKeys("default").ended(task_id))


def test_a_missing_object_is_none_at_once(queue: TaskQueue, redis: Redis) -> None:
    assert queue.wait_for("nothing", wait=LONG) is None

    assert redis.scard(AWAITED) == 0


def test_the_end_of_a_task_that_was_sent_again_is_its_next_one(
    queue: TaskQueue, redis: Redis, server: EmbeddedServer
) -> None:
    """A token of the first end may be left; it wakes once, and not again and again."""
    task_id = queue.push(ECHO)
    with waiting(redis, task_id) as [waiter]:
        die(redis, task_id)
        waiter.result()
    assert redis.llen(keys.BackendKeys("default").ended(task_id)) == 1
    queue.resend("default", [task_id])

    with waiting(redis, task_id) as [waiter]:
        assert not redis.exists(keys.BackendKeys("default").ended(task_id))
        succeed(redis, task_id)
        info = waiter.result()

    assert info == found(task_id)
    assert places() == {"successful": [task_id]}


def test_ends_that_nobody_waits_for_are_not_told(queue: TaskQueue, redis: Redis) -> None:
    ended = []
    for end, _state in ENDS:
        ended.append(queue.push(ECHO))
        end(redis, ended[-1])

    assert not redis.exists(AWAITED, *(keys.BackendKeys("default").ended(task_id) for task_id in ended))
