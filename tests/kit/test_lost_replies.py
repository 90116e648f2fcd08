"""
A script whose reply was lost is sent again. So each one that changes something has a scenario in which all calls
are sent twice: the second call changes nothing, and gives the same answer.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest
from redis import Redis

import components
from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.scripts import Call, Script
from components.services.autocomplete import AddressBook, AddressBookReader
from components.services.chat import Chat, Inbox
from components.services.counters import CounterReader, count, flush
from components.services.geo.importing import activate, put
from components.services.geo.keys import TableKeys
from components.services.geo.layout import Manifest
from components.services.locks.fences import FencedValue
from components.services.mailboxes import Mailbox
from components.services.queues import Consumer, NewTask, TaskQueue
from components.services.semaphores import Semaphore
from components.testing import empty, redis_at
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
from tests.support.scenarios import SCENARIOS, imported
from tests.support.semaphores import let_pass
from tests.support.snapshots import alike, snapshot
from tests.support.waiting import eventually


def _scripts() -> Iterator[Script]:
    for found in walk_packages(components.__path__, "components."):
        if re.search(r"\.(migrations|runner|fixtures)\b", found.name):
            continue
        module = import_module(found.name)
        yield from (each for each in vars(module).values() if isinstance(each, Script))


#: All scripts by name.
SCRIPTS: dict[str, Script] = {
    script.name: script for script in sorted(_scripts(), key=lambda each: each.name)
}


#: What does not change of an answer if a call is repeated, of scripts that also tell a time left or, as nobody relies
#: on it, what this call did.
LASTING: dict[str, Callable[[Any], Any]] = {
    "autocomplete/prune": type,
    "chat/attend": lambda said: said[:-1],
    "chat/charge": lambda said: said[0],
    "chat/delete": type,
    "chat/send": lambda said: said[1:3],
    "counters/mend": type,
    "locks/acquire": lambda said: said[:-1],
    "locks/extend": lambda said: said > 0,
    "logs/discard": type,
    "logs/forget": type,
    "queues/release": type,
    "queues/trim": type,
    "rates/take": bool,
    "rows/schedule": len,
    "semaphores/acquire": lambda said: said[:-1],
}


@contextmanager
def each_script_twice(redis: Redis, *, between: Callable[[], object] | None = None) -> Iterator[set[str]]:
    """
    Send every call of a script once more, and assert that it gives the same answer and changes nothing; yield the
    names of the scripts.

    If something happens *between* the first call and its repetition, then nothing is asserted.
    """
    called: set[str] = set()
    send, pipelined, is_busy = Script.send, Script._pipelined, False

    async def twice(script: Script, ask: Callable[[], Any], *, many: bool = False) -> Any:
        nonlocal is_busy
        first = await ask()
        if is_busy:
            return first
        called.add(script.name)
        is_busy = True
        try:
            if between:
                between()
                return await ask()
            before = _stored(redis)
            soon = {
                key for key in redis.keys("*") if 0 <= redis.pttl(key) < 10_000
            }  # they may expire meanwhile
            second = await ask()
            after = _stored(redis)
            kept = {key: found for key, found in before.items() if key in after or key not in soon}
            changed = set(alike(after)) ^ set(alike(kept))
            assert not changed, f"{script.name} changes something when it is repeated: {changed}"
            for one, other in zip(first, second, strict=True) if many else [(first, second)]:
                assert lasting(script.name, one) == lasting(script.name, other), script.name
            return second
        finally:
            is_busy = between is not None  # only the first call is repeated then

    async def _send(self: Script, client: Any, **call: Any) -> Any:
        return await twice(self, lambda: send(self, client, **call))

    async def _pipelined(self: Script, node: Any, calls: Sequence[Call]) -> Any:
        return await twice(self, lambda: pipelined(self, node, calls), many=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Script, "send", _send)
        patch.setattr(Script, "_pipelined", _pipelined)
        patch.setattr(Script, "quick", lambda *_args: None)
        yield called


def _stored(redis: Redis) -> dict[bytes, Any]:
    """Return what is stored, without the use of semaphores by the minute, which is another one soon."""
    return {key: found for key, found in snapshot(redis).items() if b":use:" not in key}


def lasting(script: str, answer: Any) -> Any:
    """Return what does not change of an answer."""
    if script not in LASTING:
        return [re.sub(r"\bb'(\d+)'", r"\1", line) for line in alike(answer)]
    ask = LASTING[script]
    return alike(ask(answer))


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


ASKED: list[tuple[str, Callable[[], object]]] = [
    ("HMGET", lambda: Chat("chat").configure(slow_mode=1)),
    ("HEXISTS", lambda: Chat("chat").trim(before=2)),
    ("DEL", lambda: Inbox("jill").erase()),
    ("HDEL", lambda: Mailbox("joe").unblock("jill")),
    ("HGET", lambda: AddressBook("book").count()),
    ("HGETALL", lambda: AddressBook("book").info()),
    ("ZLEXCOUNT", lambda: AddressBookReader().count()),
    ("ZRANGEBYLEX", lambda: AddressBookReader().page()),
    ("ZADD", lambda: AddressBook("other").add("Ann", id=1)),
    ("ZREM", lambda: AddressBook("book").erase()),
    ("EXISTS", lambda: AddressBook("none").vacate()),
    ("GET", lambda: FencedValue("value").get()),
    ("ZRANGE", lambda: CounterReader().families()),
]


@pytest.fixture
def furnished(redis_server: EmbeddedServer) -> Iterator[LossyProxy]:
    with LossyProxy(redis_server) as proxy, empty(redis_server), redis_at(proxy.url):
        Chat.create("jill", members=["joe"], text="hello", id="chat")
        Mailbox("joe").block("jill")
        AddressBook("book").add("Ann", id=1)
        FencedValue("value").set("x", fence=1)
        count("orders:paid")
        flush()
        yield proxy


@pytest.mark.parametrize(("command", "call"), ASKED, ids=[f"{at}-{each[0]}" for at, each in enumerate(ASKED)])
def test_a_command_is_resent_if_its_reply_is_lost(
    furnished: LossyProxy, command: str, call: Callable[[], object]
) -> None:
    furnished.lose_replies(to=f"\r\n{command}\r\n")

    call()

    assert furnished.lost == 1
