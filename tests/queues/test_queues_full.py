"""
A server that is full and evicts nothing: it takes no new task, and all that drains it goes on.

With maxmemory at one byte it is full throughout, whatever is deleted; scripts are not loaded either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis

from components.exceptions import RedisRefused
from components.services.queues import Claimed, Consumer, Progress, TaskQueue, Ticks
from components.services.queues.consumer import Parking
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
    succeeded,
    to_retry,
)


@contextmanager
def full(redis: Redis) -> Iterator[None]:
    """The server takes nothing more, and has forgotten all scripts."""
    redis.config_set("maxmemory-policy", "noeviction")
    redis.config_set("maxmemory", 1)
    try:
        redis.script_flush()
        yield
        with pytest.raises(RedisRefused):
            TaskQueue().push(ECHO)
    finally:
        redis.config_set("maxmemory", 0)


def test_a_full_server_takes_no_new_task_and_stores_nothing_of_it(redis: Redis) -> None:
    with full(redis):
        with pytest.raises(RedisRefused):
            push_many(3)

        assert redis.keys() == []


def test_ended_tasks_are_handed_in_and_waiting_ones_claimed(redis: Redis) -> None:
    with options(max_attempts=2):
        push_many(5)
        consumer = Consumer()
        good, bad, again = claim(consumer, 3)
        with full(redis):
            step = hand_in(consumer, succeeded(good, "a" * 1_000), failed(bad), to_retry(again, 60))
            assert step.lost == []
            rest = claim(consumer, 5)
            assert hand_in(consumer, *map(succeeded, rest)).lost == []

            assert found(good.id).return_value == "a" * 1_000
            assert places() == {
                "delayed": [again.id],
                "dead": [bad.id],
                "successful": [*reversed(ids(rest)), good.id],
            }


def release(consumer: Consumer, task: Claimed) -> Any:
    return consumer.release([task])


def cut_off(consumer: Consumer, task: Claimed) -> Any:
    return consumer.release([task], begun=[task])


def put_off(consumer: Consumer, task: Claimed) -> Any:
    return consumer.release([task], delay=60)


def park(consumer: Consumer, task: Claimed) -> Any:
    return Parking(consumer).park("limit", [task]) and Parking(consumer).unpark("limit", "me")


def tell_progress(consumer: Consumer, task: Claimed) -> Any:
    return consumer.progress(task, Progress(1, 2, "half"))


def cancel(consumer: Consumer, task: Claimed) -> Any:
    return TaskQueue().cancel("default", [task.id]).asked


def wait(consumer: Consumer, task: Claimed) -> Any:
    return TaskQueue().wait_for(task.id, wait=0)


def order(consumer: Consumer, task: Claimed) -> Any:
    TaskQueue().tell(consumer.id, "stop")
    return consumer.renew(["default"], [task]).order


def renew(consumer: Consumer, task: Claimed) -> Any:
    return consumer.renew(["default"], [task]).lost == []


def leave(consumer: Consumer, task: Claimed) -> Any:
    consumer.renew(["default"])
    assert [info.id for info in TaskQueue().workers()] == [consumer.id]
    consumer.leave()
    return TaskQueue().workers() == []


def pause_and_resume(consumer: Consumer, task: Claimed) -> Any:
    queue = TaskQueue()
    assert (queue.pause("default"), queue.pause("default")) == (True, False)
    assert queue.stats("default").paused
    return (queue.resume("default"), queue.resume("default")) == (True, False)


def declare(consumer: Consumer, task: Claimed) -> Any:
    now, last = Ticks().declare(["hourly"])
    return last == {"hourly": now}


def test_due_tasks_are_promoted_and_abandoned_ones_taken_over(redis: Redis) -> None:
    delayed, abandoned = push_new(delay=60), push_new()
    claim_one(Consumer())
    come_due(redis, delayed)
    end_lease(redis, abandoned)
    with full(redis):
        assert sorted(ids(claim(Consumer(), 2))) == sorted([delayed, abandoned])


@pytest.mark.parametrize(
    "act",
    [
        *(release, cut_off, put_off, park, tell_progress, cancel, wait, order),
        *(renew, leave, pause_and_resume, declare),
    ],
    ids=lambda act: act.__name__,
)
def test_all_that_drains_the_queues_goes_on(redis: Redis, act: Callable[[Consumer, Claimed], Any]) -> None:
    push_new()
    consumer = Consumer()
    claimed = claim_one(consumer)
    with full(redis):
        assert act(consumer, claimed)


def test_dead_tasks_are_sent_again_with_their_unique_keys_and_deleted(redis: Redis, queue: TaskQueue) -> None:
    first, second = push_new(unique="a"), push_new(unique="b")
    consumer = Consumer()
    hand_in(consumer, *map(failed, claim(consumer, 2)))
    with full(redis):
        assert queue.resend("default", [first]).sent == 1
        assert queue.delete("default", "dead", [second]) == 1
        assert consumer.trim("default") == 0

        assert places() == {"ready": [first]}
