"""Pushing: when a task becomes runnable, many at once, and what is refused before anything is stored."""

import json
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils.functional import SimpleLazyObject
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import BodyTooLarge, InvalidName, NotSerializable
from components.kit import ids as made_ids
from components.kit.ids import uuid7
from components.kit.validation import LONGEST
from components.services.queues import Consumer, NewTask, TaskInfo, TaskQueue, execute_later, keys
from components.services.queues.new_task import LATEST, digest
from components.services.queues.queue import CHUNK
from tests.support.monitoring import sent_to
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    die,
    found,
    hand_in,
    options,
    outlive,
    places,
    push_many,
    push_new,
    succeed,
    succeeded,
)

quick = settings(max_examples=10)
instants = st.datetimes(
    datetime(1970, 1, 2), datetime(2247, 12, 31), timezones=st.sampled_from([UTC, ZoneInfo("Asia/Kathmandu")])
)
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.parametrize("delay", [60, 0, -1, -0.5, float("-inf")])
def test_the_books_call_pushes_into_the_same_queues(queue: TaskQueue, delay: float) -> None:
    for wrong in (float("nan"), float("inf"), "5"):
        with pytest.raises(ValueError, match=ECHO):
            execute_later("mail", ECHO, ["a"], delay=wrong)
    task_id = execute_later("mail", ECHO, ["b"], delay=delay)

    info = found(task_id)
    assert places("mail") == {"delayed" if delay == 60 else "ready": [task_id]}
    assert info.args == ["b"]
    assert info.run_after == (info.enqueued_at + timedelta(seconds=60) if delay == 60 else None)


@given(st.lists(instants, min_size=1, max_size=20))
@quick
def test_instants_come_back_to_the_microsecond(redis: Redis, wanted: list[datetime]) -> None:
    queue = TaskQueue()

    pushed = queue.push_many([NewTask(name=ECHO, at=at) for at in wanted])

    stored = [queue.get(info.id) for info in pushed]
    assert [info.run_after for info in stored if info] == [at.astimezone(UTC) for at in wanted]
    assert stored == pushed


@given(st.lists(json_values, max_size=5), st.dictionaries(st.text(), json_values, max_size=5))
@quick
def test_json_comes_out_as_it_went_in(redis: Redis, args: list[Any], kwargs: dict[str, Any]) -> None:
    with options(max_body=1_000_000):
        task_id = TaskQueue().push(ECHO, args, kwargs)

    info = found(task_id)
    assert json.dumps([info.args, info.kwargs]) == json.dumps([args, kwargs])


@pytest.mark.parametrize(
    ("args", "kwargs", "named"),
    [
        ([1, {2}], {}, "args[1] is {2} (set)"),
        ([[1, [2, {"a": {3}}]]], {}, "args[0][1][1]['a'] is {3}"),
        ([], {"user": User(pk=7, username="jill")}, "kwargs['user'] is <User: jill>"),
        ([float("nan")], {}, "args[0] is nan (float)"),
        ([b"\xff"], {}, "args[0] is b'\\xff' (bytes)"),
        ([Decimal("1.5")], {}, "args[0] is Decimal('1.5')"),
        ([{"a": {1: "b"}}], {}, "args[0]['a'] has the key 1 (int)"),
        ([], {1: 2}, "kwargs has the key 1 (int)"),
        ([QueryDict("tag=a&tag=b")], {}, "args[0] is <QueryDict"),
        ([{"x" * 100}], {}, f"args[0] is {{'{'x' * 78}… (set)"),
    ],
)
def test_a_value_that_is_no_json_is_refused_by_name_and_keeps_back_the_whole_batch(
    queue: TaskQueue, redis: Redis, args: list[Any], kwargs: dict[Any, Any], named: str
) -> None:
    with pytest.raises(NotSerializable) as refused:
        queue.push_many([NewTask(name=ECHO)] * CHUNK + [NewTask(name=ECHO, args=args, kwargs=kwargs)])

    assert isinstance(refused.value, TypeError)
    assert named in str(refused.value)
    assert ECHO in refused.value.__notes__[0]
    assert redis.dbsize() == 0


def test_a_lazy_value_is_what_it_stands_for(queue: TaskQueue) -> None:
    lazy = [SimpleLazyObject(lambda each=each: each) for each in ("text", True, 2**53 + 1, ["a"])]

    assert found(queue.push(ECHO, lazy)).args == ["text", True, 2**53 + 1, ["a"]]


def test_a_body_over_the_limit_is_refused_with_its_largest_argument(queue: TaskQueue, redis: Redis) -> None:
    args, kwargs = ["small"], {"big": "x" * 100}
    body = json.dumps({"task": ECHO, "args": args, "kwargs": kwargs}, separators=(",", ":"))
    with options(max_body=len(body)):
        queue.push(ECHO, args, kwargs)
    redis.flushall()

    with options(max_body=len(body) - 1), pytest.raises(BodyTooLarge) as refused:
        queue.push(ECHO, args, kwargs)

    assert isinstance(refused.value, ValueError)
    for told in (f"{len(body):,} bytes", "kwargs['big'] with 102 bytes"):
        assert told in str(refused.value)
    with options(max_body=200), pytest.raises(BodyTooLarge, match="602 bytes"):
        queue.push(ECHO, ["ü" * 100])
    assert redis.dbsize() == 0


