"""What the overview says of services: each line appears, and goes when its cause does; what the cards count."""

import re
import time
from collections.abc import Callable, Iterator
from functools import cache as cache_of
from html import unescape
from unittest.mock import patch

import pytest
from django.test import Client
from django.utils.html import strip_tags
from redis import Redis

from components.kit.keyspace import bucket
from components.services.autocomplete import AddressBook
from components.services.counters import Counter
from components.services.locks.keys import LockKeys
from components.services.logs import note_job
from components.services.logs import report as logs_report
from components.services.mailboxes import Mailbox
from components.services.queues import Consumer, TaskQueue
from components.services.queues.keys import QueueKeys
from components.services.semaphores.keys import SemaphoreKeys
from tests.locks.admin import holdings
from tests.logs.admin import traffic
from tests.queues.admin import scene
from tests.queues.admin.scene import HOURLY, declare_only
from tests.support.chats import guild
from tests.support.logs import append, joined, stream
from tests.support.queues import claim, options
from tests.support.rows import cache, let_pass, refresh
from tests.support.waiting import eventually

QUEUES = "components:queues:{default}:"
MODELS = (
    "queue",
    "lock",
    "semaphore",
    "ratelimit",
    "cachedrow",
    "logjob",
    "chat",
    "mailbox",
    "addressbook",
    "counter",
)


@pytest.fixture
def reader(staff):
    """Who sees the overview, and all pages."""
    logs_report._known.clear()
    return staff("view_overview", *(f"view_{model}" for model in MODELS))


def wait_longer(redis: Redis, queue: str, seconds: float) -> None:
    """Let all that wait there have waited for longer; instants are microseconds."""
    for waiter, at in redis.zrange(queue, 0, -1, withscores=True):
        redis.zadd(queue, {waiter: at - seconds * 1e6})


# What needs attention: each of these says, step by step, of what the line is, "" for none. At its end there is none.


def a_queue_that_nobody_serves(redis: Redis) -> Iterator[str]:
    scene.ready("mail", count=2)
    yield "Problem Queues 2 tasks wait in the queue mail.* Run manage.py runworker --backend default -q mail"
    scene.worker("mail")


def busy_workers_while_tasks_wait(redis: Redis) -> Iterator[str]:
    consumer = scene.worker("mail", concurrency=1)
    scene.ready("mail", count=2)
    running = consumer.advance(consumer.request({"mail": 1}, 1)).claimed
    consumer.renew(["mail"], running)
    yield ""  # it has not waited for long
    [(task_id, score)] = redis.zrange(f"{QUEUES}ready:mail", 0, -1, withscores=True)
    redis.zadd(f"{QUEUES}ready:mail", {task_id: score - 60_000})
    yield "Warning Queues All slots .* are busy, and 1 task waits, for 1 min.* Run manage.py runworker"
    scene.worker("mail")


def a_paused_queue_in_which_tasks_wait(redis: Redis) -> Iterator[str]:
    scene.worker("mail")
    TaskQueue().pause("mail")
    yield ""
    scene.ready("mail")
    yield "Warning Queues The queue mail is paused: 1 task waits in it, for .* Waiting tasks"
    TaskQueue().resume("mail")


def tasks_that_wait_for_another_attempt(redis: Redis) -> Iterator[str]:
    scene.worker("mail")
    ids = [*scene.delayed("mail"), scene.retrying(), scene.retrying()]
    yield "Warning Queues 2 tasks of the queue mail did not succeed, and will be tried again. Delayed tasks"
    TaskQueue().delete(ids)


def tasks_that_wait_for_a_limit(redis: Redis) -> Iterator[str]:
    consumer = scene.worker("mail")
    ids = scene.ready(count=3)
    consumer.park("api", claim(consumer, 3, ["mail"]))
    TaskQueue().delete(ids[:1])
    yield "Warning Queues 2 tasks wait for room under the limit api. The page Semaphores .* Queues"
    TaskQueue().delete(ids)


def dead_tasks_that_were_thrown_away(redis: Redis) -> Iterator[str]:
    ids = [scene.dead() for _ in range(3)]
    with options(dead_limit=1):
        assert scene.worker("mail").trim("mail") == 2
        TaskQueue().delete(ids)
        yield "Warning Queues The queue mail was .* so 2 of them were thrown away; it keeps 1. Look .* Dead tasks"
    redis.delete(QueueKeys("default", "mail").trimmed)


def a_module_that_a_poller_cannot_import(redis: Redis) -> Iterator[str]:
    poller = Consumer(kind="poller")
    known = cache_of(lambda: {"shop.tasks": ImportError()})
    with patch("components.services.queues.consumer.import_tasks", known):
        poller.renew(["*"] if known() else [])
    yield "Problem Queues Workers or pollers of default cannot import shop.tasks: .* Their logs say why."
    poller.renew(["*"])


