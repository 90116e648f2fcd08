"""What bounds the keys of queues, and what ends each: names of queues, and all else that use leaves behind."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis import Redis

from components.services.queues import Consumer, NewTask, Progress, TaskQueue, keys
from components.services.queues.consumer import Parking
from tests.support.queues import (
    ECHO,
    age,
    claim,
    claim_one,
    end_lease,
    failed,
    found,
    hand_in,
    options,
    places,
    push_many,
    step,
    succeeded,
    to_retry,
)

MANY = 150  # queues: more than a step looks at although nothing is in them


def use(count: int) -> list[str]:
    """Names of queues in each of which a task was run."""
    names = [f"customer-{number:04}" for number in range(count)]
    TaskQueue().push_many([NewTask(name=ECHO, queue=name) for name in names])
    consumer = Consumer()
    hand_in(consumer, *map(succeeded, claim(consumer, count, dict.fromkeys(names, 1))))
    return names


def outlive(redis: Redis, *queues: str) -> None:
    """The results of *queues* have expired, and their lists are of long ago."""
    for name in queues:
        age(redis, keys.QueueKeys("default", name).successful, timedelta(days=400))
        age(redis, keys.QueueKeys("default", name).dead, timedelta(days=400))
    for key in redis.scan_iter(match=keys.BackendKeys("default").result("").replace("{", "[{]") + "*"):
        redis.delete(key)


def test_queues_in_which_nothing_waits_or_runs_are_not_asked_if_there_are_many(
    queue: TaskQueue, redis: Redis
) -> None:
    names = use(MANY)
    [waiting] = push_many(1, queue="customer-0007", delay=60)

    step(Consumer(), 0, queue.names())

    assert queue.names() == ["customer-0007"]
    assert queue.all_names() == [stats.name for stats in queue.all_stats()] == names
    assert places("customer-0007")["delayed"] == [waiting]
    assert redis.exists(*(keys.QueueKeys("default", name).wake for name in names)) == 1


def test_a_queue_that_is_not_asked_is_asked_again_when_something_is_pushed_and_workers_wake(
    queue: TaskQueue, redis: Redis
) -> None:
    use(MANY)
    step(Consumer(), 0, queue.names())
    redis.delete(keys.BackendKeys("default").wake_all)

    queue.push(ECHO, queue="customer-0003")

    assert queue.names() == ["customer-0003"]
    assert redis.llen(keys.BackendKeys("default").wake_all) == 1


def test_a_dead_task_that_is_sent_again_brings_its_queue_back(queue: TaskQueue, redis: Redis) -> None:
    names = use(MANY)
    task_id = queue.push(ECHO, queue=names[5])
    consumer = Consumer()
    hand_in(consumer, failed(claim_one(consumer, names[5])))
    step(consumer, 0, names)
    redis.delete(keys.BackendKeys("default").wake_all)
    assert queue.names() == []

    assert queue.resend(names[5], [task_id]).sent == 1

    assert queue.names() == [names[5]]
    assert redis.llen(keys.BackendKeys("default").wake_all) == 1


@pytest.mark.parametrize("count", [1, MANY])
def test_a_queue_that_holds_no_task_is_forgotten(queue: TaskQueue, redis: Redis, count: int) -> None:
    names = use(count)
    outlive(redis, *names)

    Consumer().trim(*queue.all_names())

    assert queue.all_names() == queue.names() == []
    assert not redis.exists(*(keys.QueueKeys("default", name).wake for name in names))


@pytest.mark.parametrize("state", ["ready", "delayed", "running", "dead", "successful"])
def test_a_queue_with_a_task_in_any_state_is_not_forgotten(
    queue: TaskQueue, redis: Redis, state: str
) -> None:
    queue.push(ECHO, queue="mail", delay=60 if state == "delayed" else None)
    consumer = Consumer()
    if state not in ("ready", "delayed"):
        claimed = claim_one(consumer, "mail")
    if state in ("dead", "successful"):
        hand_in(consumer, failed(claimed) if state == "dead" else succeeded(claimed))

    consumer.trim("mail")

    assert queue.all_names() == ["mail"]
    assert list(places("mail")) == [state]


def test_a_paused_queue_is_not_forgotten_before_it_is_resumed(queue: TaskQueue, redis: Redis) -> None:
    names = use(1)
    outlive(redis, *names)
    queue.pause(names[0])

    Consumer().trim(*names)
    assert queue.all_names() == names
    queue.resume(names[0])
    Consumer().trim(*names)

    assert queue.all_names() == []


def test_the_dead_of_many_queues_go_together(queue: TaskQueue, redis: Redis) -> None:
    names = [f"q{number}" for number in range(3)]
    consumer = Consumer()
    for name in names:
        push_many(700, queue=name)
        hand_in(consumer, *map(failed, claim(consumer, 700, [name])))

    with options(dead_limit=10):
        assert consumer.trim(*names) == 3 * 690

    assert [stats.dead for stats in queue.all_stats()] == [10, 10, 10]


def test_when_all_has_ended_and_was_kept_long_enough_no_key_is_left(queue: TaskQueue, redis: Redis) -> None:
    """All that a task can leave: errors, progress, unique keys, who waits, parked ones, tokens, orders."""
    consumer = Consumer()
    consumer.renew(["mail"])
    new = NewTask(name=ECHO, queue="mail")
    queue.push_many([new, new, new, NewTask(name=ECHO, queue="mail", unique="key")])
    queue.push(ECHO, queue="mail", delay=3600)
    good, bad, again, parked = claim(consumer, 4, ["mail"])
    for task in (good, bad):
        consumer.progress(task, Progress(1, note="x" * 100_000))
        queue.wait_for(task.id, wait=0)
    Parking(consumer).park("limit", [parked])
    hand_in(consumer, succeeded(good), failed(bad), to_retry(again, 60))
    Parking(consumer).unpark("limit", "call")
    queue.pause("mail")
    queue.tell(consumer.id, "quiet")
    assert redis.hstrlen(keys.BackendKeys("default").progress, bad.id) < 11_000

    queue.resume("mail")
    queue.cancel("mail", [*places("mail")["delayed"], *places("mail").get("ready", [])])
    outlive(redis, "mail")
    consumer.trim("mail")
    consumer.leave()

    left = {key for key in redis.scan_iter() if redis.pttl(key) == -1}
    assert left <= {
        key.encode()
        for key in (keys.BackendKeys("default").wake_all, keys.BackendKeys("default").wake_poller)
    }


def test_a_task_that_is_started_again_and_again_keeps_its_latest_workers(
    queue: TaskQueue, redis: Redis
) -> None:
    [task_id] = push_many(1)
    claim_one(Consumer())
    run = redis.hget(keys.BackendKeys("default").runs, task_id)
    assert run is not None
    redis.hset(keys.BackendKeys("default").runs, task_id, run + b",elsewhere" * 999)
    end_lease(redis, task_id)
    last = Consumer()

    claim_one(last)

    workers = found(task_id).worker_ids
    assert len(workers) == 1_000
    assert set(workers) == {"elsewhere", last.id}
