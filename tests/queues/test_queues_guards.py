"""What keeps a task from being stored twice: its unique key while it is unfinished, its tick for ever."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.services.queues import Consumer, NewTask, TaskInfo, TaskQueue, keys
from components.services.queues.new_task import digest
from tests.support.queues import (
    ECHO,
    be_cancelled,
    be_cancelled_as_it_runs,
    be_deleted,
    claim_one,
    come_due,
    die,
    die_of_crashes,
    end_lease,
    found,
    hand_in,
    places,
    push_new,
    step,
    succeed,
    succeeded,
    to_retry,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

#: Takes a task that was pushed with a unique key from there to a state.
Fate = Callable[[Redis, str], object]


def stay(redis: Redis, task_id: str) -> None:
    """Ready, as it was pushed."""


def start(redis: Redis, task_id: str) -> None:
    claim_one(Consumer())


def wait_for_a_retry(redis: Redis, task_id: str) -> None:
    consumer = Consumer()
    hand_in(consumer, to_retry(claim_one(consumer), 60))


def lose_its_worker(redis: Redis, task_id: str) -> None:
    start(redis, task_id)
    end_lease(redis, task_id)
    take_over()
    assert places() == {"ready": [task_id]}


def be_given_back(redis: Redis, task_id: str) -> None:
    consumer = Consumer()
    consumer.release([claim_one(consumer)], delay=5)


def be_asked_to_end(redis: Redis, task_id: str) -> None:
    start(redis, task_id)
    TaskQueue().cancel("default", [task_id])


UNFINISHED: list[Fate] = [stay, start, wait_for_a_retry, lose_its_worker, be_given_back, be_asked_to_end]


ENDS: list[Fate] = [succeed, die, die_of_crashes, be_cancelled, be_cancelled_as_it_runs, be_deleted]


def take_over() -> None:
    step(Consumer(), 0)


@pytest.mark.parametrize("fate", UNFINISHED, ids=lambda fate: fate.__name__)
def test_while_a_task_is_unfinished_no_other_with_its_key_is_stored(
    queue: TaskQueue, redis: Redis, fate: Fate
) -> None:
    first = push_new(args=[1], unique="a")
    fate(redis, first)
    before = places()

    [info] = queue.push_many([NewTask(name=ECHO, args=[2], queue="mail", unique="a")])

    assert info == found(first)
    assert (info.args, info.queue) == ([1], "default")
    assert places() == before
    assert places("mail") == {}


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_when_a_task_has_ended_its_key_is_free(queue: TaskQueue, redis: Redis, end: Fate) -> None:
    first = push_new(unique="a")
    end(redis, first)
    assert not redis.exists(keys.BackendKeys("default").uniques)

    second = push_new(unique="a")

    assert second != first
    assert places()["ready"] == [second]
    assert push_new(unique="a") == second


def test_a_key_is_that_of_its_task_only(queue: TaskQueue) -> None:
    first, second = queue.push_many([NewTask(name=name, unique="a") for name in (ECHO, "tests.tasks.note")])

    assert places() == {"ready": [first.id, second.id]}


def test_tasks_without_a_key_and_of_other_keys_are_all_stored(queue: TaskQueue) -> None:
    pushed = [push_new(unique=unique) for unique in (None, "a", "b", "", "-", None, "ä b\n" * 100)]

    assert places() == {"ready": pushed}


def test_a_batch_stores_the_first_of_those_with_one_key(queue: TaskQueue) -> None:
    other = push_new(unique="b")

    pushed = queue.push_many(
        [NewTask(name=ECHO, args=[number], unique=key) for number, key in enumerate(["a", "b", "a", None])]
    )

    ids = [info.id for info in pushed if info]
    assert ids[1:3] == [other, ids[0]]
    assert pushed[2] == found(ids[0])
    assert places() == {"ready": [other, ids[0], ids[3]]}


def test_a_key_of_one_alias_is_none_of_another(queue: TaskQueue) -> None:
    backend = {"BACKEND": "components.tasks.RedisBackend", "QUEUES": []}
    with override_settings(TASKS={"default": backend, "mail": backend}):
        task = NewTask(name=ECHO, unique="a", tick=("hourly", NOON))

        first, second, third = (
            TaskQueue(alias).push_many([task])[0] for alias in ("default", "mail", "default")
        )

    assert first.id == third.id != second.id


def test_the_key_of_a_task_that_was_sent_again_is_its_own_again(queue: TaskQueue, redis: Redis) -> None:
    first = push_new(unique="a")
    die(redis, first)

    queue.resend("default", [first])

    assert push_new(unique="a") == first


def test_an_end_leaves_the_key_to_its_next_owner(queue: TaskQueue, redis: Redis) -> None:
    first = push_new(unique="a")
    die(redis, first)
    second = push_new(unique="a")

    queue.delete("default", "dead", [first])

    assert push_new(unique="a") == second


def test_a_key_that_was_left_by_what_is_gone_keeps_nothing_back(queue: TaskQueue, redis: Redis) -> None:
    first = push_new(unique="a")
    die(redis, first)
    key = digest(ECHO, "a")
    redis.hset(keys.BackendKeys("default").uniques, key, "gone")

    second = push_new(unique="a")

    assert places() == {"ready": [second], "dead": [first]}
    redis.hset(keys.BackendKeys("default").uniques, key, "gone")
    assert queue.resend("default", [first]).sent == 1
    assert push_new(unique="a") == first


def test_a_task_without_a_record_leaves_its_key_to_the_current_holder(queue: TaskQueue, redis: Redis) -> None:
    first = push_new(unique="a")
    consumer = Consumer()
    claimed = claim_one(consumer)
    redis.hdel(keys.BackendKeys("default").tasks, first)
    second = push_new(unique="a")
    assert second != first

    hand_in(consumer, succeeded(claimed))

    assert places() == {"ready": [second], "successful": [first]}
    assert push_new(unique="a") == second


def test_a_task_that_ends_between_the_push_and_the_look_at_it_gives_way(
    queue: TaskQueue, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = push_new(unique="a")
    look = TaskQueue._get

    async def end_before(self: TaskQueue, client: Redis, task_id: str) -> TaskInfo | None:
        monkeypatch.undo()
        succeed(redis, task_id)
        redis.delete(keys.BackendKeys("default").result(task_id))
        return await look(self, client, task_id)

    monkeypatch.setattr(TaskQueue, "_get", end_before)
    second = push_new(unique="a")

    assert second != first
    assert places() == {"ready": [second]}


def test_each_tick_is_stored_once_and_only_later_ones_after_it(queue: TaskQueue) -> None:
    instants = [NOON, NOON, NOON - HOUR, NOON + HOUR, NOON, NOON + HOUR]

    pushed = [queue.push_many([NewTask(name=ECHO, tick=("hourly", at))])[0] for at in instants]

    assert [info is not None for info in pushed] == [True, False, False, True, False, False]
    assert places() == {"ready": [info.id for info in pushed if info]}


def test_a_microsecond_later_is_later(queue: TaskQueue) -> None:
    latest = datetime(2247, 12, 31, 23, 59, 59, 999_998, tzinfo=UTC)
    instants = [latest, latest + timedelta(microseconds=1)]

    pushed = [queue.push_many([NewTask(name=ECHO, tick=("hourly", at))])[0] for at in instants]

    assert all(pushed)


def test_a_tick_is_taken_also_when_its_task_has_ended(queue: TaskQueue, redis: Redis) -> None:
    succeed(redis, push_new(tick=("hourly", NOON)))

    assert queue.push_many([NewTask(name=ECHO, tick=("hourly", NOON))]) == [None]


def test_ticks_of_different_names_are_different(queue: TaskQueue) -> None:
    names = ["hourly", "hourly too", " hourly", "0", "-", "ä"]

    pushed = queue.push_many([NewTask(name=ECHO, tick=(name, NOON)) for name in [*names, *names]])

    assert [info is not None for info in pushed] == [True] * 6 + [False] * 6


def test_a_tick_may_be_for_later(queue: TaskQueue, redis: Redis) -> None:
    task_id = push_new(tick=("hourly", NOON), delay=60)

    assert queue.push_many([NewTask(name=ECHO, tick=("hourly", NOON))]) == [None]
    assert places() == {"delayed": [task_id]}
    come_due(redis, task_id)
    assert claim_one(Consumer()).id == task_id


def test_a_tick_that_was_taken_leaves_its_unique_key_free(queue: TaskQueue) -> None:
    first = push_new(tick=("hourly", NOON))

    [skipped] = queue.push_many([NewTask(name=ECHO, tick=("hourly", NOON), unique="a")])

    assert skipped is None
    assert places() == {"ready": [first]}
    assert push_new(unique="a") != first


def test_a_tick_whose_key_was_taken_is_taken_all_the_same(queue: TaskQueue, redis: Redis) -> None:
    first = push_new(unique="a")

    assert push_new(unique="a", tick=("hourly", NOON)) == first

    succeed(redis, first)
    assert queue.push_many([NewTask(name=ECHO, unique="a", tick=("hourly", NOON))]) == [None]
    assert push_new(unique="a", tick=("hourly", NOON + HOUR)) != first
