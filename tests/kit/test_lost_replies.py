"""
A script whose reply was lost is sent again. So each one that changes something has a case here: it is run
once undisturbed and once with its reply lost, and leaves the same state and gives the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis import Redis

import components
from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable, StaleFence
from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.scripts import Script
from components.kit.stored import EPOCH
from components.services.geo.keys import TableKeys
from components.services.locks.fences import FencedValue
from components.services.queues import Claimed, Consumer, NewTask, Progress, State, TaskQueue, Ticks
from components.services.queues import keys as queues_keys
from components.services.queues.consumer import Parking, Request
from components.services.semaphores import Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from components.testing import empty, redis_at
from tests.support import (
    lost_books,
    lost_chats,
    lost_counts,
    lost_geo,
    lost_locks,
    lost_logs,
    lost_mail,
    lost_rows,
)
from tests.support.proxy import LossyProxy
from tests.support.queues import (
    ECHO,
    LONG_AGO,
    age,
    claim,
    claim_one,
    come_due,
    end_lease,
    failed,
    hand_in,
    ids,
    options,
    places,
    push_many,
    succeeded,
    to_retry,
)
from tests.support.semaphores import Waiter, let_pass, take
from tests.support.snapshots import alike, snapshot
from tests.support.waiting import eventually

SERVICES = Path(components.__file__).parent / "services"
SCRIPTS = {
    f"{path.parent.parent.name}/{path.stem}": path for path in sorted(SERVICES.glob("*/lua/[!_]*.lua"))
}

#: Prepares something, and returns what is then done while the reply gets lost.
Case = Callable[[Redis], Callable[[], Any]]


def push(redis: Redis) -> Callable[[], Any]:
    later = [NewTask(name=ECHO, args=[number], queue="mail", delay=60) for number in range(3)]
    now = [NewTask(name=ECHO, args=[number], priority=number) for number in range(3)]
    ticks = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 2)]
    periodic = [NewTask(name=ECHO, at=tick, tick=("nightly", tick)) for tick in ticks]
    return lambda: TaskQueue().push_many([*later, *now, *periodic])


def enqueue(redis: Redis) -> Callable[[], Any]:
    return lambda: TaskQueue().push_many([NewTask(name=ECHO, args=[1], queue="mail", priority=7, id="one")])


def enqueue_again(redis: Redis) -> Callable[[], Any]:
    """A task that has succeeded meanwhile."""
    TaskQueue().push_many([NewTask(name=ECHO, id="one")])
    hand_in((consumer := Consumer()), succeeded(*claim(consumer, 1)))
    return lambda: TaskQueue().push_many([NewTask(name=ECHO, id="one")]) and None


def declare(redis: Redis) -> Callable[[], Any]:
    Ticks().declare(["old"])
    return lambda: Ticks().declare(["old", "new"])


def push_guarded(redis: Redis) -> Callable[[], Any]:
    """Unique keys and ticks, new and taken, and one of each twice."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    TaskQueue().push_many([NewTask(name=ECHO, unique="a"), NewTask(name=ECHO, tick=("hourly", noon))])
    tasks = [NewTask(name=ECHO, unique=key) for key in ("a", "b", "b")]
    tasks += [NewTask(name=ECHO, tick=(name, noon)) for name in ("hourly", "daily", "daily")]
    tasks.append(NewTask(name=ECHO, unique="c", tick=("hourly", noon + timedelta(hours=1)), delay=60))
    return lambda: TaskQueue().push_many(tasks)


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


