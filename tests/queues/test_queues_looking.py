"""A bounded look at the tasks of a state: what it finds, where it ends, and how the next one continues."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis

from components.services.queues import State, TaskInfo, TaskQueue, keys
from tests.support.queues import ids, push_many

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCORES: list[tuple[State, int]] = [("dead", 1_000), ("successful", 1_000), ("delayed", 1_000_000)]


def is_any(info: TaskInfo) -> bool:
    return True


def is_even(info: TaskInfo) -> bool:
    return bool(info.args and info.args[0] % 2 == 0)


def move(redis: Redis, task_ids: list[str], state: State, unit: int) -> None:
    """Put the tasks, which are ready, into another state: the first at NOON, each next one a minute later."""
    of = keys.QueueKeys("default", "default")
    scores = {id: int(NOON.timestamp() + 60 * at) * unit for at, id in enumerate(task_ids)}
    redis.zadd(getattr(of, state), scores)
    redis.delete(of.ready)


def test_a_look_is_bounded_and_the_next_one_continues_it(queue: TaskQueue) -> None:
    tasks = push_many(10)

    first = queue.look("default", "ready", is_even, most=5)
    second = queue.look("default", "ready", is_even, most=5, after=first.after)
    third = queue.look("default", "ready", is_even, most=5, after=second.after)

    assert (ids(first.found), first.looked_at, first.offset) == ([tasks[0], tasks[2], tasks[4]], 5, 0)
    assert (ids(second.found), second.looked_at, second.offset) == ([tasks[6], tasks[8]], 5, 5)
    assert (third.found, third.looked_at, third.after) == ([], 0, "")


def test_a_look_that_reaches_the_end_says_so(queue: TaskQueue) -> None:
    push_many(3)

    assert queue.look("default", "ready", is_any, most=5).after == ""


def test_a_look_goes_on_where_it_was_although_tasks_before_have_left(queue: TaskQueue, redis: Redis) -> None:
    tasks = push_many(6)
    move(redis, tasks, "dead", 1_000)
    first = queue.look("default", "dead", is_any, most=2)
    queue.resend("default", ids(first.found))

    gone = queue.look("default", "dead", is_any, most=2, after=first.after)
    queue.delete("default", "dead", [tasks[5], tasks[4]])
    there = queue.look("default", "dead", is_any, most=2, after=gone.after)

    assert ids(first.found) == [tasks[5], tasks[4]]
    assert ids(gone.found) == [tasks[3], tasks[2]]
    assert ids(there.found) == [tasks[1], tasks[0]]


def test_tasks_that_ended_together_are_not_left_out_when_one_of_them_leaves(
    queue: TaskQueue, redis: Redis
) -> None:
    tasks = push_many(4)
    redis.zadd(keys.QueueKeys("default", "default").dead, dict.fromkeys(tasks, 7))
    first = queue.look("default", "dead", is_any, most=2)
    queue.delete("default", "dead", ids(first.found))

    assert len(queue.look("default", "dead", is_any, most=2, after=first.after).found) == 2


@pytest.mark.parametrize("after", ["x", ":", "1", "nan:a", "inf:", "-inf:x", "1e999:x"])
def test_a_place_that_makes_no_sense_is_no_error(queue: TaskQueue, after: str) -> None:
    push_many(3)

    assert queue.look("default", "ready", is_any, after=after).looked_at in (0, 3)


@pytest.mark.parametrize(("state", "unit"), SCORES)
def test_only_tasks_of_the_time_are_looked_at(
    queue: TaskQueue, redis: Redis, state: State, unit: int
) -> None:
    tasks = push_many(10)
    move(redis, tasks, state, unit)
    minute = timedelta(minutes=1)

    def look(since: datetime | None, until: datetime | None, most: int = 100) -> tuple[int, int]:
        found = queue.look("default", state, is_any, since=since, until=until, most=most)
        return found.looked_at, found.offset

    is_latest_first = state != "delayed"
    assert look(NOON + 2 * minute, NOON + 5 * minute) == (4, 4 if is_latest_first else 2)
    assert look(None, NOON + 5 * minute) == (6, 4 if is_latest_first else 0)
    assert look(NOON + 5 * minute, None) == (5, 0 if is_latest_first else 5)
    assert look(NOON + 20 * minute, None)[0] == 0
    assert look(NOON, None, most=3)[0] == 3
