"""What bounds the keys of queues, and what ends each; and a full server: it takes no new task, but drains."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisRefused
from components.services.queues import (
    Claimed,
    Consumer,
    Finished,
    NewTask,
    Progress,
    State,
    TaskQueue,
    Ticks,
    keys,
)
from tests.support.monitoring import sent_to
from tests.support.queues import (
    ECHO,
    age,
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


def test_a_queue_with_any_task_is_not_forgotten(queue: TaskQueue, one_of_each: dict[State, str]) -> None:
    for state, task_id in one_of_each.items():
        Consumer().trim("default")
        assert queue.all_names() == ["default"]
        if state != "running":
            queue.delete("default", state, [task_id])

    assert list(places()) == ["running"]


def outlive(redis: Redis, *queues: str) -> None:
    """The results of *queues* have expired, and their lists are of long ago."""
    for name in queues:
        age(redis, keys.QueueKeys("default", name).successful, timedelta(days=400))
        age(redis, keys.QueueKeys("default", name).dead, timedelta(days=400))
    for key in redis.scan_iter(match=keys.BackendKeys("default").result("").replace("{", "[{]") + "*"):
        redis.delete(key)


def test_of_many_queues_those_without_work_are_not_asked(queue: TaskQueue, redis: Redis) -> None:
    names = use(MANY)
    [waiting] = push_many(1, queue="customer-0007", delay=60)

    step(Consumer(), 0, queue.names())

    assert queue.names() == ["customer-0007"]
    assert queue.all_names() == [stats.name for stats in queue.all_stats()] == names
    assert places("customer-0007")["delayed"] == [waiting]
    assert redis.exists(*(keys.QueueKeys("default", name).wake for name in names)) == 1


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
    consumer.park("limit", [parked])
    hand_in(consumer, succeeded(good), failed(bad), to_retry(again, 60))
    consumer.unpark("limit", "call")
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


@pytest.mark.parametrize("way", ["push", "resend"])
def test_a_queue_is_asked_again_when_it_gets_a_task(queue: TaskQueue, redis: Redis, way: str) -> None:
    names = use(MANY)
    consumer, task_id = Consumer(), queue.push(ECHO, queue=names[5])
    hand_in(consumer, failed(claim_one(consumer, names[5])))
    step(consumer, 0, names)
    redis.delete(keys.BackendKeys("default").wake_all)
    assert queue.names() == []

    if way == "push":
        queue.push(ECHO, queue=names[5])
    else:
        assert queue.resend(names[5], [task_id]).sent == 1

    assert queue.names() == [names[5]]
    assert redis.llen(keys.BackendKeys("default").wake_all) == 1


KEYS = keys.QueueKeys("default", "default")


def end(finish: Callable[[Claimed], Finished], count: int = 1) -> list[str]:
    """Ids of new tasks that have ended so, the first one first."""
    consumer = Consumer()
    push_many(count)
    claimed = claim(consumer, count)
    hand_in(consumer, *map(finish, claimed))
    return ids(claimed)


DEAD, SUCCESSFUL = KEYS.dead, KEYS.successful
RECORDS = (KEYS.tasks, KEYS.runs, KEYS.errors)


@pytest.mark.parametrize("limit", [3, 1, 0])
def test_the_latest_successful_tasks_are_listed(queue: TaskQueue, redis: Redis, limit: int) -> None:
    with options(successful_limit=limit, result_ttl=1_000):
        first, second = end(succeeded), end(succeeded, 4)

    assert queue.ids("default", "successful", limit=9) == second[::-1][:limit]
    assert queue.stats("default").successful == limit
    assert found(first[0]).state == "successful"
    assert 940_000 < redis.pttl(KEYS.result(first[0])) <= 1_000_000


def test_a_result_that_has_expired_is_no_longer_counted(queue: TaskQueue, redis: Redis) -> None:
    with options(result_ttl=3_600):
        end(succeeded, 2)
        age(redis, SUCCESSFUL, timedelta(hours=1))
        [last] = end(succeeded)
        assert queue.stats("default").successful == 3

        gone = Consumer().trim("default")

    assert gone == 0  # of the dead
    assert places() == {"successful": [last]}
    assert redis.zcard(SUCCESSFUL) == 1


@pytest.mark.parametrize(("old", "left"), [(1, 3), (3, 2)], ids=["more are too many", "more are too old"])
def test_too_old_and_too_many_tasks_go_at_once(redis: Redis, old: int, left: int) -> None:
    with options(dead_limit=3, dead_ttl=3_600):
        end(failed, old)
        age(redis, DEAD, timedelta(minutes=59))
        assert Consumer().trim("default") == 0
        age(redis, DEAD, timedelta(minutes=1))
        young = end(failed, 5 - old)

        assert Consumer().trim("default") == 5 - left

    assert sorted(places()["dead"]) == young[-left:]


def test_many_dead_go_little_by_little(redis: Redis, server: EmbeddedServer) -> None:
    Consumer().trim("default")
    redis.zadd(DEAD, {f"task{number:04}": number for number in range(2_300)})
    redis.hset(KEYS.tasks, mapping={f"task{number:04}": "" for number in range(2_300)})

    with options(dead_ttl=10**10, dead_limit=50), sent_to(server) as commands:
        gone = Consumer().trim("default")

    assert gone == 2_250
    assert commands == ["EVALSHA"] * 3
    kept = [task_id.decode() for task_id in redis.zrange(DEAD, 0, -1)]
    assert kept == [f"task{number:04}" for number in range(2_250, 2_300)]
    assert redis.hlen(KEYS.tasks) == 50


@pytest.mark.parametrize("count", [1, MANY])
def test_a_queue_that_holds_no_task_and_is_not_paused_is_forgotten(
    queue: TaskQueue, redis: Redis, count: int
) -> None:
    names = use(count)
    outlive(redis, *names)
    queue.pause(names[0])

    Consumer().trim(*queue.all_names())
    assert queue.all_names() == names[:1]
    queue.resume(names[0])
    Consumer().trim(*names)

    assert queue.all_names() == queue.names() == []
    assert not redis.exists(*(keys.QueueKeys("default", name).wake for name in names))


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
    "park": lambda consumer, task: consumer.park("limit", [task]) and consumer.unpark("limit", "me"),
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
