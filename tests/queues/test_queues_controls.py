"""What is done to tasks by their ids: cancelled, sent again, deleted; and what workers are told."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import InvalidValue
from components.services.queues import Cancelled, Consumer, NewTask, Resent, State, TaskInfo, TaskQueue, keys
from components.services.queues.queue import CHUNK
from tests.support.monitoring import sent_to
from tests.support.queues import (
    ECHO,
    be_cancelled,
    be_cancelled_as_it_runs,
    be_deleted,
    claim,
    claim_one,
    die,
    die_of_crashes,
    end_lease,
    expire,
    failed,
    found,
    hand_in,
    places,
    push_many,
    push_new,
    server_time,
    succeed,
    succeeded,
    to_retry,
)
from tests.support.snapshots import snapshot
from tests.support.waiting import eventually

CANCELLED = "components.exceptions.TaskCancelled"


def why(task_id: str) -> list[str]:
    return [error.exception_class_path for error in found(task_id).errors]


def test_a_dead_task_that_is_sent_again_has_all_attempts_and_its_errors(
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


def test_a_resent_task_stands_behind_those_that_waited(queue: TaskQueue) -> None:
    first, second = push_many(2)
    consumer = Consumer()
    hand_in(consumer, failed(claim_one(consumer)))
    later = server_time() + timedelta(milliseconds=1)
    assert eventually(lambda: server_time() > later)

    queue.resend("default", [first])

    assert places() == {"ready": [second, first]}
    age = queue.stats("default").oldest_age
    assert age < 60


def test_an_id_alone_is_enough_and_may_be_a_uuid(queue: TaskQueue, redis: Redis) -> None:
    waiting, done = push_new(queue="mail"), push_new(queue="rare")
    consumer = Consumer()
    hand_in(consumer, succeeded(claim_one(consumer, "rare")))
    redis.delete(keys.QueueKeys("default", "rare").successful)  # the list is bounded
    given = [UUID(waiting), done.upper(), "nothing", ""]

    assert [queue.get(each).id for each in given[:2]] == [waiting, done]
    assert queue.wait_for(UUID(done), wait=0).state == "successful"
    with pytest.raises(InvalidValue, match="give a list"):
        queue.cancel(UUID(waiting))  # type: ignore[call-overload]
    assert queue.cancel(given) == Cancelled(at_once=1, asked=0)
    assert queue.resend(given) == Resent(sent=1, refused=[])
    assert queue.cancel("mail", given[:1]) == Cancelled(at_once=1, asked=0)
    assert queue.delete(given) == 2
    assert [queue.get(each) for each in given] == [None] * 4
    assert queue.push_many([NewTask(name=ECHO, id=str(UUID(done)))])[0].id == done


def test_a_living_task_is_not_resent(queue: TaskQueue, one_of_each: dict[State, str], redis: Redis) -> None:
    before = snapshot(redis)

    living = [task_id for state, task_id in one_of_each.items() if state != "dead"]
    queue.resend("default", [*living, "nothing"])

    assert queue.resend("mail", [one_of_each["dead"]]).refused == []
    assert snapshot(redis) == before


def test_a_running_task_is_not_deleted(queue: TaskQueue, one_of_each: dict[State, str], redis: Redis) -> None:
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
    told.is_quiet = True
    told.renew(["default"])
    assert {info.id: info.is_quiet for info in queue.workers()} == {told.id: True, other.id: False}
    for worker in (told, other):
        worker.leave()
    assert redis.dbsize() == 0


@pytest.mark.parametrize(
    ("when", "starts", "crashes", "reasons"),
    [
        ("ready", 0, 0, [CANCELLED]),
        ("delayed", 0, 0, [CANCELLED]),
        ("to be tried again", 1, 0, ["builtins.ValueError", CANCELLED]),
        ("running, and fails", 1, 0, ["builtins.ValueError", CANCELLED]),
        ("running, and would be tried again", 1, 0, ["builtins.ValueError", CANCELLED]),
        ("running, and is given back", 0, 0, [CANCELLED]),
        ("running, and its worker dies", 1, 1, [CANCELLED]),
    ],
)
def test_a_cancelled_task_is_dead_and_not_started_again(
    queue: TaskQueue, redis: Redis, when: str, starts: int, crashes: int, reasons: list[str]
) -> None:
    before = server_time()
    task_id = push_new(delay=60 if when == "delayed" else None)
    consumer = Consumer()
    claimed = claim_one(consumer) if when not in ("ready", "delayed") else None
    if when == "to be tried again":
        hand_in(consumer, to_retry(claimed, 60))
    started = found(task_id)
    is_running = when.startswith("running")

    assert queue.cancel("default", [task_id]) == Cancelled(at_once=not is_running, asked=is_running)
    redis.delete(keys.QueueKeys("default", "default").wake)
    if "fails" in when or ("tried again" in when and is_running):
        assert hand_in(consumer, failed(claimed) if "fails" in when else to_retry(claimed)).lost == []
    elif "given back" in when:
        assert consumer.release([claimed], delay=5) == 1
        assert places() == {"running": [task_id]}
        assert redis.llen(keys.QueueKeys("default", "default").wake) == 1
    elif "dies" in when:
        end_lease(redis, task_id)

    assert claim(Consumer(), 5) == []
    assert places() == {"dead": [task_id]}
    [info] = queue.tasks("default", "dead")
    assert info == found(task_id)
    assert (info.is_cancelled, info.starts, info.crashes) == (True, starts, crashes)
    assert info.worker_ids == (consumer.id,) * starts
    assert why(task_id) == reasons
    if starts:
        assert (info.started_at, info.last_attempted_at) == (started.started_at, started.last_attempted_at)
    assert max(before, info.last_attempted_at or before) <= info.finished_at <= server_time()


AWAITED = keys.BackendKeys("default").awaited
LONG = 30.0  # seconds: longer than any test

End = Callable[[Redis, str], object]


@contextmanager
def waiting(redis: Redis, task_id: str, count: int = 1) -> Iterator[list[Future[TaskInfo | None]]]:
    """So many wait for the task, and are blocked."""
    with ThreadPoolExecutor(count) as pool:
        waiters = [pool.submit(TaskQueue().wait_for, task_id, wait=LONG) for _ in range(count)]
        assert eventually(lambda: redis.info("clients")["blocked_clients"] == count)
        yield waiters


ENDS: list[tuple[End, str | None]] = [
    (succeed, "successful"),
    (die, "dead"),
    (die_of_crashes, "dead"),
    (be_cancelled, "dead"),
    (be_cancelled_as_it_runs, "dead"),
    (expire, "dead"),
    (be_deleted, None),
]


@pytest.mark.parametrize(("end", "state"), ENDS, ids=lambda part: getattr(part, "__name__", part))
def test_a_wait_is_woken_by_any_end(queue: TaskQueue, redis: Redis, end: End, state: str | None) -> None:
    task_id = queue.push(ECHO)

    with waiting(redis, task_id) as [waiter]:
        end(redis, task_id)
        info = waiter.result()

    assert info == queue.get(task_id)
    assert (info and info.state) == state
    assert redis.scard(AWAITED) == 0
    assert 0 < redis.ttl(keys.BackendKeys("default").ended(task_id)) <= 60


def test_a_coroutine_is_woken_as_well(queue: TaskQueue, redis: Redis) -> None:
    task_id = queue.push(ECHO)

    async def wait() -> TaskInfo | None:
        return await TaskQueue().await_for(task_id, wait=LONG)

    with waiting(redis, task_id) as [waiter], ThreadPoolExecutor(1) as pool:
        coroutine = pool.submit(asyncio.run, wait())
        assert eventually(lambda: redis.info("clients")["blocked_clients"] == 2)
        succeed(redis, task_id)
        answers = [waiter.result(), coroutine.result()]

    assert answers == [found(task_id)] * 2
    assert redis.scard(AWAITED) == 0


@pytest.mark.parametrize("wait", [0.02, 0, -1])
@pytest.mark.parametrize("claims", [False, True])
def test_a_task_that_ends_not_in_time_is_told_as_it_is(queue: TaskQueue, claims: bool, wait: float) -> None:
    task_id = queue.push(ECHO)
    if claims:
        claim_one(Consumer())

    info = queue.wait_for(task_id, wait=wait)

    assert info == found(task_id)
    assert info.state == ("running" if claims else "ready")


@pytest.mark.parametrize("end", [succeed, die, be_cancelled, be_deleted], ids=lambda end: end.__name__)
def test_a_task_that_has_ended_before_is_told_at_once(queue: TaskQueue, redis: Redis, end: End) -> None:
    task_id = queue.push(ECHO)
    end(redis, task_id)

    assert queue.wait_for(task_id, wait=LONG) == queue.get(task_id)

    assert redis.scard(AWAITED) == 0
    assert not redis.exists(keys.BackendKeys("default").ended(task_id))


def test_the_end_of_a_task_that_was_sent_again_is_its_next_one(queue: TaskQueue, redis: Redis) -> None:
    """A token of the first end may be left; it wakes once, and not again and again."""
    task_id = queue.push(ECHO)
    with waiting(redis, task_id) as [waiter]:
        die(redis, task_id)
        waiter.result()
    assert redis.llen(keys.BackendKeys("default").ended(task_id)) == 1
    queue.resend("default", [task_id])

    with waiting(redis, task_id) as [waiter]:
        assert not redis.exists(keys.BackendKeys("default").ended(task_id))
        succeed(redis, task_id)
        info = waiter.result()

    assert info == found(task_id)
    assert places() == {"successful": [task_id]}
