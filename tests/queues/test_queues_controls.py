"""What is done to tasks by their ids: cancelled, sent again, deleted; and what workers are told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.queues import Cancelled, Consumer, Finished, Resent, State, TaskQueue, keys
from components.services.queues.queue import CHUNK
from tests.support.monitoring import sent_to
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    end_lease,
    failed,
    found,
    hand_in,
    places,
    push_many,
    push_new,
    server_time,
    to_retry,
)
from tests.support.snapshots import snapshot
from tests.support.waiting import eventually

CANCELLED = "components.exceptions.TaskCancelled"


def why(task_id: str) -> list[str]:
    return [error.exception_class_path for error in found(task_id).errors]


def test_a_dead_task_that_is_sent_again_has_all_its_attempts_and_keeps_its_errors(
    queue: TaskQueue, redis: Redis
) -> None:
    task_id = push_new(priority=5, lease=50)
    low = push_new(priority=4)
    consumer = Consumer()
    hand_in(consumer, failed(claim_one(consumer)))
    redis.delete(keys.QueueKeys("default", "default").wake)

    assert queue.resend("default", [task_id]) == Resent(sent=1, refused=[])

    assert places() == {"ready": [task_id, low]}
    info = found(task_id)
    assert (info.state, info.starts, info.crashes, info.worker_ids) == ("ready", 0, 0, ())
    assert (info.started_at, info.last_attempted_at, info.finished_at) == (None, None, None)
    assert why(task_id) == ["builtins.ValueError"]
    assert redis.llen(keys.QueueKeys("default", "default").wake) == 1
    claimed = claim_one(consumer)
    assert (claimed.id, claimed.starts) == (task_id, 1)
    hand_in(consumer, failed(claimed))
    assert why(task_id) == ["builtins.ValueError"] * 2


def test_a_resent_task_stands_behind_those_that_waited(queue: TaskQueue, redis: Redis) -> None:
    first, second = push_many(2)
    consumer = Consumer()
    hand_in(consumer, failed(claim_one(consumer)))
    later = server_time() + timedelta(milliseconds=1)
    assert eventually(lambda: server_time() > later)

    queue.resend("default", [first])

    assert places() == {"ready": [second, first]}
    age = queue.stats("default").oldest_age
    assert age is not None
    assert age < 60


def test_the_first_of_two_dead_tasks_with_one_unique_key_is_resent(queue: TaskQueue) -> None:
    consumer, dead = Consumer(), []
    for _ in range(2):
        dead.append(push_new(unique="a"))
        hand_in(consumer, failed(claim_one(consumer)))

    assert queue.resend("default", dead) == Resent(1, dead[1:])
    assert queue.resend("default", dead) == Resent(1, dead[1:])

    assert places() == {"ready": dead[:1], "dead": dead[1:]}


def test_a_living_task_is_not_resent(queue: TaskQueue, one_of_each: dict[State, str], redis: Redis) -> None:
    before = snapshot(redis)

    living = [task_id for state, task_id in one_of_each.items() if state != "dead"]
    queue.resend("default", [*living, "nothing"])

    assert queue.resend("mail", [one_of_each["dead"]]).refused == []
    assert snapshot(redis) == before


@pytest.mark.parametrize("state", ["ready", "delayed", "dead", "successful"])
def test_a_deleted_task_leaves_nothing(
    queue: TaskQueue, one_of_each: dict[State, str], redis: Redis, state: State
) -> None:
    task_id = one_of_each.pop(state)
    redis.delete(*redis.keys("*worker:*"))  # its last answer names what it claimed

    assert queue.delete("default", state, [task_id]) == 1

    assert queue.get(task_id) is None
    assert places() == {other: [kept] for other, kept in one_of_each.items()}
    assert task_id not in repr(snapshot(redis))
    assert all(found(kept).name == ECHO for kept in one_of_each.values())
    assert queue.delete("default", state, [task_id]) == 1


def test_a_running_task_cannot_be_deleted(
    queue: TaskQueue, one_of_each: dict[State, str], redis: Redis
) -> None:
    before = snapshot(redis)

    with pytest.raises(ValueError, match="Cancel it"):
        queue.delete("default", "running", [one_of_each["running"]])

    assert snapshot(redis) == before


def test_many_are_dealt_with_in_a_few_round_trips(queue: TaskQueue, server: EmbeddedServer) -> None:
    tasks = push_many(CHUNK + 1)
    queue.delete("default", "ready", [push_new()])
    queue.cancel("default", [])
    hand_in(Consumer())

    with sent_to(server) as commands:
        cancelled = queue.cancel("default", tasks)
        sent = queue.resend("default", tasks)
        gone = queue.delete("default", "ready", tasks)

    assert (cancelled.at_once, sent.sent, gone) == (CHUNK + 1, CHUNK + 1, CHUNK + 1)
    assert commands.count("EVALSHA") == 6
    assert set(commands) <= {"EVALSHA", "EVAL"}
    assert places() == {}


@pytest.mark.parametrize("order", ["quiet", "stop"])
def test_a_worker_hears_its_order_with_each_heartbeat(queue: TaskQueue, redis: Redis, order: str) -> None:
    told, other = Consumer(), Consumer()
    assert told.renew(["default"]).order == ""

    queue.tell(told.id, order)

    assert [told.renew(["default"]).order for _ in range(2)] == [order] * 2
    assert other.renew(["default"]).order == ""
    assert {info.id: info.order for info in queue.workers()} == {told.id: order, other.id: ""}
    assert 86_000 < redis.ttl(keys.BackendKeys("default").order(told.id)) <= 86_400


def test_a_worker_says_that_it_is_quiet(queue: TaskQueue) -> None:
    worker = Consumer()
    worker.renew(["default"])
    assert [info.is_quiet for info in queue.workers()] == [False]

    worker.is_quiet = True
    worker.renew(["default"])

    assert [info.is_quiet for info in queue.workers()] == [True]


def test_an_order_goes_with_its_worker(queue: TaskQueue, redis: Redis) -> None:
    worker = Consumer()
    worker.renew(["default"])
    queue.tell(worker.id, "stop")

    worker.leave()

    assert redis.dbsize() == 0


@pytest.mark.parametrize("delay", [None, 60])
def test_a_waiting_task_that_is_cancelled_is_dead_at_once(queue: TaskQueue, delay: float | None) -> None:
    before = server_time()
    task_id = push_new(delay=delay)

    assert queue.cancel("default", [task_id]) == Cancelled(at_once=1, asked=0)

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.state, info.is_cancelled, info.starts, info.worker_ids) == ("dead", True, 0, ())
    assert (info.started_at, info.last_attempted_at) == (None, None)
    assert info.finished_at is not None
    assert before <= info.finished_at <= server_time()
    assert why(task_id) == [CANCELLED]
    assert queue.tasks("default", "dead") == [info]
    assert claim(Consumer()) == []


def test_a_task_that_is_cancelled_before_its_next_attempt_keeps_its_story(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    hand_in(consumer, to_retry(claim_one(consumer), 60))
    before = found(task_id)

    queue.cancel("default", [task_id])

    info = found(task_id)
    assert why(task_id) == ["builtins.ValueError", CANCELLED]
    assert (info.starts, info.worker_ids) == (1, (consumer.id,))
    assert (info.started_at, info.last_attempted_at) == (before.started_at, before.last_attempted_at)
    assert info.finished_at is not None
    assert info.last_attempted_at is not None
    assert info.finished_at >= info.last_attempted_at


@pytest.mark.parametrize("finish", [failed, to_retry])
def test_a_cancelled_task_that_fails_is_dead_and_never_tried_again(
    queue: TaskQueue, finish: type[Finished]
) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    queue.cancel("default", [task_id])

    assert hand_in(consumer, finish(claimed)).lost == []

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.is_cancelled, info.starts, info.crashes) == (True, 1, 0)
    assert info.finished_at is not None
    assert why(task_id) == ["builtins.ValueError", CANCELLED]


def test_a_cancelled_task_that_is_given_back_is_not_started_again(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    queue.cancel("default", [task_id])
    redis.delete(keys.QueueKeys("default", "default").wake)

    assert consumer.release([claimed], delay=5) == 1

    assert places() == {"running": [task_id]}
    assert redis.llen(keys.QueueKeys("default", "default").wake) == 1
    assert claim(Consumer(), 5) == []
    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.is_cancelled, info.starts, info.crashes, info.worker_ids) == (True, 0, 0, ())
    assert why(task_id) == [CANCELLED]


def test_a_cancelled_task_whose_worker_died_is_not_started_again(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    dead = Consumer()
    claim_one(dead)
    queue.cancel("default", [task_id])
    end_lease(redis, task_id)

    assert claim(Consumer()) == []

    assert places() == {"dead": [task_id]}
    info = found(task_id)
    assert (info.is_cancelled, info.starts, info.crashes, info.worker_ids) == (True, 1, 1, (dead.id,))
    assert why(task_id) == [CANCELLED]


def test_a_waiting_task_is_cancelled_in_its_own_queue_only(queue: TaskQueue) -> None:
    task_id = push_new(queue="mail")

    assert queue.cancel("default", [task_id]) == Cancelled(0, 0)

    assert places("mail") == {"ready": [task_id]}
