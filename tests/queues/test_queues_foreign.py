"""What others left in Redis: it ends among the dead with the reason, or waits for the release that wrote it."""

import json

import pytest
from redis import Redis

from components.exceptions import UnknownFormat
from components.kit.compat import task_backends
from components.services.queues import Consumer, Finished, TaskInfo, TaskQueue, keys
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.inline import InlineExecution
from components.services.queues.worker.runs import Run, ServerClock
from tests.support.queues import (
    ECHO,
    LONG_AGO,
    claim,
    claim_one,
    come_due,
    failed,
    found,
    hand_in,
    places,
    push_many,
    step,
    succeeded,
)

KEYS = keys.QueueKeys("default", "default")
TASKS, RUNS, ERRORS, READY = KEYS.tasks, KEYS.runs, KEYS.errors, KEYS.ready
FOREIGN = "foreign"
FOREIGN_RUNS = [b"", b"garbage", b"1 waiting - many 0 0 0 0", b"1 waiting - 1e400 x", b"1 w t -1 0x10 y z"]
BODY = b'{"task":"tests.tasks.echo","args":[],"kwargs":{}}'
LINE, DEEP = b"1 0 0 0 0 0 - default\n", b"[" * 50_000 + b"]" * 50_000
HEAD = LINE + BODY
FOREIGN_DOCUMENTS = [b"garbage", b"[]", b"{}", b'{"v":1}', DEEP]


def work() -> None:
    """What a worker does with all that is ready, also in a queue that never had a task pushed."""
    backend = task_backends["default"]
    assert isinstance(backend, RedisBackend)
    consumer, clock = Consumer(), ServerClock()
    execution = InlineExecution(backend, clock)
    answer = step(consumer, 100)
    clock.set(answer.now)
    for claimed in answer.claimed:
        finished = execution.run(Run(claimed, consumer, clock))
        if isinstance(finished, Finished):
            hand_in(consumer, finished)
        else:
            consumer.release([claimed], delay=5)


def reason(info: TaskInfo) -> str:
    [error] = info.errors
    return error.traceback


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (None, "no readable record; it begins with b''"),
        (b"garbage", "no readable record; it begins with b'garbage'"),
        (LINE.strip(), "no readable record"),
        (LINE.replace(b" -", b"") + BODY, "no readable record"),
        (b"0" + LINE[1:] + BODY, "no readable record"),
        (b"\xff\xfe\n" + BODY, "can't decode byte 0xff"),
        (b"1 0 0 high 0 0 - default\n" + BODY, "invalid literal"),
        (b"1 99999999999999999999 0 0 0 0 - default\n" + BODY, "OverflowError"),
        (LINE + b"not json", "Expecting value"),
        (LINE + b"{}", "KeyError('task')"),
        (LINE + BODY.replace(b"echo", b"not_a_task"), "is function, not a task"),
        (
            LINE + BODY.replace(b"tests.tasks.echo", b"os.system"),
            "no app in INSTALLED_APPS contains the module 'os'",
        ),
        (LINE + BODY.replace(b"echo", b"gone"), "No task 'tests.tasks.gone'"),
        (LINE + BODY.replace(b'"tests.tasks.echo"', b"5"), "task is int, not str"),
        (LINE + BODY.replace(b"[]", b"5"), "TypeError"),
        (LINE + BODY.replace(b"{}", b"[]"), "kwargs is list, not dict"),
        (LINE + BODY.replace(b"[]", DEEP), "RecursionError"),
    ],
)
def test_an_unreadable_task_dies_with_the_reason(
    queue: TaskQueue, redis: Redis, record: bytes | None, why: str
) -> None:
    redis.zadd(READY, {FOREIGN: LONG_AGO})
    if record is not None:
        redis.hset(TASKS, FOREIGN, record)
    [good] = push_many(1)

    work()

    assert places() == {"dead": [FOREIGN], "successful": [good]}
    [dead] = queue.tasks("default", "dead")
    assert why in reason(dead)
    assert queue.stats("default").dead == 1


