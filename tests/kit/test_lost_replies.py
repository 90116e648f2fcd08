"""
A script whose reply was lost is sent again. So each one that changes something has a scenario in which all calls
are sent twice: the second call changes nothing, and gives the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.services.geo.importing import activate, put
from components.services.geo.keys import TableKeys
from components.services.geo.layout import Manifest
from components.services.queues import Consumer, NewTask, TaskQueue
from components.services.semaphores import Semaphore
from components.testing import redis_at
from tests.support.declared import SCRIPTS
from tests.support.proxy import LossyProxy
from tests.support.queues import (
    ECHO,
    claim,
    claim_one,
    end_lease,
    failed,
    hand_in,
    ids,
    places,
    push_many,
    succeeded,
    to_retry,
)
from tests.support.repeating import each_script_twice
from tests.support.scenarios import SCENARIOS, imported
from tests.support.semaphores import let_pass
from tests.support.waiting import eventually


def changing(redis: Redis) -> set[str]:
    """Return the names of the scripts that write."""
    commands = redis.command()
    found = set()
    for name, script in SCRIPTS.items():
        called = {command.lower() for command in re.findall(r'redis\.call\("(\w+)"', script.source)}
        assert called, name
        if any("write" in commands[each]["flags"] for each in called):
            found.add(name)
    return found


@pytest.mark.parametrize("service", sorted({name.partition("/")[0] for name in SCRIPTS}))
def test_a_call_that_is_repeated_changes_nothing_and_is_answered_alike(redis: Redis, service: str) -> None:
    seen = set()
    for scenario in SCENARIOS[service]:
        redis.flushall()
        with each_script_twice(redis) as called:
            scenario(redis)
        seen |= called

    assert {name for name in changing(redis) if name.startswith(f"{service}/")} <= seen


def repeated_after(redis: Redis, act: Callable[[], Any], meanwhile: Callable[[], object]) -> Any:
    """Return the answer to *act*, the first call of which is repeated after *meanwhile*."""
    with each_script_twice(redis, between=meanwhile):
        return act()


@pytest.mark.parametrize(
    "task", [{}, {"unique": "a"}, {"tick": ("hourly", datetime(2026, 1, 1, tzinfo=UTC))}]
)
@pytest.mark.parametrize(("end", "state"), [(succeeded, "successful"), (failed, "dead")])
def test_a_task_that_ended_before_its_push_is_repeated_is_not_stored_again(
    redis: Redis, task: dict[str, Any], end: Callable[[Any], Any], state: str
) -> None:
    consumer = Consumer()

    [info] = repeated_after(
        redis,
        lambda: TaskQueue().push_many([NewTask(name=ECHO, **task)]),
        lambda: hand_in(consumer, end(claim_one(consumer))),
    )

    assert places() == {state: [info.id]}


def test_what_has_another_worker_since_stays_theirs(redis: Redis) -> None:
    """After a retry, a release and the end of a lease, another worker claims the task before the call is repeated."""
    [task_id] = push_many(1)
    first, second, third, slow = (Consumer() for _ in range(4))
    finished = to_retry(claim_one(first))

    said = repeated_after(redis, lambda: hand_in(first, finished), lambda: claim_one(second))
    assert said.lost == []
    info = TaskQueue().get(task_id)
    assert info is not None
    assert (info.worker_ids, len(info.errors)) == ((first.id, second.id), 1)

    redis.flushall()
    [task_id] = push_many(1)
    claimed = claim(third)
    repeated_after(redis, lambda: third.release(claimed), lambda: claim_one(second))
    assert places() == {"running": [task_id]}
    info = TaskQueue().get(task_id)
    assert info is not None
    assert info.worker_ids[-1] == second.id

    def take_over() -> None:
        end_lease(redis, task_id)
        claim_one(first)

    redis.flushall()
    [task_id] = push_many(1)
    assert repeated_after(redis, lambda: claim(slow), take_over) == []
    assert places() == {"running": [task_id]}


def test_a_version_that_was_made_current_before_another_is_not_made_current_again(redis: Redis) -> None:
    for number in range(2):
        put("default", "new", number, b"part")
    table = Manifest(1, 1, 10, 5, 10, ["digest"] * 2, "test")

    def act() -> list[int]:
        return activate("default", "new", table)

    assert repeated_after(redis, act, lambda: imported("newer")) == []
    assert redis.hget(TableKeys("default").current, "version") == b"newer"


def test_a_permit_is_released_and_granted_once(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=1, lease=10)
    permit = semaphore.acquire()

    repeated_after(redis, permit.release, semaphore.acquire)
    assert permit.is_released
    assert semaphore.info().used == 1

    let_pass(redis, "api", 10)
    permit = repeated_after(redis, semaphore.acquire, lambda: let_pass(redis, "api", 10))
    permit.refresh()
    info = semaphore.info()
    assert (info.used, info.granted, info.expired) == (1, 4, 2)


@pytest.fixture
def proxy(redis_server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


@pytest.mark.parametrize("lost", [1, 2])
def test_an_answer_that_came_too_late_is_given_again(proxy: LossyProxy, redis: Redis, lost: int) -> None:
    """A worker sends its request again after an outage, however often its script was sent before."""
    tasks = push_many(4)
    consumer = Consumer()
    request = consumer.request({"default": 2}, 2, [succeeded(claim_one(consumer))])
    with redis_at(proxy.url):
        consumer.advance(request)
        proxy.lose_replies(to="EVALSHA", times=lost)
        try:
            step = consumer.advance(request)
        except RedisUnavailable:
            step = consumer.advance(request)

    assert proxy.lost == lost
    assert ids(step.claimed) == tasks[1:3]
    assert places() == {"ready": tasks[3:], "running": tasks[1:3], "successful": tasks[:1]}


def test_a_waiting_request_keeps_its_place_when_its_reply_is_lost(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    semaphore = Semaphore("api", limit=1)
    permit = semaphore.acquire()
    with ThreadPoolExecutor(1) as pool, redis_at(proxy.url):
        proxy.lose_replies(to="BLPOP", times=2)
        waiting = pool.submit(semaphore.acquire, wait=20)
        assert eventually(lambda: proxy.lost == 2)
        with redis_at(redis_server.url):
            permit.release()

            assert waiting.result(20).remaining > 0
    assert semaphore.info().granted == 2