@pytest.mark.parametrize(
    ("option", "wrong", "right"),
    [
        ("priority", [101, -101, 0.5, float("nan"), "5", None], [100, -100]),
        ("delay", [-1, float("inf"), float("nan"), LONGEST + 1, "5", timedelta(1)], [LONGEST]),
        ("at", [datetime(2027, 1, 1), LATEST + timedelta(microseconds=1)], [LATEST]),
        ("id", ["a b", "", "é", "a\n", "x" * 65, "\ud800"], ["x" * 64]),
    ],
)
def test_options_out_of_range_are_refused(
    queue: TaskQueue, redis: Redis, option: str, wrong: list[Any], right: list[Any]
) -> None:
    for bad in ({"delay": 1, "at": LATEST}, *({option: value} for value in wrong)):
        with pytest.raises(ValueError, match=ECHO):
            queue.push_many([NewTask(name=ECHO, **bad)])
    assert redis.dbsize() == 0
    for value in right:
        [info] = queue.push_many([NewTask(name=ECHO, **{option: value})])
        assert info == queue.get(info.id)


PRINTABLE = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1, max_size=50)


@given(st.lists(PRINTABLE, min_size=1, max_size=5, unique=True))
@quick
def test_a_queue_may_be_called_anything_printable(redis: Redis, names: list[str]) -> None:
    redis.flushall()
    queue = TaskQueue()
    now = {name: queue.push(ECHO, queue=name) for name in names}
    later = {name: queue.push(ECHO, queue=name, delay=60) for name in names}
    paused, *others = names
    queue.pause(paused)

    claimed = claim(Consumer(), 100, names)

    assert {task.queue: task.id for task in claimed} == {name: now[name] for name in others}
    assert {task.queue: task.read().queue for task in claimed} == {name: name for name in others}
    assert queue.names() == sorted(names)
    assert [stats.name for stats in queue.all_stats()] == sorted(names)
    assert places(paused) == {"ready": [now[paused]], "delayed": [later[paused]]}


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "a\u2028b", "\ud800", "x" * 201, 5, None])
def test_other_names_are_refused(queue: TaskQueue, redis: Redis, name: Any) -> None:
    with pytest.raises(InvalidName):
        queue.push(ECHO, queue=name)
    with pytest.raises(InvalidName):
        queue.pause(name)

    assert redis.dbsize() == 0


def test_many_tasks_of_many_queues_go_in_one_round_trip(queue: TaskQueue, server: EmbeddedServer) -> None:
    push_many(1)
    tasks = [
        NewTask(name=ECHO, args=[number], queue=f"q{number % 7}", delay=number % 2 * 60, priority=number % 3)
        for number in range(CHUNK)
    ]

    with sent_to(server) as commands:
        pushed = queue.push_many(tasks)

    assert commands == ["EVALSHA"]
    assert [(info.args, info.queue, info.priority) for info in pushed] == [
        ([number], f"q{number % 7}", number % 3) for number in range(CHUNK)
    ]
    assert sum(stats.ready for stats in queue.all_stats()) == CHUNK / 2 + 1
    assert sum(stats.delayed for stats in queue.all_stats()) == CHUNK / 2


@pytest.mark.parametrize(("depth", "is_taken"), [(90, True), (101, False), (5_000, False)])
def test_arguments_are_nested_no_deeper_than_is_read(queue: TaskQueue, depth: int, is_taken: bool) -> None:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]

    if is_taken:
        task_id = queue.push(ECHO, [value])
        assert queue.get(task_id).args == [value]  # type: ignore[union-attr]
    else:
        with pytest.raises(NotSerializable):
            queue.push(ECHO, [value])
        assert places() == {}


def test_a_key_is_that_of_its_task_only(queue: TaskQueue) -> None:
    first, second = queue.push_many([NewTask(name=name, unique="a") for name in (ECHO, "tests.tasks.note")])
    others = [push_new(unique=unique) for unique in (None, "b", "", "-", None, "ä b\n" * 100)]

    assert places() == {"ready": [first.id, second.id, *others]}


def test_a_batch_stores_the_first_of_those_with_one_key(queue: TaskQueue) -> None:
    other = push_new(unique="b")

    new = [NewTask(name=ECHO, args=[at], unique=key) for at, key in enumerate(["a", "b", "a", None])]
    stored = [info.id for info in queue.push_many(new) if info]

    assert stored[1:3] == [other, stored[0]]
    assert places() == {"ready": [other, stored[0], stored[3]]}


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


@pytest.mark.parametrize("is_running", [False, True])
def test_only_a_task_that_runs_keeps_its_key_when_it_has_expired(
    queue: TaskQueue, redis: Redis, is_running: bool
) -> None:
    first = push_new(unique="a", expires=60)
    if is_running:
        claim_one(Consumer())
    assert push_new(unique="a", expires=60) == first
    outlive(redis, first)

    assert (push_new(unique="a", expires=60) == first) is is_running


def test_a_task_without_a_record_leaves_its_key_to_the_current_holder(redis: Redis) -> None:
    first = push_new(unique="a")
    consumer = Consumer()
    claimed = claim_one(consumer)
    redis.hdel(keys.BackendKeys("default").tasks, first)
    second = push_new(unique="a")
    assert second != first

    hand_in(consumer, succeeded(claimed))

    assert places() == {"ready": [second], "successful": [first]}
    assert push_new(unique="a") == second


def test_a_holder_that_ends_during_the_push_gives_way(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("ahead", [0, 86_400_000], ids=["the clock stands still", "the clock is turned back"])
def test_ids_sort_by_creation_even_when(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    last_ms = time.time_ns() // 1_000_000 + 60_000 + ahead
    monkeypatch.setattr(made_ids, "_last", last_ms << 12)

    made = [uuid7() for _ in range(10_000)]

    assert made == sorted(made)
    assert UUID(hex=made[0]).int >> 80 == last_ms
    assert len(set(made)) == 10_000