@pytest.mark.parametrize("odd", [b"\xff\xfe", b"a b", b"", "é".encode()])
@pytest.mark.parametrize("state", ["ready", "delayed", "running", "dead", "successful"])
def test_an_id_that_is_none_hides_nothing(queue: TaskQueue, redis: Redis, state: str, odd: bytes) -> None:
    good = push_many(2)
    redis.zadd(getattr(KEYS, state), {odd: LONG_AGO})

    shown = [info.id for info in queue.tasks("default", state)]
    assert set(shown) - set(good) == (
        {odd.decode(errors="backslashreplace")} if state != "successful" else set()
    )
    work()
    work()  # what was promoted or taken over first

    assert [each in places()["successful"] for each in good] == [True, True]
    if state != "successful":
        assert redis.zrange(keys.QueueKeys("default", "default").dead, 0, -1) == [odd]
        [dead] = queue.tasks("default", "dead")
        assert "no readable record" in reason(dead)


@pytest.mark.parametrize("run", FOREIGN_RUNS)
@pytest.mark.parametrize("state", ["ready", "running"])
def test_a_foreign_run_record_stops_nobody(redis: Redis, run: bytes, state: str) -> None:
    redis.hset(RUNS, FOREIGN, run)
    redis.zadd(getattr(KEYS, state), {FOREIGN: LONG_AGO})
    [good] = push_many(1)

    work()
    work()

    assert places() == {"dead": [FOREIGN], "successful": [good]}


@pytest.mark.parametrize("run", FOREIGN_RUNS)
@pytest.mark.parametrize("state", ["ready", "delayed"])
def test_a_task_with_a_foreign_run_record_can_be_cancelled_resent_claimed_and_deleted(
    queue: TaskQueue, redis: Redis, run: bytes, state: str
) -> None:
    [task_id] = push_many(1, delay={"ready": 0, "delayed": 60}[state])
    redis.hset(RUNS, task_id, run)

    assert queue.cancel("default", [task_id]).at_once == 1
    assert places() == {"dead": [task_id]}
    [error] = found(task_id).errors
    assert error.exception_class_path == "components.exceptions.TaskCancelled"
    assert queue.resend("default", [task_id]).sent == 1
    redis.hset(RUNS, task_id, run)
    consumer = Consumer()
    claimed = claim_one(consumer)
    assert (claimed.starts, claimed.crashes) == (1, 0)
    consumer.release([claimed])
    assert queue.delete("default", "ready", [task_id]) == 1
    assert places() == {}
    assert not redis.exists(TASKS, RUNS)


def test_an_unreadable_task_is_cancelled_and_deleted_and_never_resent(queue: TaskQueue, redis: Redis) -> None:
    redis.zadd(READY, {FOREIGN: LONG_AGO})

    assert queue.cancel("default", [FOREIGN]).at_once == 1
    assert places() == {"dead": [FOREIGN]}
    assert queue.resend("default", [FOREIGN]).sent == 0
    assert places() == {"dead": [FOREIGN]}
    assert queue.delete("default", "dead", [FOREIGN]) == 1
    assert places() == {}
    assert not redis.exists(RUNS)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        *((part, value) for part in ("errors", "progress") for value in FOREIGN_DOCUMENTS),
        ("errors", b'{"v":1,"errors":[5]}'),
        ("progress", b'{"v":1,"done":"x","total":1,"note":"","at":0}'),
        ("progress", b'{"v":1,"done":NaN,"total":1,"note":"","at":0}'),
    ],
)
def test_foreign_documents_do_not_hide_the_dead(
    queue: TaskQueue, redis: Redis, part: str, value: bytes
) -> None:
    first, second = push_many(2)
    consumer = Consumer()
    hand_in(consumer, *map(failed, claim(consumer, 2)))
    redis.hset(getattr(KEYS, part), second, value)

    listed = {info.id: info for info in queue.tasks("default", "dead")}

    assert listed.keys() == {first, second}
    assert (listed[first].name, listed[second].name) == (ECHO, "")
    assert reason(listed[second])
    with pytest.raises(ValueError, match=r"."):
        queue.get(second)