def delayed_tasks_that_are_late(redis: Redis) -> Iterator[str]:
    scene.worker("mail")
    [task_id] = scene.delayed("mail")
    redis.zadd(f"{QUEUES}delayed:mail", {task_id: (time.time() - 300) * 1e6})
    yield "Problem Queues Delayed .* mail are late: the first was due 5 min.* Run manage.py pollqueue"
    redis.delete(f"{QUEUES}delayed:mail")


def periodic_tasks_that_are_late(redis: Redis) -> Iterator[str]:
    with declare_only(HOURLY):
        redis.zadd(f"{QUEUES}periodic", {HOURLY.name: (time.time() - 7_200) * 1e6})
        yield "Problem Queues 1 periodic task is late. Run manage.py pollqueue .* Periodic tasks"
        redis.zadd(f"{QUEUES}periodic", {HOURLY.name: time.time() * 1e6})
        yield ""


def the_dead_wait_for_no_lock(redis: Redis) -> Iterator[str]:
    holdings.held("item:42")
    holdings.waits("item:42", "joe", "ann")
    of_lock = LockKeys.named("item:42")
    first, _second = redis.zrange(of_lock.queue, 0, -1)
    wait_longer(redis, of_lock.queue, 60)
    redis.zadd(of_lock.beats, {first: 1})
    yield "Warning Locks 1 caller waits for the lock item:42, for"
    redis.delete(of_lock.queue, of_lock.beats)


def a_semaphore_that_keeps_others_waiting(redis: Redis) -> Iterator[str]:
    taken = holdings.permit("api", limit=1)
    [waiter] = holdings.waits_for_permit("api", limit=1)
    keys = SemaphoreKeys("api")
    yield ""
    redis.zadd(keys.beats, {waiter.id: holdings.LATER})
    wait_longer(redis, keys.queue, 60)
    yield "Warning Semaphores 1 caller waits for a permit of the semaphore api, for 1 min"
    taken.release()
    waiter.leave()


def rows_that_nobody_loads(redis: Redis) -> Iterator[str]:
    cache().schedule("1", 60)
    yield ""
    let_pass(redis, 3600)
    yield "Problem Cached rows Cached rows of items are late: .* Run manage.py cacherows"
    refresh({"1": ["sword", 3]})


def logs_that_are_counted_late(redis: Redis) -> Iterator[str]:
    aggregation = joined("places", lease=0.001)
    append(stream(), 0)
    note_job("default")
    yield (
        "Problem Logs The logs of the job default are counted late: the oldest chunk waits for.*"
        "Run manage.py aggregatelogs --job default Workers and chunks"
    )
    aggregation.leave()


def chunks_of_logs_that_were_given_up(redis: Redis) -> Iterator[str]:
    aggregation = joined("places", tries=1)
    append(stream(), 0)
    note_job("default")
    yield ""
    traffic.give_up(redis, aggregation, 1)
    yield "Warning Logs 1 chunk of logs of the job default was given up."
    aggregation.resend([chunk for chunk, _at in aggregation.dead()])


TROUBLES = [
    *(a_queue_that_nobody_serves, busy_workers_while_tasks_wait, a_paused_queue_in_which_tasks_wait),
    *(tasks_that_wait_for_another_attempt, tasks_that_wait_for_a_limit, dead_tasks_that_were_thrown_away),
    a_module_that_a_poller_cannot_import,
    *(delayed_tasks_that_are_late, periodic_tasks_that_are_late, the_dead_wait_for_no_lock),
    *(a_semaphore_that_keeps_others_waiting, rows_that_nobody_loads),
    *(logs_that_are_counted_late, chunks_of_logs_that_were_given_up),
]


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda each: each.__name__)
def test_a_line_appears_and_goes_with_its_cause(
    redis: Redis, reader, trouble: Callable[[Redis], Iterator[str]]
):
    for said in trouble(redis):
        assert eventually(lambda said=said: len(lines(reader)) == bool(said)), lines(reader)
        assert all(re.match(said, line) for line in lines(reader)), lines(reader)

    assert lines(reader) == []


def test_many_queues_take_no_more_room_than_a_few(redis, reader):
    for number in range(40):
        scene.ready(f"queue-{number}")

    found = lines(reader)

    assert len(found) == 4
    assert found[-1] == "Problem Queues There are 37 more of this kind. Queues"