def advance_guarded(redis: Redis) -> Callable[[], Any]:
    """All outcomes, of tasks that are unique, awaited or cancelled, and of their own lease and progress."""
    consumer, queue = Consumer(), TaskQueue()
    tasks = [NewTask(name=ECHO, unique=f"{number}", lease=50) for number in range(7)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    claimed = claim(consumer, 6)
    for task in claimed:
        consumer.progress(task, Progress(1))
        queue.wait_for(task.id, wait=0)
    queue.cancel("default", pushed[3:6])
    end_lease(redis, pushed[5])
    outcomes = [succeeded, failed, to_retry, to_retry, succeeded]
    finished = [end(task) for end, task in zip(outcomes, claimed, strict=False)]
    request = consumer.request({"default": 3}, 3, [*finished, failed(claimed[2])])
    return lambda: [consumer.advance(request).claimed, consumer.advance(request).lost]


def cancel(redis: Redis) -> Callable[[], Any]:
    queue = TaskQueue()
    tasks = [NewTask(name=ECHO, unique=f"{number}", delay=number % 2 * 60) for number in range(6)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    _running, done = claim(Consumer(), 2)
    hand_in(Consumer(), succeeded(done))
    queue.wait_for(pushed[-1], wait=0)
    return lambda: queue.cancel("default", [*pushed, "nothing"])


def delete(redis: Redis, state: State = "ready") -> Callable[[], Any]:
    queue, consumer = TaskQueue(), Consumer()
    tasks = [NewTask(name=ECHO, unique=f"{number}") for number in range(5)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    good, bad = claim(consumer, 2)
    consumer.progress(bad, Progress(1))
    hand_in(consumer, succeeded(good), failed(bad))
    queue.wait_for(pushed[-1], wait=0)
    return lambda: queue.delete("default", state, [*pushed, "nothing"])


def delete_dead(redis: Redis) -> Callable[[], Any]:
    return delete(redis, "dead")


def delete_successful(redis: Redis) -> Callable[[], Any]:
    return delete(redis, "successful")


def progress(redis: Redis) -> Callable[[], Any]:
    consumer = Consumer()
    push_many(1)
    claimed = claim_one(consumer)
    return lambda: consumer.progress(claimed, Progress(3, 4, "nearly", EPOCH))


def resend(redis: Redis) -> Callable[[], Any]:
    queue, consumer = TaskQueue(), Consumer()
    tasks = [NewTask(name=ECHO, unique=unique) for unique in ("a", "b", None)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    hand_in(consumer, *map(failed, claim(consumer, 3)))
    queue.push_many([NewTask(name=ECHO, unique="a")])
    return lambda: queue.resend("default", [*pushed, "nothing"])


def trim(redis: Redis) -> Callable[[], Any]:
    consumer = Consumer()
    push_many(9)
    old = claim(consumer, 3)
    hand_in(consumer, *map(failed, old[:2]), succeeded(old[2]))
    for key in (
        queues_keys.QueueKeys("default", "default").dead,
        queues_keys.QueueKeys("default", "default").successful,
    ):
        age(redis, key, timedelta(days=365))
    hand_in(consumer, *map(failed, claim(consumer, 5)))

    def act() -> None:
        with options(dead_limit=4):
            consumer.trim("default")  # its count is that of the last sending

    return act


def release_cancelled(redis: Redis) -> Callable[[], Any]:
    consumer = Consumer()
    pushed = push_many(3)
    claimed = claim(consumer, 3)
    end_lease(redis, pushed[2])
    taken_over = claim_one(consumer)
    TaskQueue().cancel("default", pushed[1:])

    def act() -> None:
        consumer.release([*claimed, taken_over])

    return act


def release(redis: Redis, delay: float = 0, *, has_begun: bool = False) -> Callable[[], Any]:
    consumer = Consumer()
    push_many(4)
    claimed = claim(consumer, 3)

    def act() -> None:
        consumer.release(
            claimed, delay=delay, begun=claimed if has_begun else []
        )  # its count is that of the last sending

    return act


def release_cut_off(redis: Redis) -> Callable[[], Any]:
    return release(redis, has_begun=True)


def release_later(redis: Redis) -> Callable[[], Any]:
    return release(redis, delay=60)


def renew(redis: Redis) -> Callable[[], Any]:
    consumer = Consumer()
    push_many(3)
    claimed = claim(consumer, 3)
    end_lease(redis, claimed[0].id)
    claim_one(Consumer())
    TaskQueue().cancel("default", [claimed[1].id])
    TaskQueue().tell(consumer.id, "quiet")
    return lambda: consumer.renew(["default"], claimed)


def park(redis: Redis) -> Callable[[], Any]:
    tasks = [SimpleNamespace(place=1, member="one default"), SimpleNamespace(place=2, member="two default")]
    keys, script = queues_keys.BackendKeys("default"), Script("queues/park")
    return lambda: at_once(script.run(get_client(), keys, limit="api", kept=60_000, tasks=tasks))


def tell(redis: Redis) -> Callable[[], Any]:
    return lambda: TaskQueue().tell("worker", "stop")


def pause(redis: Redis) -> Callable[[], Any]:
    return lambda: TaskQueue().pause("default")


def wake(redis: Redis) -> Callable[[], Any]:
    TaskQueue().pause("default")
    return lambda: TaskQueue().resume("default")


def unpark(redis: Redis) -> Callable[[], Any]:
    push_many(3)
    consumer = Consumer()
    parking = Parking(consumer)
    gone, *_others = tasks = claim(consumer, 3)
    parking.park("limit", tasks)
    TaskQueue().cancel("default", [gone.id])
    return lambda: parking.unpark("limit", by="caller")


def await_(redis: Redis) -> Callable[[], Any]:
    [task_id] = push_many(1)
    return lambda: TaskQueue().wait_for(task_id, wait=0)


def _with_use(redis: Redis, act: Callable[[], Any]) -> Callable[[], Any]:
    """Return what also returns how many permits were in use, and deletes it, because it says which minute it is."""
    key = SemaphoreKeys("api").use

    def run() -> Any:
        said = act()
        uses = [[int(number) for number in stored.split()[1:3]] for stored in redis.hvals(key)]
        redis.delete(key)
        return [said, max(uses, default=None)]

    return run


def acquire_permit(redis: Redis) -> Callable[[], Any]:
    semaphore = Semaphore("api", limit=5)
    take(semaphore, weight=2)
    return _with_use(redis, lambda: [take(semaphore, weight=3)[0].id, semaphore.try_acquire()])


def acquire_permit_after_all_others_died(redis: Redis) -> Callable[[], Any]:
    """Holders, and the first of the queue; the next is woken."""
    semaphore = Semaphore("api", limit=5, lease=10)
    take(semaphore)
    take(semaphore, weight=4)
    dead, waiter, other = Waiter(semaphore), Waiter(semaphore, weight=3), Waiter(semaphore)
    dead.ask()
    let_pass(redis, "api", 10)
    Semaphore("api", limit=5).acquire(weight=5)
    for each in (waiter, other):
        each.ask()
    redis.zadd(SemaphoreKeys("api").queue, {waiter.id: LONG_AGO})
    let_pass(redis, "api", 30)
    redis.zadd(SemaphoreKeys("api").beats, {waiter.id: 2**53, other.id: 2**53})
    return _with_use(redis, waiter.ask)


def wait_for_permit(redis: Redis) -> Callable[[], Any]:
    semaphore = Semaphore("api", limit=1)
    take(semaphore)
    Waiter(semaphore).ask()
    return _with_use(redis, Waiter(semaphore).ask)


def release_permit(redis: Redis) -> Callable[[], Any]:
    semaphore = Semaphore("api", limit=3)
    permit = semaphore.acquire(weight=2)
    Waiter(semaphore, weight=3).ask()
    return _with_use(redis, permit.release)


def evict_permit(redis: Redis) -> Callable[[], Any]:
    semaphore = Semaphore("api", limit=3)
    permit = semaphore.acquire(weight=2)
    return _with_use(redis, lambda: semaphore.evict(permit.id))


def leave_queue(redis: Redis) -> Callable[[], Any]:
    semaphore = Semaphore("api", limit=1)
    take(semaphore)
    waiter = Waiter(semaphore)
    waiter.ask()
    Waiter(semaphore).ask()
    return _with_use(redis, waiter.leave)


def refresh_permit(redis: Redis) -> Callable[[], Any]:
    return _with_use(redis, Semaphore("api", limit=1).acquire().refresh)


def set_limit(redis: Redis) -> Callable[[], Any]:
    semaphore = Semaphore("api", limit=1)
    take(semaphore)
    Waiter(semaphore).ask()
    return _with_use(redis, lambda: semaphore.set_limit(2))


def reset_limit(redis: Redis) -> Callable[[], Any]:
    semaphore = Semaphore("api", limit=1)
    take(semaphore)
    semaphore.set_limit(2)
    return _with_use(redis, semaphore.reset_limit)


def refusal(act: Callable[[], None]) -> str:
    with pytest.raises(StaleFence) as refused:
        act()
    return str(refused.value)


def fenced_set(redis: Redis) -> Callable[[], Any]:
    FencedValue("a").set("old", fence=1)
    return lambda: FencedValue("a").set("new", fence=2, ttl=60)


def fenced_set_for_good(redis: Redis) -> Callable[[], Any]:
    FencedValue("a").set("old", fence=2, ttl=60)
    return lambda: FencedValue("a").set("new", fence=2)


def fenced_set_refused(redis: Redis) -> Callable[[], Any]:
    FencedValue("a").set("new", fence=2)
    return lambda: refusal(lambda: FencedValue("a").set("old", fence=1))


def fenced_delete(redis: Redis) -> Callable[[], Any]:
    FencedValue("a").set("old", fence=1)
    return lambda: FencedValue("a").delete(fence=2)


def fenced_delete_refused(redis: Redis) -> Callable[[], Any]:
    FencedValue("a").set("new", fence=2)
    return lambda: refusal(lambda: FencedValue("a").delete(fence=1))


CASES: dict[str, list[Case]] = {
    "locks/delete_fenced": [fenced_delete, fenced_delete_refused],
    "locks/set_fenced": [fenced_set, fenced_set_for_good, fenced_set_refused],
    "queues/advance": [advance, advance_guarded],
    "queues/await": [await_],
    "queues/cancel": [cancel],
    "queues/declare": [declare],
    "queues/delete": [delete, delete_dead, delete_successful],
    "queues/progress": [progress],
    "queues/enqueue": [enqueue, enqueue_again],
    "queues/push": [push, push_guarded],
    "queues/park": [park],
    "queues/pause": [pause],
    "queues/release": [release, release_later, release_cancelled, release_cut_off],
    "queues/renew": [renew],
    "queues/resend": [resend],
    "queues/tell": [tell],
    "queues/trim": [trim],
    "queues/unpark": [unpark],
    "queues/wake": [wake],
    **lost_books.CASES,
    **lost_chats.CASES,
    **lost_counts.CASES,
    **lost_geo.CASES,
    **lost_locks.CASES,
    **lost_logs.CASES,
    **lost_mail.CASES,
    **lost_rows.CASES,
    "semaphores/acquire": [acquire_permit, wait_for_permit, acquire_permit_after_all_others_died],
    "semaphores/limit": [set_limit, reset_limit],
    "semaphores/refresh": [refresh_permit],
    "semaphores/release": [release_permit, evict_permit, leave_queue],
}


@pytest.fixture
def proxy(redis_server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy:
        yield proxy


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_that_changes_something_has_a_case(redis: Redis, script: str) -> None:
    source = Script(script).source
    called = {command.lower() for command in re.findall(r'redis\.call\("(\w+)"', source)}
    commands = redis.command()
    changes = any("write" in commands[name]["flags"] for name in called)

    assert called
    assert changes == bool(CASES.get(script))


def test_every_case_is_one_of_a_script() -> None:
    assert CASES.keys() <= set(SCRIPTS)


@pytest.mark.slow
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
            lost = "LOAD" if case in lost_counts.PIPELINED else lost
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


@pytest.mark.parametrize("task", [{"unique": "a"}, {"tick": ("hourly", datetime(2026, 1, 1, tzinfo=UTC))}])
def test_a_guarded_task_that_was_finished_before_its_push_is_repeated_is_not_stored_again(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis, task: dict[str, Any]
) -> None:
    consumer = Consumer()

    [info] = _meanwhile(
        redis_server,
        proxy,
        lambda: TaskQueue().push_many([NewTask(name=ECHO, **task)]),
        lambda: hand_in(consumer, succeeded(claim_one(consumer))),
    )

    assert places() == {"successful": [info.id]}


def test_a_retry_that_was_claimed_before_its_ack_is_repeated_stays_claimed(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    [task_id] = push_many(1)
    consumer, other = Consumer(), Consumer()
    finished = to_retry(claim_one(consumer))

    answer = _meanwhile(redis_server, proxy, lambda: hand_in(consumer, finished), lambda: claim_one(other))

    assert answer.lost == []
    assert places() == {"running": [task_id]}
    info = TaskQueue().get(task_id)
    assert info is not None
    assert info.worker_ids == (consumer.id, other.id)
    assert len(info.errors) == 1


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


def test_a_version_that_was_made_current_before_another_is_not_made_current_again(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    act = lost_geo.activate_first(redis)

    missing = _meanwhile(redis_server, proxy, act, lambda: lost_geo.imported("newer"))

    assert missing == []
    assert redis.hget(TableKeys("default").current, "version") == b"newer"


def test_a_task_claimed_by_another_since_is_not_released_twice(
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


def test_a_task_taken_over_since_is_not_claimed_twice(
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


def test_a_permit_that_was_released_before_its_release_is_repeated_is_not_released_twice(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    semaphore = Semaphore("api", limit=1)
    permit = semaphore.acquire()

    _meanwhile(redis_server, proxy, permit.release, semaphore.acquire)

    assert permit.is_released
    assert semaphore.info().used == 1


def test_a_permit_that_expired_before_its_request_is_repeated_is_granted_once(
    redis_server: EmbeddedServer, proxy: LossyProxy, redis: Redis
) -> None:
    semaphore = Semaphore("api", limit=1, lease=10)

    permit = _meanwhile(redis_server, proxy, semaphore.acquire, lambda: let_pass(redis, "api", 10))

    permit.refresh()
    info = semaphore.info()
    assert (info.used, info.granted, info.expired) == (1, 2, 1)


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