@pytest.mark.parametrize(
    ("result", "error"),
    [
        *((each, r".") for each in (b"garbage", b"[]", b"{}", b'{"v":1}', b"1", HEAD)),
        *((HEAD + each, r".") for each in (b"\n\n0\n\n", b"\n\n0\n\n\nnull", b"\n1 running t 1\n0\n\nnull")),
        *((HEAD + each, r".") for each in (b"\n\nnever\n\nnull", b"\n\n0\n\nnot json", b"\n\n0\n[]\nnull")),
        *(
            (each, "format 2,")
            for each in (b"2 0;0\n", HEAD + b"\n2 x\n0\n\nnull", HEAD + b'\n\n0\n{"v":2}\nnull')
        ),
    ],
)
def test_a_foreign_or_newer_result_does_not_hide_the_others(
    queue: TaskQueue, redis: Redis, result: bytes, error: str
) -> None:
    first, second = push_many(2)
    consumer = Consumer()
    hand_in(consumer, *map(succeeded, claim(consumer, 2)))
    redis.set(keys.BackendKeys("default").result(second), result)

    listed = {info.id: info for info in queue.tasks("default", "successful")}

    assert set(listed) == {first, second}
    assert listed[first].name == ECHO
    assert error.strip(".,") in reason(listed[second])
    with pytest.raises(UnknownFormat if "format" in error else ValueError, match=error):
        queue.get(second)


@pytest.mark.parametrize("state", ["ready", "delayed", "running"])
@pytest.mark.parametrize("score", ["inf", "1e300", "-1e300", "1.5"])
def test_a_foreign_score_hides_nothing(queue: TaskQueue, redis: Redis, score: str, state: str) -> None:
    [task_id] = push_many(1)
    redis.hset(TASKS, FOREIGN, LINE + BODY)
    redis.zadd(getattr(KEYS, state), {FOREIGN: float(score)})

    assert FOREIGN in [info.id for info in queue.tasks("default", state)]
    assert getattr(queue.stats("default"), state) == 1 + (state == "ready")
    assert queue.get(FOREIGN)
    assert task_id in [task.id for task in claim(Consumer(), 5)]


@pytest.mark.parametrize(
    "about",
    [b"garbage", b"[]", b"{}", b"5", b"[" * 50_000, b'{"kind": "worker", "host": "a", "pid": "x"}', b"\xff"],
)
def test_a_worker_that_cannot_be_read_hides_no_other(queue: TaskQueue, redis: Redis, about: bytes) -> None:
    good, odd, future = workers = Consumer(), Consumer(), Consumer()
    for consumer in workers:
        consumer.renew(["default"])
    redis.hset(keys.BackendKeys("default").worker(odd.id), "about", about)
    redis.zadd(keys.BackendKeys("default").workers, {b"\xff\xfe": 1e15})
    redis.zincrby(keys.BackendKeys("default").workers, 1e11, future.id)
    redis.sadd(keys.BackendKeys("default").names, b"\xff\xfe")

    assert {worker.id: (worker.kind, worker.alive) for worker in queue.workers()} == {
        good.id: ("worker", True),
        odd.id: ("unreadable", False),
        future.id: ("worker", False),
    }
    assert queue.names() == [stats.name for stats in queue.all_stats()] == []


def test_a_record_of_a_newer_release_is_left_and_no_start_counts(queue: TaskQueue, redis: Redis) -> None:
    first, second, third = push_many(3)
    record = newer(redis, second)
    for _ in range(5):
        work()
        assert places() == {"successful": [third, first], "delayed": [second]}
        come_due(redis, second)

    assert redis.hget(TASKS, second) == record
    assert not redis.hexists(RUNS, second)
    with pytest.raises(UnknownFormat, match="format 2,"):
        queue.get(second)
    redis.hset(ERRORS, second, json.dumps({"v": 2, "failures": {}}))
    redis.hset(TASKS, second, b"1 " + record[2:].replace(b";", b" "))
    work()
    assert places()["delayed"] == [second]
    with pytest.raises(UnknownFormat, match="format 2,"):
        queue.get(second)


def newer(redis: Redis, task_id: str) -> bytes:
    """The record of the task, written by the next release."""
    record = b"2 " + redis.hget(TASKS, task_id)[2:].replace(b" ", b";")
    redis.hset(TASKS, task_id, record)
    return record
