"""Attempts and leases: failed tasks are tried again, lost ones are taken over; which dead tasks have died alike."""

import json
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from redis import Redis

from components.services.queues import Consumer, Finished, NewTask, TaskFailure, TaskQueue, keys
from components.services.queues.failures import Failures, Place, alike, groups
from components.services.queues.formats import MOST_ERRORS, write_errors
from components.services.queues.worker.execution import _failure
from tests.support.queues import (
    ECHO,
    age,
    claim,
    claim_one,
    come_due,
    die_of_crashes,
    end_lease,
    failed,
    found,
    hand_in,
    ids,
    options,
    places,
    push_many,
    push_new,
    server_time,
    step,
    succeeded,
    to_retry,
)

MILLISECOND, MICROSECOND = timedelta(milliseconds=1), timedelta(microseconds=1)


def fail(redis: Redis, task_id: str, times: int = 1) -> list[str]:
    """Let attempts of the task fail, and each be due; ids of the workers."""
    workers = []
    for number in range(times):
        consumer = Consumer()
        hand_in(consumer, to_retry(claim_one(consumer), 60, f"attempt {number + 1}"))
        come_due(redis, task_id)
        workers.append(consumer.id)
    return workers


@pytest.mark.parametrize("succeeds", [True, False])
def test_the_story_of_all_attempts_is_told_at_the_end(queue: TaskQueue, redis: Redis, succeeds: bool) -> None:
    task_id = queue.push(ECHO)
    workers = fail(redis, task_id, 2)
    consumer = Consumer()
    claimed = claim_one(consumer)
    tried = claimed.read()

    hand_in(consumer, succeeded(claimed) if succeeds else failed(claimed, "the last"))

    info = found(task_id)
    assert info.worker_ids == (*workers, consumer.id)
    assert (info.starts, info.crashes) == (3, 0)
    assert (info.started_at, info.last_attempted_at) == (tried.started_at, tried.last_attempted_at)
    assert info.finished_at >= info.last_attempted_at
    messages = ["attempt 1", "attempt 2"] if succeeds else ["attempt 1", "attempt 2", "the last"]
    assert [error.traceback for error in info.errors] == messages


def test_the_latest_of_many_errors_are_kept(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)

    fail(redis, task_id, MOST_ERRORS + 3)

    messages = [error.traceback for error in found(task_id).errors]
    assert messages == [f"attempt {number}" for number in range(4, MOST_ERRORS + 4)]


def test_a_retry_at_once_may_be_claimed_in_the_same_step(queue: TaskQueue) -> None:
    task_id = queue.push(ECHO)
    consumer = Consumer()
    early = claim_one(consumer)

    [late] = step(consumer, 1, finished=[to_retry(early)]).claimed

    assert (late.id, late.starts) == (task_id, 2)
    assert hand_in(consumer, succeeded(early)).lost == [task_id]
    assert places() == {"running": [task_id]}


@pytest.mark.parametrize(("crashes", "state"), [(1, "ready"), (1, "delayed"), (2, "dead")])
def test_a_late_success_counts_unless_somebody_else_has_ended_the_task(
    queue: TaskQueue, redis: Redis, crashes: int, state: str
) -> None:
    """A task that holds the GIL for longer than its lease is not run until it is given up."""
    task_id = queue.push(ECHO)
    with options(max_crashes=2):
        held = []
        for _ in range(crashes):
            held.append((consumer := Consumer(), claim_one(consumer)))
            end_lease(redis, task_id)
            step(Consumer(), 0)
        if state == "delayed":  # somebody else has tried in vain
            hand_in(another := Consumer(), to_retry(claim_one(another), 3_600))
        assert places() == {state: [task_id]}

        assert [hand_in(consumer, failed(claimed)).lost for consumer, claimed in held] == [
            [task_id]
        ] * crashes
        consumer, claimed = held[0]
        assert hand_in(consumer, succeeded(claimed, "done")).lost == []
        assert [hand_in(consumer, succeeded(claimed)).lost for consumer, claimed in held] == [
            [task_id]
        ] * crashes

    assert places() == {"successful": [task_id]}
    assert found(task_id).state == "successful"


