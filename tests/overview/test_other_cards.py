"""What the overview says of locks, semaphores, cached rows, logs and the rest: lines appear, and go."""

from __future__ import annotations

import re

import pytest
from redis import Redis

from components.kit.keyspace import bucket
from components.services.autocomplete import AddressBook
from components.services.counters import Counter
from components.services.locks.keys import LockKeys
from components.services.logs import card as logs_card
from components.services.logs import note_job
from components.services.mailboxes import Mailbox
from components.services.semaphores.keys import SemaphoreKeys
from tests.chat.admin.conversations import guild
from tests.locks.admin import holdings
from tests.logs.admin import traffic
from tests.overview.reading import lines, links, tiles
from tests.support.logs import append, joined, stream
from tests.support.rows import cache, let_pass, refresh
from tests.support.waiting import eventually


@pytest.fixture
def reader(staff):
    """reader("lock") sees the overview, and these pages."""
    logs_card._known.clear()
    return lambda *models: staff("view_overview", *(f"view_{model}" for model in models))


def wait_longer(redis: Redis, queue: str, seconds: float) -> None:
    for waiter, at in redis.zrange(queue, 0, -1, withscores=True):
        redis.zadd(queue, {waiter: at - seconds * 1e6})


def test_a_lock_that_keeps_others_waiting(redis, reader, staff):
    client = reader("lock")
    taken = holdings.held("item:42")
    holdings.waits("item:42", "joe", "ann")
    assert lines(client) == []  # they wait, and not for long
    assert "Waiting for a lock 2" in tiles(client)["Locks"]

    wait_longer(redis, LockKeys.named("item:42").queue, 60)
    [line] = lines(client)
    assert line.startswith("Warning Locks: 2 callers wait for the lock item:42, the first for 1 min")
    assert line.endswith("Holder and waiters")

    changing = staff("view_overview", "view_lock", "change_lock")
    [page, mend] = links(changing)
    assert "item:42" in changing.get(page).text
    assert changing.post(mend).status_code == 302
    assert not taken.owned()
    redis.delete(LockKeys.named("item:42").queue, LockKeys.named("item:42").beats)
    assert lines(client) == []


def test_the_dead_wait_for_no_lock(redis, reader):
    holdings.held("item:42")
    holdings.waits("item:42", "joe", "ann")
    of_lock = LockKeys.named("item:42")
    first, _second = redis.zrange(of_lock.queue, 0, -1)
    wait_longer(redis, of_lock.queue, 60)
    redis.zadd(of_lock.beats, {first: 1})

    [line] = lines(reader("lock"))

    assert "1 caller waits for the lock item:42, for" in line


def test_a_semaphore_that_keeps_others_waiting(redis, reader):
    client = reader("semaphore")
    taken = holdings.permit("api", limit=1)
    [waiter] = holdings.waits_for_permit("api", limit=1)
    keys = SemaphoreKeys("api")
    assert lines(client) == []
    redis.zadd(keys.beats, {waiter.id: holdings.LATER})

    wait_longer(redis, keys.queue, 60)
    [line] = lines(client)
    assert line.startswith("Warning Semaphores: 1 caller waits for a permit of the semaphore api, for 1 min")

    taken.release()
    waiter.leave()
    assert lines(client) == []


def test_rows_that_nobody_loads(redis, reader):
    client = reader("cachedrow")
    cache().schedule("1", 60)
    assert lines(client) == []

    let_pass(redis, 3600)
    [line] = lines(client)
    assert line.startswith(
        "Problem Cached rows: Cached rows of items are late: the first should have been loaded "
    )
    assert line.endswith("Show the rows Run manage.py cacherows")

    refresh({"1": ["sword", 3]})
    assert lines(client) == []
    assert "1 row is reloaded regularly" in tiles(client)["Cached rows"]


def test_rows_that_cannot_be_loaded(redis, reader, staff):
    client = reader("cachedrow")
    key = f"components:rows:{{{bucket('items:1')}}}:counts"
    redis.hset(key, mapping={"items": 2, "items:failing": 1})

    [line] = lines(client)
    assert line.startswith("Warning Cached rows: 1 row of items could not be loaded at the last attempt.")
    assert lines(staff("view_overview", "refresh_cachedrow")) == [f"{line} Try again now…"]

    redis.hdel(key, "items:failing")
    assert lines(client) == []


def test_logs_that_are_counted_late(redis, reader):
    client = reader("logjob")
    aggregation = joined("places", lease=0.001)
    append(stream(), 0)
    note_job("default")

    assert eventually(lambda: lines(client))
    [line] = lines(client)
    assert line.startswith(
        "Problem Logs: The logs of the job default are counted late: the oldest chunk waits for"
    )
    assert line.endswith("Workers and chunks Run manage.py aggregatelogs --job default")

    aggregation.leave()
    assert lines(client) == []


def test_chunks_of_logs_that_were_given_up(redis, reader):
    client = reader("logjob")
    aggregation = joined("places", tries=1)
    append(stream(), 0)
    note_job("default")
    assert lines(client) == []

    traffic.give_up(redis, aggregation, 1)
    [line] = lines(client)
    assert line.startswith("Warning Logs: 1 chunk of logs of the job default was given up.")

    aggregation.resend([chunk for chunk, _at in aggregation.dead()])
    assert lines(client) == []


def test_things_that_are_only_counted(redis, reader):
    guild("guild:7")
    Mailbox("jack").push("jill", "hello")
    AddressBook("market.item").add("lantern", id=1)
    Counter("hits").update()

    found = tiles(reader("chat", "mailbox", "addressbook", "counter"))

    assert [*found] == ["Chats", "Mailboxes", "Address books", "Counters"]
    assert "1 chat " in found["Chats"]
    assert re.search(r"Last message [\d.]+ m?s ago", found["Chats"])
    assert "1 mailbox" in found["Mailboxes"]
    assert "1 address book" in found["Address books"]
    assert "1 counter" in found["Counters"]


def test_a_job_that_is_new_has_a_line_at_once(redis, reader):
    client = reader("logjob")
    assert tiles(client)["Logs"]
    joined("places", lease=0.001)
    append(stream(job="new"), 0)
    note_job("new")

    assert "Jobs 1" in tiles(client)["Logs"]
    assert "1 chunk in flight" in tiles(client)["Logs"]