def test_a_lock_that_keeps_others_waiting_can_be_released(redis, reader, staff):
    taken = holdings.held("item:42")
    holdings.waits("item:42", "joe", "ann")
    assert lines(reader) == []  # they wait, and not for long
    assert "Waiting for a lock 2" in tiles(reader)["Locks"]

    wait_longer(redis, LockKeys.named("item:42").queue, 60)
    [line] = lines(reader)
    assert line.startswith("Warning Locks 2 callers wait for the lock item:42, the first for 1 min")

    changing = staff("view_overview", "view_lock", "change_lock")
    [page, mend] = links(changing)
    assert "item:42" in changing.get(page).text
    assert changing.post(mend).status_code == 302
    assert not taken.owned()


def test_dead_tasks_can_be_sent_again(redis, staff, reader):
    scene.dead("mail")
    scene.worker("mail")

    [line] = lines(reader)
    assert line == "Warning Queues 1 task of the queue mail has failed for good. Dead tasks"
    changing = staff("view_overview", "view_queue", "change_queue")
    assert lines(changing) == [f"{line} Send them again…"]
    [_page, mend] = links(changing)
    changing.post(mend)
    assert lines(reader) == []


def test_rows_that_cannot_be_loaded_can_be_tried_again(redis, reader, staff):
    key = f"components:rows:{{{bucket('items:1')}}}:counts"
    redis.hset(key, mapping={"items": 2, "items:failing": 1})

    [line] = lines(reader)
    assert line.startswith("Warning Cached rows 1 row of items could not be loaded at the last attempt.")
    assert lines(staff("view_overview", "refresh_cachedrow")) == [f"{line} Try again now…"]

    redis.hdel(key, "items:failing")
    assert lines(reader) == []


def test_each_service_has_a_card_with_what_it_counts(redis, reader):
    assert "All is well" in tiles(reader)["Logs"]
    scene.worker("mail", concurrency=4)
    guild("guild:7")
    Mailbox("jack").push("jill", "hello")
    AddressBook("market.item").add("lantern", id=1)
    Counter("hits").update()
    cache().schedule("1", 60)
    refresh({"1": ["sword", 3]})
    joined("places", lease=0.001)
    append(stream(job="new"), 0)
    note_job("new")  # it has a line at once

    found = tiles(reader)

    for title, said in {
        "Queues": r"All is well.* 0 tasks wait.*Busy slots 0 of 4",
        "Chats": r"1 chat .*Last message [\d.]+ m?s ago",
        "Mailboxes": "1 mailbox",
        "Address books": "1 address book",
        "Counters": "1 counter",
        "Cached rows": "1 row is reloaded regularly",
        "Logs": "1 chunk in flight.*Jobs 1",
    }.items():
        assert re.search(said, found[title]), found[title]


ROOT = "/admin/components/overview/"
FRAMELESS = {"X-Live": "1"}


def html_of(client: Client) -> str:
    response = client.get(ROOT, headers=FRAMELESS)
    assert response.status_code == 200
    return response.text


def lines(client: Client) -> list[str]:
    """The lines about services, each with its links."""
    return [line for line in _lines(client) if line.split()[1] != "Redis"]


def lines_of_redis(client: Client) -> list[str]:
    """The lines about Redis; the server of the tests has some, since it saves nothing."""
    return [line for line in _lines(client) if line.split()[1] == "Redis"]


def _lines(client: Client) -> list[str]:
    found = re.findall(r"<tr class=\"(?:serious|warning)\".*?</tr>", _attention(client), re.DOTALL)
    return [
        _words(re.sub(r'<span class="visually-hidden">.*?</span>', "", line, flags=re.DOTALL))
        for line in found
    ]


def links(client: Client) -> list[str]:
    """The addresses in the lines about services."""
    return [unescape(each) for each in re.findall(r'href="([^"#][^"]*)"', _attention(client))]


def _attention(client: Client) -> str:
    _before, key, after = html_of(client).partition('data-key="attention"')
    return key and after.partition("</table>")[0]


def tiles(client: Client) -> dict[str, str]:
    """The text of the card of each service, by its title."""
    return _tiles(html_of(client).partition('id="redis"')[0].partition('data-key="services"')[2])


def nodes(client: Client) -> dict[str, str]:
    """The text of the card of each node, by its name."""
    return _tiles(html_of(client).partition('id="redis"')[2])


def _tiles(html: str) -> dict[str, str]:
    found = re.findall(r"<tr class=.*?</tr>", html, re.DOTALL)
    return {re.findall(r"<a [^>]*>(.*?)</a>|$", tile)[0]: _words(tile) for tile in found}


def _words(html: str) -> str:
    return " ".join(unescape(strip_tags(html.replace("</dt>", "</dt> "))).split())