@pytest.mark.parametrize("lease", [5, 600])
def test_a_claim_lasts_as_long_as_the_task_says_if_repeated_too(queue: TaskQueue, lease: int) -> None:
    own, common = push_new(lease=lease), push_new()
    consumer = Consumer()
    request = consumer.request({"default": 2}, 2)

    for _ in range(2):
        with options(lease=20):
            now = consumer.advance(request).now
        ends = [found(task_id).lease_expires_at for task_id in (own, common)]
        assert [round((end - now) / MILLISECOND, -1) for end in ends if end] == [lease * 1_000, 20_000]


def test_renewing_begins_the_tasks_own_lease_anew(redis: Redis) -> None:
    own, common = push_new(lease=600, unique="a", queue="mail"), push_new()
    consumer = Consumer()
    claimed = claim(consumer, 2, ["mail", "default"])
    end_lease(redis, own, queue="mail")
    end_lease(redis, common)

    before = server_time()
    with options(lease=200):
        consumer.renew(["mail", "default"], claimed)

    now = server_time()
    for task_id, lease in ((own, 600), (common, 200)):
        ends = found(task_id).lease_expires_at
        assert before <= ends - timedelta(seconds=lease) + MILLISECOND <= now + MILLISECOND


def test_what_a_clock_stored_that_was_a_day_ahead_becomes_as_if_it_were_stored_now(redis: Redis) -> None:
    of_all, of_queue = keys.BackendKeys("default"), keys.QueueKeys("default", "default")
    silent, consumer, day = Consumer(), Consumer(), timedelta(days=1)
    silent.renew(["default"])
    retried, parked, *_ended = push_many(4)
    leased, own, longer = push_new(), push_new(lease=7_200), push_new()
    planned = push_new(delay=2 * 86_400)
    claimed = claim(consumer, 7)
    assert consumer.park("limit", [claimed[1]]) == 1
    hand_in(consumer, to_retry(claimed[0], seconds=60), failed(claimed[2]), succeeded(claimed[3]))
    ready = push_new()
    for key in (of_all.workers, of_queue.ready, of_queue.dead, of_queue.successful):
        age(redis, key, -day)
    for task in (retried, parked):
        redis.zincrby(of_queue.delayed, day // MICROSECOND, task)
    for task, ahead in ((leased, 31 * 365 * day), (own, day), (longer, timedelta(minutes=50))):
        redis.zincrby(of_queue.running, ahead / MILLISECOND, task)
    run = redis.hget(of_all.runs, retried).split(b" ")
    run[6] = b"%d" % (int(run[6]) + day // MICROSECOND)
    redis.hset(of_all.runs, retried, b" ".join(run))

    consumer.renew(["default"])
    for _turn in range(2):
        consumer.trim("default")

    now = server_time()
    due = {task: found(task).due_at - now for task in (retried, parked, planned)}
    assert timedelta(seconds=50) < due[retried] < timedelta(seconds=62)
    assert timedelta(seconds=4) < due[parked] <= timedelta(seconds=6)
    assert due[planned] > 1.9 * day
    ends = [(found(task).lease_expires_at - now).total_seconds() for task in (leased, own, longer)]
    assert ends == pytest.approx(
        [30, 7_200, 3_030], abs=25
    )  # workers of another release may give longer ones
    later = push_new()
    assert ids(claim(Consumer(), 2)) == [ready, later]
    for key in (of_all.workers, of_queue.dead, of_queue.successful):
        assert redis.zrange(key, -1, -1, withscores=True)[0][1] <= server_time().timestamp() * 1_000 + 1


def test_a_task_of_a_queue_that_is_not_asked_for_can_be_acked_and_ended_when_its_worker_says(
    redis: Redis,
) -> None:
    mail, other = push_many(2, queue="mail")
    consumer, ended_at = Consumer(), server_time() + timedelta(seconds=5)

    finished = failed(claim_one(consumer, "mail"))._replace(number=ended_at)
    assert step(consumer, 5, ["default"], [finished]).claimed == []

    assert places("mail") == {"ready": [other], "dead": [mail]}
    assert found(mail).finished_at == ended_at


def test_a_thousand_are_claimed_and_handed_in_by_one_request_and_more_by_the_next(queue: TaskQueue) -> None:
    pushed = push_many(1_200)
    consumer = Consumer()
    claimed = claim(consumer, 1_200)
    answer = consumer.advance(
        consumer.request({"default": 1_200}, 1_200, [succeeded(task) for task in claimed])
    )

    assert ids(claimed) == pushed[:1_000]
    assert ids(answer.claimed) == pushed[1_000:]
    assert (queue.stats("default").successful, queue.stats("default").running) == (1_000, 200)


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
