"""Who waits for a task leaves a note, and may die at any moment: the note goes with the task's end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from components.exceptions import RedisUnavailable
from components.services.queues import Consumer, TaskQueue, keys
from tests.support.queues import (
    be_cancelled,
    claim_one,
    die,
    die_of_crashes,
    end_lease,
    hand_in,
    push_many,
    step,
    succeed,
    to_retry,
)

AWAITED = keys.BackendKeys("default").awaited


def run(redis: Redis) -> None:
    claim_one(Consumer())


def be_retried(redis: Redis) -> None:
    consumer = Consumer()
    hand_in(consumer, to_retry(claim_one(consumer), 60.0))


ENDS = [succeed, die, die_of_crashes, be_cancelled]


@pytest.fixture
def dying_waiter(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """It leaves its note, and goes before it has looked at the task."""

    async def die(*arguments: object) -> None:
        raise RedisUnavailable("the waiter is dead")

    def wait_for(task_id: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(TaskQueue, "_get", die)
            with pytest.raises(RedisUnavailable):
                TaskQueue().wait_for(task_id, wait=9)

    return wait_for


@pytest.mark.parametrize("end", ENDS)
def test_no_note_is_left_of_a_task_that_has_ended(
    redis: Redis, dying_waiter: Callable[[str], None], end: Callable[[Redis, str], None]
) -> None:
    [task_id] = push_many(1)
    end(redis, task_id)
    dying_waiter(task_id)

    assert not redis.exists(AWAITED)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("meanwhile", [run, be_retried, None])
def test_the_note_of_a_dead_waiter_goes_with_the_end_of_the_task(
    redis: Redis,
    dying_waiter: Callable[[str], None],
    meanwhile: Callable[[Redis], None] | None,
    end: Callable[[Redis, str], None],
) -> None:
    [task_id] = push_many(1)
    if meanwhile:
        meanwhile(redis)
    dying_waiter(task_id)
    assert redis.smembers(AWAITED) == {task_id.encode()}
    if meanwhile is run:
        end_lease(redis, task_id)
        step(Consumer(), 0)
    elif meanwhile is be_retried:
        redis.zadd(keys.QueueKeys("default", "default").delayed, {task_id: 1})
        step(Consumer(), 0)
    end(redis, task_id)

    assert not redis.exists(AWAITED)


def test_no_note_is_left_of_a_task_that_nobody_has_pushed(redis: Redis) -> None:
    assert TaskQueue().wait_for("nobody", wait=9) is None
    assert not redis.exists(AWAITED)
