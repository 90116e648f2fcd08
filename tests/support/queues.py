"""
Helpers for tests of the task queue.

No test sleeps: what should be old or due gets an earlier instant in Redis.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, get_args

from django.test.utils import override_settings
from redis import Redis

from components.conf import queue_options
from components.services.queues import (
    Claimed,
    Consumer,
    Finished,
    NewTask,
    State,
    Step,
    TaskFailure,
    TaskInfo,
    TaskQueue,
    keys,
)
from components.services.queues.facts import to_us
from components.services.queues.formats import write_errors, write_result

STATES: tuple[State, ...] = get_args(State)
ECHO = "tests.tasks.echo"
LONG_AGO = 1  # as a score: the first millisecond, or microsecond, of 1970


def options(**options: Any) -> AbstractContextManager[Any]:
    """Set OPTIONS of the alias "default" in a with block; by default, a failure is final."""
    given = {"max_attempts": 1, **options}
    backend = {"BACKEND": "components.tasks.RedisBackend", "QUEUES": [], "OPTIONS": given}
    return override_settings(TASKS={"default": backend})


def step(
    consumer: Consumer,
    want: int = 1,
    queues: Sequence[str] | Mapping[str, int] = ("default",),
    finished: Sequence[Finished] = (),
) -> Step:
    """Call advance() once, with *queues* in strict order or with their shares."""
    shares = queues if isinstance(queues, Mapping) else dict.fromkeys(queues, want)
    return consumer.advance(consumer.request(shares, want, finished))


def claim(
    consumer: Consumer, want: int = 1, queues: Sequence[str] | Mapping[str, int] = ("default",)
) -> list[Claimed]:
    return step(consumer, want, queues).claimed


def claim_one(consumer: Consumer, queue: str = "default") -> Claimed:
    [claimed] = claim(consumer, 1, [queue])
    return claimed


def hand_in(consumer: Consumer, *finished: Finished) -> Step:
    """Acknowledge a task, and claim nothing."""
    return step(consumer, 0, [], finished)


def succeeded(claimed: Claimed, value: Any = None) -> Finished:
    finished_at = claimed.read().last_attempted_at
    assert finished_at
    document = write_result(claimed.record, claimed.run, claimed.errors, finished_at, json.dumps(value))
    return Finished(claimed, "successful", queue_options("default").result_ttl, document)


def failed(claimed: Claimed, message: str = "no") -> Finished:
    ended_at = claimed.read().last_attempted_at
    assert ended_at
    errors = [*claimed.read().errors, TaskFailure("builtins.ValueError", message)]
    return Finished(claimed, "dead", ended_at, write_errors(errors))


def to_retry(claimed: Claimed, seconds: float = 0.0, message: str = "no") -> Finished:
    errors = [*claimed.read().errors, TaskFailure("builtins.ValueError", message)]
    return Finished(claimed, "retry", seconds, write_errors(errors))


def server_time() -> datetime:
    return step(Consumer(), 0, []).now


def ids(tasks: Iterable[Claimed]) -> list[str]:
    return [task.id for task in tasks]


def found(task_id: str) -> TaskInfo:
    info = TaskQueue().get(task_id)
    assert info is not None
    return info


def push_new(**task: Any) -> str:
    """Push a new task, and return its id or that of the task with its unique key."""
    [info] = TaskQueue().push_many([NewTask(name=ECHO, **task)])
    assert info is not None
    return info.id


def push_many(count: int, *, queue: str = "default", **task: Any) -> list[str]:
    new = [NewTask(name=ECHO, args=[number], queue=queue, **task) for number in range(count)]
    return [info.id for info in TaskQueue().push_many(new) if info]


def come_due(redis: Redis, *task_ids: str, queue: str = "default", at: datetime | None = None) -> None:
    """Make the delayed tasks due, since *at* or since 1970."""
    score = to_us(at) if at else LONG_AGO
    assert redis.zadd(
        keys.QueueKeys("default", queue).delayed, dict.fromkeys(task_ids, score), xx=True, ch=True
    )


def end_lease(redis: Redis, *task_ids: str, queue: str = "default") -> None:
    running = keys.QueueKeys("default", queue).running
    assert redis.zadd(running, dict.fromkeys(task_ids, LONG_AGO), xx=True, ch=True) == len(task_ids)


def age(redis: Redis, key: str, by: timedelta) -> None:
    """Make all milliseconds of a sorted set earlier by this much."""
    for member, score in redis.zrange(key, 0, -1, withscores=True):
        redis.zadd(key, {member: score - by // timedelta(milliseconds=1)})


def places(queue: str = "default") -> dict[State, list[str]]:
    """Return the ids of each state, in the order of the listing, without empty states."""
    listed = {state: ids(TaskQueue().tasks(queue, state, limit=10_000)) for state in STATES}
    return {state: found for state, found in listed.items() if found}


# Ways in which a task ends, each a function of (redis, task_id).


def succeed(redis: Redis, task_id: str) -> None:
    consumer = Consumer()
    hand_in(consumer, succeeded(claim_one(consumer), "yes"))


def die(redis: Redis, task_id: str) -> None:
    consumer = Consumer()
    hand_in(consumer, failed(claim_one(consumer)))


def die_of_crashes(redis: Redis, task_id: str) -> None:
    claim(Consumer())
    end_lease(redis, task_id)
    with options(max_crashes=1):
        step(Consumer(), 0)
    assert found(task_id).state == "dead"


def be_cancelled(redis: Redis, task_id: str) -> None:
    TaskQueue().cancel("default", [task_id])


def be_cancelled_as_it_runs(redis: Redis, task_id: str) -> None:
    consumer = Consumer()
    claimed = claim_one(consumer)
    be_cancelled(redis, task_id)
    hand_in(consumer, to_retry(claimed))


def outlive(redis: Redis, task_id: str) -> None:
    """Make the task older than its time to expire."""
    tasks = keys.BackendKeys("default").tasks
    form, _enqueued, _due, *rest = (redis.hget(tasks, task_id) or b"").split(b" ", 3)
    redis.hset(tasks, task_id, b" ".join([form, b"%d" % LONG_AGO, b"0", *rest]))


def expired(claimed: Claimed) -> Finished:
    return failed(claimed)._replace(outcome="expired", document=write_errors(claimed.read().errors))


def expire(redis: Redis, task_id: str) -> None:
    consumer = Consumer()
    hand_in(consumer, expired(claim_one(consumer)))


def be_deleted(redis: Redis, task_id: str) -> None:
    TaskQueue().delete("default", "ready", [task_id])
