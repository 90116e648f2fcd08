"""What keeps a task from being stored twice: its unique key while it is unfinished, its tick for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test.utils import override_settings
from redis import Redis

from components.services.queues import Consumer, NewTask, TaskInfo, TaskQueue, keys
from components.services.queues.new_task import digest
from tests.support.queues import (
    ECHO,
    claim_one,
    die,
    found,
    hand_in,
    places,
    push_new,
    succeed,
    succeeded,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


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
