"""A server that is full and evicts nothing: it takes no new task, and all that drains it goes on."""

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
    """With one byte, the server takes nothing more, whatever is deleted; and it has forgotten all scripts."""
    redis.config_set("maxmemory-policy", "noeviction")
    redis.config_set("maxmemory", 1)
    try:
        redis.script_flush()
        yield
        before = redis.dbsize()
        with pytest.raises(RedisRefused):
            push_many(3)
        assert redis.dbsize() == before
    finally:
        redis.config_set("maxmemory", 0)


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


def leave(consumer: Consumer, task: Claimed) -> Any:
    queue = TaskQueue()
    queue.tell(consumer.id, "stop")
    assert consumer.renew(["default"]).order == "stop"
    assert [info.id for info in queue.workers()] == [consumer.id]
    consumer.leave()
    return queue.workers() == []


def pause_and_resume(consumer: Consumer, task: Claimed) -> Any:
    queue = TaskQueue()
    assert (queue.pause("default"), queue.pause("default")) == (True, False)
    assert queue.stats("default").paused
    return (queue.resume("default"), queue.resume("default")) == (True, False)


ACTS: dict[str, Callable[[Consumer, Claimed], Any]] = {
    "release": lambda consumer, task: consumer.release([task]),
    "cut off": lambda consumer, task: consumer.release([task], begun=[task]),
    "put off": lambda consumer, task: consumer.release([task], delay=60),
    "tell progress": lambda consumer, task: consumer.progress(task, Progress(1, 2, "half")),
    "cancel": lambda consumer, task: TaskQueue().cancel("default", [task.id]).asked,
    "wait": lambda consumer, task: TaskQueue().wait_for(task.id, wait=0),
    "renew": lambda consumer, task: consumer.renew(["default"], [task]).lost == [],
    "declare": lambda consumer, task: Ticks().declare(["hourly"])[1].keys() == {"hourly"},
    "park": lambda consumer, task: (
        Parking(consumer).park("limit", [task]) and Parking(consumer).unpark("limit", "me")
    ),
    "leave": leave,
    "pause and resume": pause_and_resume,
}


def test_due_tasks_are_promoted_and_abandoned_ones_taken_over(redis: Redis) -> None:
    delayed, abandoned = push_new(delay=60), push_new()
    claim_one(Consumer())
    come_due(redis, delayed)
    end_lease(redis, abandoned)
    with full(redis):
        assert sorted(ids(claim(Consumer(), 2))) == sorted([delayed, abandoned])


@pytest.mark.parametrize("act", ACTS)
def test_all_that_drains_the_queues_goes_on(redis: Redis, act: str) -> None:
    push_new()
    consumer = Consumer()
    claimed = claim_one(consumer)
    with full(redis):
        assert ACTS[act](consumer, claimed)


def test_dead_tasks_are_sent_again_with_their_unique_keys_and_deleted(redis: Redis, queue: TaskQueue) -> None:
    first, second = push_new(unique="a"), push_new(unique="b")
    consumer = Consumer()
    hand_in(consumer, *map(failed, claim(consumer, 2)))
    with full(redis):
        assert queue.resend("default", [first]).sent == 1
        assert queue.delete("default", "dead", [second]) == 1
        assert consumer.trim("default") == 0

        assert places() == {"ready": [first]}
