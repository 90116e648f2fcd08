"""What services count of themselves, if COMPONENTS["COUNT_SERVICES"] says so: each event once, and without Redis."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.exceptions import LockLost, PermitLost, RedisUnavailable, SemaphoreFull
from components.services.autocomplete import AddressBook
from components.services.chat import Chat, Inbox
from components.services.counters import (
    CounterReader,
    buffer,
    flush,
    measuring,
    pattern_of,
    tally,
    tally_each,
)
from components.services.counters.series import is_time
from components.services.locks import alock, lock
from components.services.mailboxes import Mailbox
from components.services.queues import NewTask, TaskQueue
from components.services.semaphores import Semaphore
from components.testing import redis_at
from tests.support.rows import cache, refresh

Counts = dict[str, int]


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """All count, and nothing is sent but by flush()."""
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)
    monkeypatch.setattr(measuring, "_names", {})
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}


def counted() -> Counts:
    flush()
    reader = CounterReader()
    names = [info.name for info in reader.page()]
    return {name: series.total for name, series in reader.read(names, 3_600).items()}


def counted_events() -> Counts:
    """All that is counted but times, which differ."""
    return {name: total for name, total in counted().items() if not is_time(name)}


def measured() -> Counts:
    """How often each time was measured."""
    flush()
    reader = CounterReader()
    names = [info.name for info in reader.page() if is_time(info.name)]
    return {name: found.count for name, found in reader.histograms(names, 3_600).items() if found.count}


def test_tasks_are_counted_as_they_are_enqueued_of_all_queues_and_of_each(redis: Redis) -> None:
    queue = TaskQueue()
    new = NewTask(name="tests.tasks.echo", unique="only one")
    queue.push("tests.tasks.echo", queue="mail")
    queue.push_many([NewTask(name="tests.tasks.echo", queue=name) for name in ("mail", "orders", "mail")])

    queue.push_many([new, new])

    assert counted() == {
        "tasks:enqueued": 5,
        "tasks-enqueued:mail": 3,
        "tasks-enqueued:orders": 1,
        "tasks-enqueued:default": 1,
    }


def test_messages_of_chats_searches_and_selections_are_counted(redis: Redis) -> None:
    chat = Chat.create("joe", members=["jill"], text="welcome")
    sent = chat.send("joe", "hello", client_id="a")

    assert chat.send("joe", "hello", client_id="a").is_duplicate
    chat.history("jill", after=sent.seq - 1)
    [news] = Inbox("jill").fetch()

    assert counted() == {"chat:sent": 2, "chat:fetched": 1 + len(news.messages)}
    book = AddressBook("guild:7")
    book.add("ann smith", id=1)

    book.complete("a")
    book.complete("sm")
    book.select(1)
    book.select(2)

    assert counted().items() >= {"autocomplete:searched": 2, "autocomplete:selected": 1}.items()


def test_locks_are_counted_as_they_are_acquired_waited_for_and_lost(redis: Redis) -> None:
    async def hold() -> None:
        async with alock("item:43", timeout=30):
            await asyncio.sleep(0.05)

    with lock("report", timeout=30) as held:
        assert not lock("report", timeout=30).acquire(blocking=False)
        assert not lock("report", timeout=30).acquire(blocking_timeout=0.01)
        redis.delete(held.name)
        with pytest.raises(LockLost):
            held.extend(10)
        held.local.token = None
        redis.flushdb()
        held.acquire()

    asyncio.run(hold())

    assert counted_events() == {"locks:acquired": 3, "locks:waited": 1, "locks:lost": 1}
    assert measured() == {
        "locks-held-us:report": 1,
        "locks-held-us:item:*": 1,
        "locks-waited-us:report": 1,
        "locks-refused-us:report": 2,
    }


def test_permits_are_counted_as_they_are_granted_waited_for_and_lost(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=1)
    permit = semaphore.acquire()
    assert semaphore.try_acquire() is None
    with pytest.raises(SemaphoreFull):
        semaphore.acquire(wait=0.01)

    redis.flushdb()
    with pytest.raises(PermitLost):
        permit.refresh()

    assert counted_events() == {"semaphores:acquired": 1, "semaphores:waited": 1, "semaphores:lost": 1}
    assert measured() == {"semaphores-waited-us:api": 1, "semaphores-refused-us:api": 2}


def test_rows_are_counted_as_they_are_read_once_for_all_of_a_read(redis: Redis) -> None:
    rows = cache()
    rows.schedule_many({"1": 60, "2": 60})
    refresh({"1": ["sword", 3], "2": None})

    rows.get("1")
    rows.get_many(["1", "2", "3"])
    rows.get_or_load(["1", "3"], lambda keys: {key: ["bow", 1] for key in keys}, delay=60)
    asyncio.run(rows.aget("3"))

    assert counted() == {"rows:hit": 5, "rows:missed": 2, "rows-hit:items": 5, "rows-missed:items": 2}


def test_redis_is_asked_nothing_more_for_what_is_counted(redis: Redis) -> None:
    def act() -> None:
        TaskQueue().push("tests.tasks.echo")
        with lock("report", timeout=30):
            Mailbox("jack").push("jill", "hello")

    act()  # the scripts are known now
    redis.config_resetstat()
    act()

    assert redis.info("commandstats")["cmdstat_evalsha"]["calls"] == 4
    assert buffer._buffer.counts["tasks:enqueued"] == 2


@pytest.mark.parametrize("given", [{}, {"COUNT_SERVICES": False}], ids=["by default", "turned off"])
def test_nothing_is_counted_where_it_is_not_asked_for(redis: Redis, settings: Any, given: Any) -> None:
    settings.COMPONENTS = given

    TaskQueue().push("tests.tasks.echo")
    tally_each("tasks:enqueued", ["mail"])

    assert counted() == {}
    assert not any(thread.name == "counters" for thread in threading.enumerate())


def test_a_label_with_too_many_values_is_counted_as_others(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "_MOST", 2)

    tally_each("tasks:enqueued", [f"customer-{number}" for number in range(4)])
    tally("tasks:failed", of="customer-3", seconds=0.002)
    tally_each("tasks:enqueued", ["customer-1"])

    assert counted() == {
        "tasks:enqueued": 5,
        "tasks-enqueued:customer-0": 1,
        "tasks-enqueued:customer-1": 2,
        "tasks-enqueued:others": 2,
        "tasks:failed": 1,
        "tasks-failed:customer-3": 1,
        "tasks-us:customer-3": 2_000,
    }


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[None]:
    with redis_at(f"unix://{tmp_path}/nothing"):
        yield


def test_a_call_that_redis_refused_is_not_counted_and_reports_no_counts(
    nowhere: None, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RedisUnavailable):
        TaskQueue().push("tests.tasks.echo")
    with pytest.raises(RedisUnavailable):
        lock("report", timeout=30).acquire()
    buffer.finish()

    assert not buffer._buffer.counts
    assert caplog.records == []


@pytest.mark.parametrize(
    ("name", "common"),
    [
        ("report", "report"),
        ("item:42", "item:*"),
        ("item:42:stock", "item:*:stock"),
        ("/orders/42/", "/orders/*/"),
        ("user:1b4e28ba-2fa1-11d2-883f-0016d3cca427", "user:*"),
        ("v2:item", "v2:item"),
        ("decade:facade", "decade:facade"),
        ("42", "*"),
    ],
)
def test_things_of_a_kind_have_one_name(name: str, common: str) -> None:
    assert pattern_of(name) == common
