"""
A script whose reply was lost is sent again. So each one that changes something has a case here: it is run
once undisturbed and once with its reply lost, and leaves the same state and gives the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

import components
from components.client import get_client
from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.scripts import Script
from components.services.queues import Claimed, Consumer, NewTask, TaskQueue, Ticks
from components.services.queues.consumers import Request
from components.testing import empty, redis_at
from tests.support.proxy import LossyProxy
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    come_due,
    end_lease,
    failed,
    hand_in,
    ids,
    places,
    push_many,
    succeeded,
)
from tests.support.snapshots import alike, snapshot
from tests.support.waiting import eventually

LUA = Path(components.__file__).parent / "lua"
SCRIPTS = sorted(str(path.relative_to(LUA).with_suffix("")) for path in LUA.rglob("*.lua"))

#: Prepares something, and returns what is then done while the reply gets lost.
Case = Callable[[Redis], Callable[[], Any]]


def push(redis: Redis) -> Callable[[], Any]:
    later = [NewTask(name=ECHO, args=[number], queue="mail", delay=60) for number in range(3)]
    now = [NewTask(name=ECHO, args=[number], priority=number) for number in range(3)]
    ticks = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 2)]
    periodic = [NewTask(name=ECHO, at=tick, tick=("nightly", tick)) for tick in ticks]
    return lambda: TaskQueue().push_many([*later, *now, *periodic])


def declare(redis: Redis) -> Callable[[], Any]:
    Ticks().declare(["old"])
    return lambda: Ticks().declare(["old", "new"])


def advance(redis: Redis) -> Callable[[], Any]:
    consumer, dying = Consumer(), Consumer()
    push_many(9)
    good, bad, abandoned, taken = claim(consumer, 4)
    [lost] = claim(dying, 1)
    end_lease(redis, abandoned.id, lost.id, taken.id)
    come_due(redis, *push_many(2, delay=60))
    claim_one(Consumer())
    request = consumer.request({"default": 3}, 3, [succeeded(good), failed(bad), failed(taken), failed(lost)])
    return lambda: [consumer.advance(request).claimed, consumer.advance(request).lost]


def release(redis: Redis, delay: float = 0) -> Callable[[], Any]:
    consumer = Consumer()
    push_many(4)
    claimed = claim(consumer, 3)

    def act() -> None:
        consumer.release(claimed, delay=delay)  # its count is that of the last sending

    return act


def release_later(redis: Redis) -> Callable[[], Any]:
    return release(redis, delay=60)


def renew(redis: Redis) -> Callable[[], Any]:
    consumer = Consumer()
    push_many(3)
    claimed = claim(consumer, 2)
    end_lease(redis, claimed[0].id)
    claim_one(Consumer())
    return lambda: consumer.renew(["default"], claimed)


CASES: dict[str, list[Case]] = {
    "queues/advance": [advance],
    "queues/declare": [declare],
    "queues/push": [push],
    "queues/release": [release, release_later],
    "queues/renew": [renew],
}


@pytest.fixture
def proxy(redis_server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_that_changes_something_has_a_case(redis: Redis, script: str) -> None:
    source = (LUA / f"{script}.lua").read_text()
    called = {command.lower() for command in re.findall(r'redis\.call\("(\w+)"', source)}
    commands = redis.command()
    changes = any("write" in commands[name]["flags"] for name in called)

    assert called
    assert changes == bool(CASES.get(script))


def test_every_case_is_one_of_a_script() -> None:
    assert CASES.keys() <= set(SCRIPTS)


@pytest.mark.parametrize("lost", ["EVALSHA", "EVAL\r\n"], ids=["known", "unknown to the server"])
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.__name__) for cases in CASES.values() for case in cases]
)
def test_a_lost_reply_changes_nothing(
    redis_server: EmbeddedServer, proxy: LossyProxy, case: Case, lost: str
) -> None:
    undisturbed = _outcome(redis_server, proxy, case, lost="")

    disturbed = _outcome(redis_server, proxy, case, lost=lost)

    assert proxy.lost == 1
    assert disturbed == undisturbed


def _outcome(server: EmbeddedServer, proxy: LossyProxy, case: Case, *, lost: str) -> list[str]:
    with empty(server) as redis:
        act = case(redis)
        if lost == "EVAL\r\n":
            redis.script_flush()
        with redis_at(proxy.url):
            if lost:
                proxy.lose_replies(to=lost)
            answer = act()
        return alike({b"answer": answer, **snapshot(redis)})


@pytest.mark.parametrize("lost", [1, 2])
def test_an_answer_that_came_too_late_is_given_again(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis, lost: int
) -> None:
    """A worker sends its request again after an outage, however often its script was sent before."""
    tasks = push_many(4)
    consumer = Consumer()
    request = consumer.request({"default": 2}, 2, [succeeded(claim_one(consumer))])
    with redis_at(proxy.url):
        consumer.advance(request)
        proxy.lose_replies(to="EVALSHA", times=lost)

        again = ids(_advance_until_answered(consumer, request))

    assert proxy.lost == lost
    assert again == tasks[1:3]
    assert places() == {"ready": tasks[3:], "running": tasks[1:3], "successful": tasks[:1]}


def _advance_until_answered(consumer: Consumer, request: Request) -> list[Claimed]:
    try:
        return consumer.advance(request).claimed
    except RedisUnavailable:
        return consumer.advance(request).claimed


def _meanwhile(
    server: EmbeddedServer, proxy: LossyProxy, act: Callable[[], Any], meanwhile: Callable[[], object]
) -> Any:
    """The answer to *act*, whose reply was lost silently; *meanwhile* happens before it is sent again."""
    for name in SCRIPTS:
        get_client().script_load(Script(name).source)
    with ThreadPoolExecutor(1) as pool, redis_at(proxy.url, SOCKET_TIMEOUT=0.5):
        proxy.lose_replies(to="EVALSHA", silently=True)
        answer = pool.submit(act)
        assert eventually(lambda: proxy.lost)
        with redis_at(server.url):
            meanwhile()
        return answer.result()


def test_a_task_that_was_finished_before_its_push_is_repeated_is_not_stored_again(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    consumer = Consumer()

    task_id = _meanwhile(
        redis_server,
        proxy,
        lambda: TaskQueue().push(ECHO),
        lambda: hand_in(consumer, succeeded(claim_one(consumer))),
    )

    assert places() == {"successful": [task_id]}


def test_a_tick_whose_task_was_finished_before_its_push_is_repeated_was_not_taken_by_another(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    consumer = Consumer()
    tick = NewTask(name=ECHO, tick=("nightly", datetime(2026, 1, 1, tzinfo=UTC)))

    [info] = _meanwhile(
        redis_server,
        proxy,
        lambda: TaskQueue().push_many([tick]),
        lambda: hand_in(consumer, succeeded(claim_one(consumer))),
    )

    assert info is not None
    assert places() == {"successful": [info.id]}


def test_a_task_that_died_before_its_push_is_repeated_is_not_stored_again(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    consumer = Consumer()

    task_id = _meanwhile(
        redis_server,
        proxy,
        lambda: TaskQueue().push(ECHO),
        lambda: hand_in(consumer, failed(claim_one(consumer))),
    )

    assert places() == {"dead": [task_id]}


def test_what_was_claimed_by_another_since_is_not_given_back_twice(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    [task_id] = push_many(1)
    consumer, other = Consumer(), Consumer()
    claimed = claim(consumer)

    _meanwhile(redis_server, proxy, lambda: consumer.release(claimed), lambda: claim_one(other))

    assert places() == {"running": [task_id]}
    info = TaskQueue().get(task_id)
    assert info is not None
    assert info.worker_ids == (other.id,)


def test_what_was_taken_over_since_is_not_claimed_twice(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    [task_id] = push_many(1)
    slow, fast = Consumer(), Consumer()

    def take_over() -> None:
        end_lease(redis, task_id)
        claim_one(fast)

    claimed = _meanwhile(redis_server, proxy, lambda: claim(slow), take_over)

    assert claimed == []
    assert places() == {"running": [task_id]}
