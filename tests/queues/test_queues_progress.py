"""How far a task says it is: written by its holder, read by all, gone with the task."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from redis import Redis

from components.services.queues import Consumer, Progress, State, TaskQueue, keys
from tests.support.queues import (
    ECHO,
    claim_one,
    come_due,
    failed,
    found,
    hand_in,
    succeeded,
    to_retry,
)

PROGRESS = keys.BackendKeys("default").progress
HALF = Progress(1, 2, "halb fertig \u2028\n", datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC))


@pytest.mark.parametrize(
    "progress", [HALF, Progress(0), Progress(2.5, 0.5), Progress(-1, None, "x" * 10_000)]
)
def test_progress_is_read_as_it_was_said(queue: TaskQueue, progress: Progress) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    assert found(task_id).progress is None

    assert consumer.progress(claimed, progress) is True

    assert found(task_id).progress == progress
    assert [info.progress for info in queue.tasks("default", "running")] == [progress]


@pytest.mark.parametrize(
    ("progress", "percent"),
    [(Progress(1), None), (Progress(1, 0), None), (Progress(1, 4), 25), (Progress(9, 4), 100)],
)
def test_percent_are_never_more_than_all(progress: Progress, percent: float | None) -> None:
    assert progress.percent == percent


@pytest.mark.parametrize("end", [succeeded, failed, to_retry])
def test_after_the_end_nothing_is_written(queue: TaskQueue, redis: Redis, end: type) -> None:
    queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    hand_in(consumer, end(claimed))

    assert consumer.progress(claimed, Progress(1)) is False

    assert not redis.exists(PROGRESS)


def test_progress_is_gone_when_the_task_has_succeeded(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    consumer.progress(claimed, HALF)

    hand_in(consumer, succeeded(claimed))

    assert found(task_id).progress is None
    assert not redis.exists(PROGRESS)


@pytest.mark.parametrize("state", ["dead", "delayed"])
def test_a_failed_task_shows_its_last_progress(queue: TaskQueue, state: State) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    claimed = claim_one(consumer)
    consumer.progress(claimed, HALF)

    hand_in(consumer, failed(claimed) if state == "dead" else to_retry(claimed, 60))

    assert found(task_id).progress == HALF
    assert [info.progress for info in queue.tasks("default", state)] == [HALF]


def test_progress_of_a_newer_release_hides_nothing_else(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO, [5], delay=60)
    come_due(redis, task_id)
    claim_one(Consumer())
    redis.hset(PROGRESS, task_id, '{"v": 2, "percent": 5}')

    info = found(task_id)

    assert (info.args, info.state, info.progress) == ([5], "running", None)


@pytest.mark.parametrize(
    "progress",
    [
        b"garbage",
        b"[]",
        b"{}",
        b'{"v":1}',
        b"[" * 50_000,
        b'{"v":1,"done":"x","total":1,"note":"","at":0}',
        b'{"v":1,"done":NaN,"total":1,"note":"","at":0}',
    ],
)
def test_foreign_progress_does_not_hide_the_others(queue: TaskQueue, redis: Redis, progress: bytes) -> None:
    first, second = queue.push(ECHO), queue.push(ECHO)
    redis.hset(PROGRESS, first, progress)

    listed = queue.tasks("default", "ready")

    assert [info.id for info in listed] == [first, second]
    assert listed[0].errors
    with pytest.raises(ValueError, match=r"."):
        queue.get(first)
