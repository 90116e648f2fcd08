"""Pushing: when a task becomes runnable, many at once, and what is refused before anything is stored."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import BodyTooLarge, InvalidName, NotSerializable
from components.services.queues import Consumer, NewTask, TaskQueue
from components.services.queues.new_task import LATEST, LONGEST_DELAY
from components.services.queues.queue import CHUNK
from tests.support.monitoring import sent_to
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    found,
    hand_in,
    ids,
    options,
    places,
    push_many,
    server_time,
    succeeded,
)

quick = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


class Urgency(IntEnum):
    HIGH = 50


def test_a_delay_runs_out_by_itself(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO, delay=0.02)
    due = queue.stats("default").next_due_at
    assert due is not None

    claimed: list[str] = []
    while not claimed:
        claimed = ids(claim(Consumer()))
        now = server_time()

    assert claimed == [task_id]
    assert due <= now < due + timedelta(minutes=1)


def test_an_instant_in_the_past_means_now(queue: TaskQueue) -> None:
    first = queue.push(ECHO)
    past = queue.push(ECHO, at=datetime(1999, 12, 31, tzinfo=UTC))

    assert ids(claim(Consumer(), 2)) == [first, past]


def test_no_delay_means_now(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO, delay=0.0)

    info = found(task_id)
    assert (info.state, info.run_after) == ("ready", None)


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


def test_tuples_become_lists_and_text_in_bytes_becomes_text(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO, [(1, (2,)), b"\xc3\xbc", Urgency.HIGH], {"a": {"b": (b"c",)}})

    info = found(task_id)
    assert info.args == [[1, [2]], "ü", 50]
    assert info.kwargs == {"a": {"b": ["c"]}}


@pytest.mark.parametrize(
    ("args", "kwargs", "named"),
    [
        ([1, {2}], {}, "args[1] is {2} (set)"),
        ([[1, [2, {"a": {3}}]]], {}, "args[0][1][1]['a'] is {3}"),
        ([], {"user": User(pk=7, username="jill")}, "kwargs['user'] is <User: jill>"),
        ([float("nan")], {}, "args[0] is nan (float)"),
        ([], {"a": [float("-inf")]}, "kwargs['a'][0] is -inf"),
        ([b"\xff"], {}, "args[0] is b'\\xff' (bytes)"),
        ([Decimal("1.5")], {}, "args[0] is Decimal('1.5')"),
        ([datetime(2026, 1, 2)], {}, "args[0] is datetime.datetime(2026, 1, 2, 0, 0)"),
        ([{"a": {1: "b"}}], {}, "args[0]['a'] has the key 1 (int)"),
        ([], {1: 2}, "kwargs has the key 1 (int)"),
        ([{"x" * 100}], {}, f"args[0] is {{'{'x' * 78}… (set)"),
    ],
)
def test_a_value_that_is_no_json_is_refused_by_name(
    queue: TaskQueue, redis: Redis, args: list[Any], kwargs: dict[Any, Any], named: str
) -> None:
    with pytest.raises(NotSerializable) as refused:
        queue.push(ECHO, args, kwargs)

    assert isinstance(refused.value, TypeError)
    assert named in str(refused.value)
    assert ECHO in refused.value.__notes__[0]
    assert redis.dbsize() == 0


def test_a_body_over_the_limit_is_refused_with_its_largest_argument(queue: TaskQueue, redis: Redis) -> None:
    body = json.dumps({"task": ECHO, "args": ["small"], "kwargs": {"big": "x" * 100}}, separators=(",", ":"))
    with options(max_body=len(body)):
        queue.push(ECHO, ["small"], {"big": "x" * 100})
    redis.flushall()

    with options(max_body=len(body) - 1), pytest.raises(BodyTooLarge) as refused:
        queue.push(ECHO, ["small"], {"big": "x" * 100})

    assert isinstance(refused.value, ValueError)
    for told in (f"{len(body):,} bytes", "kwargs['big'] with 102 bytes"):
        assert told in str(refused.value)
    assert redis.dbsize() == 0


def test_the_size_counts_bytes_not_characters(queue: TaskQueue) -> None:
    with options(max_body=200):
        queue.push(ECHO, ["x" * 100])
        with pytest.raises(BodyTooLarge, match="602 bytes"):
            queue.push(ECHO, ["ü" * 100])


@pytest.mark.parametrize(
    "task",
    [
        *({"priority": priority} for priority in (101, -101, 0.5, float("nan"), "5", None)),
        *(
            {"delay": delay}
            for delay in (-1, float("inf"), float("nan"), LONGEST_DELAY + 1, "5", timedelta(1))
        ),
        {"at": datetime(2027, 1, 1)},
        {"at": LATEST + timedelta(microseconds=1)},
        {"delay": 1, "at": datetime(2027, 1, 1, tzinfo=UTC)},
        *({"id": task_id} for task_id in ("a b", "", "é", "a\n", "x" * 65, "\ud800")),
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(queue: TaskQueue, redis: Redis, task: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=ECHO):
        queue.push_many([NewTask(name=ECHO, **task)])

    assert redis.dbsize() == 0


@pytest.mark.parametrize(
    "task",
    [{"priority": 100}, {"priority": -100}, {"delay": LONGEST_DELAY}, {"at": LATEST}, {"id": "x" * 64}],
)
def test_options_at_the_ends_of_their_ranges_are_taken(queue: TaskQueue, task: dict[str, Any]) -> None:
    [info] = queue.push_many([NewTask(name=ECHO, **task)])

    assert info == queue.get(info.id)


def test_a_whole_number_is_a_priority_whatever_its_type(queue: TaskQueue) -> None:
    pushed = [queue.push(ECHO, priority=priority) for priority in (10.0, Urgency.HIGH, True)]

    claimed = [task.read() for task in claim(Consumer(), 3)]

    assert [(info.id, info.priority) for info in claimed] == [
        (pushed[1], 50),
        (pushed[0], 10),
        (pushed[2], 1),
    ]


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


def test_pushing_claiming_and_acking_is_one_round_trip_each(queue: TaskQueue, server: EmbeddedServer) -> None:
    consumer = Consumer()
    queue.push(ECHO)
    hand_in(consumer, succeeded(claim_one(consumer)))

    with sent_to(server) as commands:
        queue.push(ECHO)
        hand_in(consumer, succeeded(claim_one(consumer)))

    assert commands == ["EVALSHA"] * 3


def test_nothing_to_push_sends_nothing(queue: TaskQueue, server: EmbeddedServer) -> None:
    with sent_to(server) as commands:
        pushed = queue.push_many([])

    assert pushed == []
    assert commands == []


def test_one_bad_task_keeps_back_the_whole_batch(queue: TaskQueue, redis: Redis) -> None:
    tasks = [NewTask(name=ECHO)] * CHUNK + [NewTask(name=ECHO, args=[date(2026, 1, 1)])]

    with pytest.raises(NotSerializable):
        queue.push_many(tasks)

    assert redis.dbsize() == 0


def test_arguments_that_contain_themselves_are_refused(queue: TaskQueue) -> None:
    circle: list[object] = []
    circle.append(circle)

    with pytest.raises(NotSerializable):
        queue.push(ECHO, [circle])
    assert queue.names() == []


@pytest.mark.parametrize(("depth", "is_taken"), [(90, True), (101, False), (5_000, False)])
def test_arguments_are_nested_only_so_deep_that_every_reader_can_read_them(
    queue: TaskQueue, depth: int, is_taken: bool
) -> None:
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
