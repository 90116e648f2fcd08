"""
What slots can break, on a cluster of three masters: every script that changes something, and every call over several
entities, each of which has another number. Services' tests run on one plain server only.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache as django_cache
from redis import Redis, RedisCluster
from redis.crc import key_slot

from components.doctor import diagnose
from components.doctor.server import examine_server
from components.exceptions import RedisUnavailable
from components.kit.client import get_async_client, get_client
from components.kit.scripts import MOVING, Script
from components.kit.sync_async import at_once
from components.observing.exposition import gather
from components.services.autocomplete import AddressBook, AddressBookReader, RecentContacts
from components.services.autocomplete.report import find as find_book
from components.services.chat import Chat, ChatReader, Inbox, Presence
from components.services.chat.report import find as find_chat
from components.services.counters import (
    Counter,
    CounterReader,
    Marks,
    aflush,
    clean,
    count,
    flush,
    measure,
    sum_up,
)
from components.services.counters.report import find as find_counter
from components.services.geo import alocate, import_places, locate, look, remove
from components.services.locks import Lock, LockReader, lock
from components.services.locks.report import find as find_lock
from components.services.logs import Aggregation, dead_chunks, list_jobs, look_at, note_job
from components.services.logs.traffic import Traffic
from components.services.mailboxes import Mailbox, MailboxReader
from components.services.mailboxes.report import find as find_mailbox
from components.services.queues import State, TaskQueue, Ticks
from components.services.rows import Loader, RowControls, RowReader, member
from components.services.rows.report import find as find_row
from components.services.semaphores import Semaphore, SemaphoreReader
from components.services.semaphores.report import find as find_semaphore
from components.testing import redis_at
from tests.fixtures.service import one_of_each  # noqa: F401
from tests.kit.test_client import collect_garbage_of_others
from tests.support.chats import FREE
from tests.support.geo import city, write_mmdb
from tests.support.logs import append, stream
from tests.support.masters import Masters, forget_clients, masters, moving
from tests.support.rows import bodies, cache, claimed
from tests.support.scenarios import SCENARIOS
from tests.support.traffic import tables
from tests.support.waiting import eventually

#: Entities of each service: they lie in many buckets, and on all nodes.
MANY = 12
NAMES = [f"n{number}" for number in range(MANY)]
DAY = date(2011, 10, 10)
NUMBERS = dict(zip(NAMES, range(1, MANY + 1), strict=True))


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Masters]:
    with masters(tmp_path_factory.mktemp("cluster"), request.config.getoption("--redis-server")) as made:
        yield made
        forget_clients()


@pytest.fixture
def redis(nodes: Masters) -> Iterator[Any]:
    with redis_at(nodes.urls, CLIENT_CLASS="components.cache.ClusterClient") as client:
        client.flushall()
        yield client


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """
    Let a test fail if something was logged instead of raised; not for what threads and unawaited tasks of other tests
    say meanwhile.
    """
    collect_garbage_of_others()
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
    yield
    records = [each for each in caplog.get_records("call") if each.thread not in others]
    assert [each.getMessage() for each in records if each.levelno >= logging.WARNING] == []


pytestmark = pytest.mark.usefixtures("quiet")


class Tell(Script):
    """Give back the key and the argument."""

    source = "return {KEYS[1], ARGV[1]}"


@pytest.mark.parametrize("service", SCENARIOS)
def test_scripts_that_change_something_stay_in_one_slot(redis: RedisCluster, service: str) -> None:
    for scenario in SCENARIOS[service]:
        redis.flushall()
        scenario(redis)


def test_calls_that_travel_together_are_answered_each_by_its_own_key(redis: RedisCluster) -> None:
    tell = Tell("tell")
    calls = [([f"{{{name}}}"], [name]) for name in NAMES]
    expected = [[key[0].encode(), args[0].encode()] for key, args in calls]

    async def awaited() -> list[Any]:
        return await tell.amany(get_async_client(), calls)

    for _ in range(2):  # unknown to the nodes, and known
        assert at_once(tell.amany(get_client(), calls)) == expected
        assert asyncio.run(awaited()) == expected
        redis.script_flush()
        assert asyncio.run(awaited()) == expected


class Copy(Script):
    """Copy a key to another one of its slot, and give it back."""

    source = "redis.call('COPY', KEYS[1], KEYS[2], 'REPLACE'); return redis.call('GET', KEYS[1])"


async def _copy_together() -> Any:
    return (await Copy("copy").amany(get_async_client(), [(MOVED, [])] * 3))[-1]


MOVED = ["{moved}a", "{moved}b"]
COPIES: dict[str, Callable[[], Any]] = {
    "one": lambda: at_once(Copy("copy").acall(get_client(), keys=MOVED)),
    "many": lambda: at_once(Copy("copy").amany(get_client(), [(MOVED, [])] * 3))[-1],
    "together": lambda: asyncio.run(_copy_together()),
}


@pytest.mark.parametrize("act", COPIES)
def test_a_call_waits_until_its_slot_has_moved(redis: RedisCluster, nodes: Masters, act: str) -> None:
    redis.set(MOVED[0], "value")
    with Redis(port=nodes.of(MOVED[0]).port) as source, ThreadPoolExecutor() as pool:
        source.config_resetstat()
        with moving(nodes, MOVED[0]) as end:
            called = pool.submit(COPIES[act])
            # redis-py itself gives up after 16.
            assert eventually(
                lambda: source.info("commandstats").get("cmdstat_evalsha", {}).get("rejected_calls", 0) > 16
            )
            end()
            assert called.result() == b"value"


def test_a_call_whose_slot_moves_for_too_long_is_unavailable(redis: RedisCluster, nodes: Masters) -> None:
    redis.set(MOVED[0], "value")
    patience = MOVING.set(0)
    try:
        with moving(nodes, MOVED[0]):
            [found] = [each for each in examine_server() if each.id == "components.W129"]
            source = nodes.of(MOVED[0])
            target = nodes[(source.number + 1) % len(nodes)]
            assert f"from {source.name} to {target.name}: {key_slot(MOVED[0].encode())}." in found.msg
            assert f"--cluster fix {source.name}`" in str(found.hint)
            for act in COPIES.values():
                with pytest.raises(RedisUnavailable, match="cluster fix"):
                    act()
    finally:
        MOVING.reset(patience)


def test_locks(redis: RedisCluster) -> None:
    held = {name: lock(name, timeout=60) for name in NAMES}
    for name, each in held.items():
        assert each.acquire(token=f"token {name}")
    own = [Lock(redis, name, timeout=60) for name in NAMES]
    assert all(each.acquire() for each in own)

    reader = LockReader()
    assert reader.count() == MANY  # those at own keys are not in the buckets of a cluster
    found = reader.held(limit=100)
    assert {info.name: info.token for info in found} == {name: f"token {name}" for name in NAMES}
    assert {info.name: info.fence for info in found} == {name: each.fence for name, each in held.items()}
    pages = [reader.held(offset=at, limit=5) for at in range(0, MANY, 5)]
    assert [info.name for page in pages for info in page] == [info.name for info in found]
    at_own = [reader.at(name) for name in NAMES]
    assert [info and info.fence for info in at_own] == [each.fence for each in own]
    assert find_lock("n3")
    for info in found:
        assert reader.waiters(info.key) == []
        assert reader.force_release(info.key, info.token, info.fence)
    assert reader.held(limit=100) == []


def assert_paged(reader: Any) -> None:
    pages = [reader.page(offset=at, limit=5) for at in range(0, MANY, 5)]
    assert sorted(info.id if hasattr(info, "id") else info.name for page in pages for info in page) == sorted(
        NAMES
    )
    assert reader.count() == MANY


def test_semaphores(redis: RedisCluster) -> None:
    for name, number in NUMBERS.items():
        Semaphore(name, limit=number + 2).acquire(weight=number)

    reader = SemaphoreReader()
    found = reader.page(limit=100, with_use=True)
    assert {info.name: info.used for info in found} == NUMBERS
    assert {info.name: info.use[-1].most for info in found} == NUMBERS
    assert_paged(reader)
    assert find_semaphore("n3")
    assert [each.weight for each in Semaphore("n3", limit=9).holders()] == [4]


def test_chats_and_inboxes(redis: RedisCluster) -> None:
    for name, number in NUMBERS.items():
        chat = Chat.create(name, members=["jack"], id=name, settings=FREE)
        for _ in range(number):
            chat.send(name, "hello @jack", mentions=["jack"])

    reader, inbox = ChatReader(), Inbox("jack")
    seqs = {name: number + 1 for name, number in NUMBERS.items()}  # with that of the creation
    assert {info.id: info.last_seq for info in reader.page(limit=100)} == seqs
    assert_paged(reader)
    assert find_chat("n3")

    async def awaited() -> Any:
        return await inbox.afetch()

    for chats in (inbox.fetch(), inbox.chats(), asyncio.run(awaited()), _by_pages(inbox)):
        assert {news.chat_id: news.last_seq for news in chats} == seqs
        assert {news.chat_id: news.mentions for news in chats} == NUMBERS
    assert [news.chat_id for news in _by_pages(inbox)] == NAMES[::-1]
    assert {news.chat_id: len(news.messages) for news in inbox.fetch()} == seqs
    assert inbox.unread().mentions == sum(NUMBERS.values())
    said = inbox.changes({}, limit=100)
    assert {news.chat_id: news.last_seq for news in said.chats} == {
        name: position.seq for name, position in said.positions.items()
    }
    assert inbox.changes(said.positions).chats == []
    Chat("n3").send("n3", "more")
    assert [news.chat_id for news in inbox.changes(said.positions).chats] == ["n3"]
    last = {**seqs, "n3": seqs["n3"] + 1}
    assert inbox.acknowledge(last) == last
    assert inbox.unread().chats == 0

    Chat("n2").send("jack", "mine")
    Chat("n2").leave("jack")
    erased = inbox.erase()
    assert (erased.chats, erased.messages) == (1, 1)
    assert inbox.chats() == []
    assert {info.members for info in reader.page(limit=100)} == {1}


def _by_pages(inbox: Inbox) -> list[Any]:
    found, page = [], inbox.page(limit=5)
    while page.next:
        found += page.chats
        page = inbox.page(limit=5, after=page.next)
    return [*found, *page.chats]


def test_many_members_of_one_chat(redis: RedisCluster, settings: Any) -> None:
    settings.COMPONENTS = {**settings.COMPONENTS, "MAX_CHATS_JOINED": 1}
    chat = Chat.create("jack", members=NAMES[:6], id="chat", settings=FREE)
    chat.add(NAMES[6:], by="jack")
    Chat("chat").leave("n1")
    Chat.create("jim", members=["n1"], id="other", settings=FREE)

    assert {name: [news.chat_id for news in Inbox(name).chats()] for name in NAMES} == {
        name: ["other" if name == "n1" else "chat"] for name in NAMES
    }
    chat.delete()
    assert all(Inbox(name).chats() == [] for name in NAMES if name != "n1")
    assert [news.chat_id for news in Inbox("n1").chats()] == ["other"]


def test_who_waits_at_any_node_is_woken(redis: RedisCluster) -> None:
    for name in NAMES[:4]:
        Chat.create(name, members=["jack"], id=name, settings=FREE)

    async def wait_for_each() -> list[str]:
        found = []
        inbox = Inbox("jack")
        positions = (await inbox.achanges({})).positions
        for name in NAMES[:4]:
            waiting = asyncio.create_task(inbox.achanges(positions, wait=20))
            mail = asyncio.create_task(Mailbox(name).apull(wait=20))
            seen = asyncio.create_task(Presence(name).aattend("jack", typing=(), wait=20))
            await asyncio.sleep(0)
            await Chat(name).asend(name, "hello")
            await Mailbox(name).apush("jack", name)
            await Presence(name).atype(name)
            changes = await waiting
            found += [news.chat_id for news in changes.chats]
            assert [each.text for each in await mail] == [name]
            assert (await seen).typing
            positions = changes.positions
        return found

    assert asyncio.run(wait_for_each()) == NAMES[:4]


def test_mailboxes(redis: RedisCluster) -> None:
    for name, number in NUMBERS.items():
        for _ in range(number):
            Mailbox(name).push("jill", name)
        assert {mail.text for mail in Mailbox(name).pull(2)} == {name}

    reader = MailboxReader()
    assert {info.name: info.depth for info in reader.page(limit=100)} == NUMBERS
    assert_paged(reader)
    assert [mail.text for mail in reader.messages("n3")] == ["n3"] * 4
    assert find_mailbox("n3")


def test_books_and_contacts(redis: RedisCluster) -> None:
    for name, number in NUMBERS.items():
        book = AddressBook(name)
        book.load([(at, f"Ann {at}") for at in range(number)])
        for at in range(number):
            book.select(at)
        RecentContacts("jack").touch(name, label=f"Label {name}")
        RecentContacts(name).touch("jack")

    reader = AddressBookReader()
    assert reader.names() == sorted(NAMES)
    looked = [info and info.count for info in reader.look([*NAMES, "none"])]
    assert looked == [*NUMBERS.values(), None]
    assert {info.name: info.selected for info in reader.page(limit=100)} == NUMBERS
    assert find_book("n3")
    assert [each.id for each in AddressBook("n3").complete("ann", limit=9)] == ["3", "2", "1", "0"]

    recent = RecentContacts("jack")
    assert recent.touch_all({"n2": "", "new": ""}) == ["new"]
    assert recent.list()[1].label == "Label n2"
    assert recent.erase(["none"]) == MANY
    assert [RecentContacts(name).list() for name in ("jack", *NAMES)] == [[]] * (MANY + 1)
    book = AddressBook("n3")
    book.load([(9, "Joe")], replace=True)
    assert [each.id for each in book.complete("j")] == ["9"]
    book.erase()
    assert "n3" not in reader.names()


def test_counters(redis: RedisCluster) -> None:
    def of(prefix: str) -> list[str]:
        return [f"{prefix}:{name}" for name in NAMES]

    for name, number in NUMBERS.items():
        count(f"paid:{name}", number)
        for _ in range(number):
            measure(f"pay-us:{name}", 100 * number)
    flush()
    count("paid:n0", 1)
    asyncio.run(aflush())
    count("paid:n0", -1)
    flush()
    Counter("alone").update(7)
    Marks().add("version 1")

    reader = CounterReader()
    found = reader.read(of("paid"), 3600)
    assert [series.total for series in found.values()] == [*NUMBERS.values()]
    marked, marks = reader.read_marked(of("paid"), 3600)
    assert [series.total for series in marked.values()] == [*NUMBERS.values()]
    assert [mark.name for mark in marks] == ["version 1"]
    assert [each.count for each in reader.histograms(of("pay-us"), 3600).values()] == [*NUMBERS.values()]
    best = sorted(NUMBERS.items(), key=lambda pair: -pair[1])[:5]
    assert [(each.name, each.count) for each in reader.top("paid", 5)] == [
        (f"paid:{name}", number) for name, number in best
    ]
    assert reader.sizes(["paid", "pay-us", "none"]) == {"paid": MANY, "pay-us": MANY, "none": 0}
    assert sorted(each.name for each in reader.page(family="paid", limit=100)) == sorted(of("paid"))
    assert reader.count() == len(reader.page(limit=100)) == 2 * MANY + 1
    assert find_counter("n3")
    assert clean().mended == 0


def test_rows(redis: RedisCluster) -> None:
    rows = cache()
    rows.schedule_many({name: 60 + number for name, number in NUMBERS.items()})
    loader = Loader()
    claims = loader.claim(100).claims
    assert claimed(loader.claim(100)) == []
    bad = {member("items", "n3"): "broken"}
    stored = {name: ["sword", number] for name, number in NUMBERS.items() if name not in ("n3", "n4")}
    assert loader.store(claims, bodies(stored)) == set()
    loader.fail(claims, bad)
    loader.release(claims, [member("items", "n4")])

    found = rows.get_many(NAMES)
    assert {key: row["stock"] for key, row in found.items()} == {k: v for k, (_s, v) in stored.items()}
    reader = RowReader()
    assert [(info.name, info.count, info.failing) for info in reader.names()] == [("items", MANY, 1)]
    assert {info.key: info.delay for info in reader.page(limit=100)} == {
        k: 60 + v for k, v in NUMBERS.items()
    }
    assert len(reader.of("items").members) == MANY
    assert reader.failures().members == [*bad]
    assert find_row("n5")

    assert rows.refresh("n1", "none", "n2") == {"none"}
    assert {*claimed(loader.claim(100))} >= {"n1", "n2", "n4"}
    rows.invalidate("n1", "n5", "n6")
    assert {*rows.get_many(["n1", "n5", "n6", "n7"])} == {"n7"}
    loaded = rows.get_or_load(["n5", "n8", "x"], lambda keys: {key: ["bow", 9] for key in keys}, delay=60)
    assert {key: row["stock"] for key, row in loaded.items()} == {"n5": 9, "n8": 9, "x": 9}

    controls = RowControls("items")
    assert controls.set_delay(5, "n1", "none", "n9") == {"none"}
    assert controls.refresh_all().rows == MANY
    rows.unschedule("n1", "n2")
    assert controls.remove_all().rows == MANY - 2
    assert reader.count() == 0


def test_logs(redis: RedisCluster) -> None:
    for name, number in NUMBERS.items():
        note_job(name)
        aggregation = Aggregation("places", job=name)
        aggregation.join()
        for at in range(number % 3 + 1):
            append(stream(job=name), at)
        consumer = aggregation.consumer()
        [chunk] = consumer.claim(1)
        assert consumer.read(chunk)
        consumer.flush([chunk], tables({DAY: {"US": number}}))

    assert list_jobs() == sorted(NAMES)
    for name, number in NUMBERS.items():
        status = look_at(name)
        assert (status.name, status.chunks) == (name, number % 3)
        assert Aggregation("places", job=name).table(f"daily:country:{DAY}") == {"US": number}
        assert dead_chunks(name, "places") == []
    traffic = Traffic("n3")
    assert [(row.id, row.count) for row in traffic.report(first=DAY, last=DAY).rows] == [("US", 4)]
    assert traffic.forget(DAY.replace(day=11)) == 1


def test_tables_of_addresses(redis: RedisCluster, tmp_path: Path) -> None:
    for name in ("one", "two"):
        import_places(write_mmdb(tmp_path / name, {"1.0.0.0/8": city(name.upper())}), name=name)

    assert [locate("1.2.3.4", table=name).country for name in ("one", "two")] == ["ONE", "TWO"]
    assert asyncio.run(alocate("1.2.3.4", table="two")).country == "TWO"
    remove("one")
    assert [look("one"), look("two") is None] == [None, False]


def test_queues(redis: RedisCluster, one_of_each: dict[State, str]) -> None:  # noqa: F811
    queue = TaskQueue()
    queue.push("tests.tasks.echo", [1], queue="mail")

    assert {state: [info.id for info in queue.tasks("default", state)] for state in one_of_each} == {
        state: [task_id] for state, task_id in one_of_each.items()
    }
    for state, task_id in one_of_each.items():
        assert queue.present("default", [state], [task_id, "none"]) == [task_id]
        assert [each.id for each in queue.look("default", state, lambda _info: True).found] == [task_id]
    assert queue.names() == ["default", "mail"]
    assert {stats.name: stats.ready for stats in queue.all_stats()} == {"default": 1, "mail": 1}
    assert queue.overview()
    assert queue.stats_and_names("mail")[1] == ["default", "mail"]
    assert queue.cancel([one_of_each["ready"]]).at_once == 1
    Ticks().declare(["hourly"])
    assert Ticks().outcomes(["hourly"]) is not None


@pytest.mark.django_db
def test_what_looks_at_all_services(redis: RedisCluster, nodes: Masters, settings: Any) -> None:
    settings.COMPONENTS = {**settings.COMPONENTS, "METRICS": True}
    for name in NAMES:
        lock(name, timeout=60).acquire()
        Mailbox(name).push("jill", "hello")
        Chat.create(name, id=name, settings=FREE)
        cache().schedule(name, 60)
        Semaphore(name, limit=2).acquire()
    sum_up("tasks:enqueued", 3, of="default")
    flush()

    gathered = gather()
    assert gathered.missing == {}
    assert gathered.found.pop("sums")["tasks:enqueued"]["default"].count == 3
    families = [family for some in gathered.found.values() for family in some]
    figures = {family.name: sum(value for _labels, value in family.samples) for family in families}
    assert figures["components_locks_held"] == figures["components_rows_scheduled"] == MANY
    assert figures["components_redis_up"] == len(nodes)
    wrong = [each.msg for each in diagnose() if str(each.id).startswith("components.E")]
    assert [each for each in wrong if "are late" not in each] == []  # nobody loads the rows


def test_the_cache_of_django(redis: RedisCluster) -> None:
    django_cache.set_many(NUMBERS)
    lock("kept", timeout=60).acquire()

    assert django_cache.get_many([*NAMES, "none"]) == NUMBERS
    django_cache.delete_many(NAMES[:3])
    assert {*django_cache.get_many(NAMES)} == {*NAMES[3:]}
    django_cache.clear()
    assert django_cache.get_many(NAMES) == {}
    assert LockReader().count() == 1
