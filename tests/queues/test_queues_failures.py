"""Which dead tasks have died alike, and how a look at them is bounded."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import ANY

import pytest
from redis import Redis

from components.services.queues import Consumer, Finished, NewTask, TaskFailure, TaskQueue, keys
from components.services.queues.failures import Failures, Place, alike, groups
from components.services.queues.formats import write_errors
from components.services.queues.worker.execution import _failure
from tests.support.queues import claim, die_of_crashes, hand_in, push_many, push_new


def die(
    message: str, kind: str = "KeyError", count: int = 1, name: str = "shop.charge", **task: object
) -> list[str]:
    """Push tasks, and let them die of *kind*, with *message* in the traceback."""
    TaskQueue().push_many([NewTask(name=name, **task) for _ in range(count)])  # type: ignore[arg-type]
    consumer, finished = Consumer(), []
    for claimed in claim(consumer, count):
        errors = [TaskFailure(f"builtins.{kind}", f"Traceback (most recent call last):\n{kind}: {message}\n")]
        at = claimed.read().last_attempted_at
        assert at
        finished.append(Finished(claimed, "dead", at, write_errors(errors)))
    hand_in(consumer, *finished)
    return [each.task.id for each in finished]


def seen(most: int = 100) -> list[tuple[str, str, str, int]]:
    """Task, kind, message and number of each group."""
    found = groups(Failures("default", "default").look(most=most).found)
    return [(each.latest.name, each.latest.error.kind, each.message, each.count) for each in found]


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("9", "…"),
        ("'lantern'", "…"),
        ("Order 17 of 'Jill' is gone", "Order … of … is gone"),
        ('No "a" at 0x7f3a', "No … at …"),
        ("can't, don't", "can't, don't"),
        ("id 01a2077874aa7655bfbdb2e31a202e1e!", "id …!"),
        ("id 01a20778-74aa-7655-bfbd-b2e31a202e1e!", "id …!"),
        ("[Errno 111] Connection refused", "[Errno 111] Connection refused"),
        ("HTTP 503 after 7 s", "HTTP 503 after … s"),
        ("status code: 404", "status code: 404"),
        ("", ""),
    ],
)
def test_what_differs_is_left_out_and_what_tells_the_reason_is_not(message: str, pattern: str) -> None:
    assert alike(message) == pattern


def test_the_latest_error_counts_and_the_first_and_last_death_are_known(redis: Redis) -> None:
    [first], [last] = die("1"), die("2")
    redis.zadd(keys.QueueKeys("default", "default").dead, {first: 1_000, last: 5_000})

    [group] = groups(Failures("default", "default").look(most=9).found)

    assert (group.first.id, group.latest.id) == (first, last)
    assert (group.latest.died_at - group.first.died_at).total_seconds() == 4


def put(redis: Redis, **queues: dict[str, float]) -> None:
    """Store only where dead tasks are."""
    for name, scores in queues.items():
        redis.zadd(keys.QueueKeys("default", name).dead, scores)


@pytest.mark.parametrize("most", [1, 7, 241, 242])
def test_the_dead_tasks_of_several_queues_have_one_order_in_pieces_as_well(redis: Redis, most: int) -> None:
    sizes = {"a": 1, "b": 50, "c": 190}
    put(redis, **{name: {f"{name}{at:03}": at // 7 for at in range(size)} for name, size in sizes.items()})
    whole = sorted(
        ((at // 7, name, f"{name}{at:03}") for name, size in sizes.items() for at in range(size)),
        key=lambda each: (-each[0], each[1], -int(each[2][1:])),
    )
    pieces, after = list[tuple[float, str, str]](), ""

    while True:
        look = Failures("default", "a", "b", "c", "empty").look(most=most, after=after)
        assert (look.offset, look.looked_at) == (len(pieces), len(look.found))
        pieces += [(each.place.score, each.place.queue, each.id) for each in look.found]
        if not (after := look.after):
            break

    assert pieces == whole


def test_a_look_goes_on_although_the_task_and_the_queue_where_it_ended_are_gone(redis: Redis) -> None:
    put(redis, a={"a1": 1, "a2": 2}, b={"b1": 1, "b2": 2}, c={"c1": 1, "c2": 2})
    failures = Failures("default", "a", "b", "c")
    first = failures.look(most=2)
    redis.delete(keys.QueueKeys("default", "b").dead)

    second = failures.look(most=9, after=first.after)

    assert [each.id for each in first.found] == ["a2", "b2"]
    assert [each.id for each in second.found] == ["c2", "a1", "c1"]


def test_a_task_that_is_resent_meanwhile_is_no_failure(
    queue: TaskQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = die("1", count=2)
    places = Failures._places

    def late(self: Failures, *args: Any) -> tuple[int, list[Place]]:
        found = places(self, *args)
        queue.resend("default", [second])
        return found

    monkeypatch.setattr(Failures, "_places", late)

    assert [each.id for each in Failures("default", "default").look(most=9).found] == [first]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        *(
            ("tasks", value)
            for value in (b"", b"\xff\xfe", b'1 0\n{"task":5}', b'1\n{"task":"\\q","args":[]}')
        ),
        *(("errors", value) for value in (b"", b"\xff", b"[" * 50_000 + b"]" * 50_000)),
        ("errors", b'{"v":1,"errors":[[1,2]]}'),
        ("errors", b'{"v":1,"errors":[["a",{}]]}'),
        ("errors", b'{"v":99,"errors":[["a","b"]]}'),
        ("errors", json.dumps({"v": 1, "errors": [["a\ud800", "b\ud800"]]}).encode()),
    ],
)
def test_what_cannot_be_read_has_no_name_and_hides_no_others(redis: Redis, part: str, value: bytes) -> None:
    [good], [odd] = die("1", kind="OSError"), die("2")
    redis.hset(getattr(keys.BackendKeys("default"), part), odd, value)

    found = {each.id: each for each in Failures("default", "default").look(most=9).found}

    assert found.keys() == {good, odd}
    assert (found[good].name, found[good].error.kind) == ("shop.charge", "OSError")
    assert found[odd].name == ("" if part == "tasks" else "shop.charge")


class Refused(Exception):
    """An exception of a module."""


def raised(error: BaseException) -> TaskFailure:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001  (any is looked at)
        return _failure(caught)


def with_parts() -> ValueError:
    error = ValueError("No: 7")
    error.add_note("In a call of the task send.")
    error.__cause__ = KeyError(1)
    return error


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KeyError(9), "KeyError", "9"),
        (Refused("no: such card"), f"{__name__}.Refused", "no: such card"),
        (Refused(), f"{__name__}.Refused", ""),
        (ValueError("first line\nsecond line"), "ValueError", "first line"),
        (with_parts(), "ValueError", "No: 7"),
        (ExceptionGroup("two", [ValueError(1), KeyError(2)]), "ExceptionGroup", "two (2 sub-exceptions)"),
    ],
)
def test_the_message_is_read_from_the_traceback(error: BaseException, kind: str, message: str) -> None:
    failure = raised(error)

    assert (failure.kind, failure.message) == (kind, message)


def test_tasks_that_have_died_alike_are_one_group(redis: Redis, queue: TaskQueue) -> None:
    for number in range(3):
        die(str(number))
    die("'a'", name="shop.refund")
    die("8", kind="ValueError", count=2)
    die_of_crashes(redis, push_new())
    queue.cancel("default", push_many(4))
    redis.zadd(keys.QueueKeys("default", "default").dead, {b"\xff": 1, b"odd": "inf"})

    assert sorted((kind.rsplit(".")[-1], message, count) for _name, kind, message, count in seen()) == [
        ("", "", 1),
        ("KeyError", "'a'", 1),
        ("KeyError", "…", 3),
        ("TaskCancelled", ANY, 4),
        ("ValueError", "8", 2),
        ("WorkerDied", ANY, 1),
    ]
