"""
What is done with each service, in tests in which every call of a script is repeated, or in which keys must lie in one
slot: each script that changes something, with what it guards against.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest
from redis import Redis

from components.exceptions import (
    Blocked,
    BookNotFound,
    ChunksLost,
    CopiedElsewhere,
    LockLost,
    LogsFull,
    MailboxFull,
    NotAllowed,
    StaleFence,
    TooFast,
)
from components.kit import leases
from components.kit.client import get_client
from components.kit.decoding import EPOCH
from components.kit.keyspace import bucket
from components.kit.pubsub import channel
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.services.autocomplete import AddressBook, RecentContacts
from components.services.autocomplete.address_book import PRUNE
from components.services.autocomplete.keys import BookKeys
from components.services.autocomplete.loading import Load, row
from components.services.chat import Chat, Inbox, Presence
from components.services.chat.chat import CHANGE
from components.services.chat.inbox_index import DROP, FORGET, HINT, YOUNG
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.chat.limits import CHARGE
from components.services.counters import Counter, Marks, cleaning, flush, measure
from components.services.counters.additions import SUM, Added, forget
from components.services.counters.keys import CounterKeys, SumSourceKeys
from components.services.geo.importing import activate, put, remove
from components.services.geo.layout import Manifest
from components.services.locks import FencedValue, Lock, LockReader, lock
from components.services.locks.keys import LockKeys
from components.services.locks.named import key_of
from components.services.logs import Aggregation, Block, Place, Sample
from components.services.logs.keys import JobKeys
from components.services.mailboxes import Mailbox
from components.services.queues import Consumer, NewTask, Progress, TaskQueue, Ticks
from components.services.queues.keys import BackendKeys, QueueKeys
from components.services.rates import RateLimit
from components.services.rates.keys import RateKeys
from components.services.rows import Loader, RowControls, member
from components.services.rows.keys import DaemonKeys
from components.services.rows.loader import CLAIM, begin
from components.services.semaphores import Semaphore
from components.services.semaphores.keys import SemaphoreKeys
from tests.support import chats, logs
from tests.support.chats import FREE
from tests.support.queues import (
    ECHO,
    LONG_AGO,
    age,
    claim,
    claim_one,
    end_lease,
    expired,
    failed,
    hand_in,
    options,
    push_many,
    push_new,
    succeeded,
    to_retry,
)
from tests.support.rates import let_pass as let_calls_pass
from tests.support.rows import SHAPE, bodies, cache, let_pass, refresh
from tests.support.semaphores import Waiter, take
from tests.support.semaphores import let_pass as let_permits_pass

Scenario: TypeAlias = Callable[[Redis], object]
#: By service.
SCENARIOS: dict[str, list[Scenario]] = defaultdict(list)


def of(service: str) -> Callable[[Scenario], Scenario]:

    def add(scenario: Scenario) -> Scenario:
        def patiently(redis: Redis) -> None:
            with pytest.MonkeyPatch.context() as patch:  # on a busy machine waiters would seem dead
                patch.setattr(leases, "ALIVE", 20_000_000)
                scenario(redis)

        SCENARIOS[service].append(patiently)
        return scenario

    return add


# Queues


@of("queues")
def pushing(redis: Redis) -> None:
    """Plain, delayed and periodic tasks, and those with unique keys and ticks, new, taken and twice."""
    queue, noon = TaskQueue(), datetime(2026, 1, 1, 12, tzinfo=UTC)
    queue.push_many([NewTask(name=ECHO, args=[number], queue="mail", delay=60) for number in range(3)])
    queue.push_many([NewTask(name=ECHO, args=[1], queue="mail", priority=7, id="one")])
    days = [noon.replace(day=day) for day in (1, 2, 2)]
    queue.push_many([NewTask(name=ECHO, at=day, tick=("nightly", day)) for day in days])
    tasks = [NewTask(name=ECHO, unique=key) for key in ("a", "b", "b")]
    tasks += [NewTask(name=ECHO, tick=(name, noon)) for name in ("hourly", "daily", "daily")]
    tasks.append(NewTask(name=ECHO, unique="c", tick=("hourly", noon + timedelta(hours=1)), delay=60))
    queue.push_many(tasks)
    queue.push_many([NewTask(name=ECHO, unique="a"), NewTask(name=ECHO, tick=("hourly", noon))])
    Ticks().declare(["hourly", "new"])


@of("queues")
def advancing(redis: Redis) -> None:
    """Good, bad and retried tasks, and such as are unique, awaited, cancelled, lost and taken over."""
    consumer, dying, queue = Consumer(), Consumer(), TaskQueue()
    tasks = [NewTask(name=ECHO, unique=f"{number}", lease=50) for number in range(8)]
    pushed = [info.id for info in queue.push_many(tasks) if info]
    claimed = claim(consumer, 6)
    [lost] = claim(dying, 1)
    for task in claimed:
        consumer.progress(task, Progress(3, 4, "nearly", EPOCH))
        queue.wait_for(task.id, wait=0)
    queue.cancel("default", [*pushed[3:6], "nothing"])
    end_lease(redis, pushed[5], lost.id)
    queue.promote("default", [*push_many(2, delay=60), pushed[0], "nothing"])
    outcomes = [succeeded, failed, to_retry, to_retry, succeeded]
    finished = [end(task) for end, task in zip(outcomes, claimed, strict=False)]
    hand_in(consumer, *finished)
    consumer.advance(consumer.request({"default": 3}, 3, [failed(claimed[2]), failed(lost)]))
    queue.resend("default", [pushed[1], "nothing"])
    queue.delete("default", "successful", [pushed[0], "nothing"])
    hand_in(consumer, failed(claim_one(consumer)))
    brief = push_new(unique="brief", expires=60)
    hand_in(consumer, *map(expired, claim(consumer, 9)))
    queue.resend([brief])
    for state in ("ready", "delayed", "dead"):
        queue.delete("default", state, [*pushed, "nothing"])


@of("queues")
def releasing(redis: Redis) -> None:
    consumer, queue = Consumer(), TaskQueue()
    pushed = push_many(5)
    claimed = claim(consumer, 4)
    end_lease(redis, pushed[2])
    taken_over = claim_one(Consumer())
    queue.cancel("default", pushed[1:2])
    queue.tell(consumer.id, "quiet")
    consumer.renew(["default"], claimed)
    consumer.release([claimed[0]], begun=claimed)
    consumer.release([claimed[3]], delay=60)
    consumer.release([*claimed, taken_over])
    queue.pause("default")
    queue.resume("default")


@of("queues")
def parking(redis: Redis) -> None:
    consumer, queue = Consumer(), TaskQueue()
    push_many(3)
    gone, *_others = tasks = claim(consumer, 3)
    consumer.park("limit", tasks)
    queue.cancel("default", [gone.id])
    consumer.unpark("limit", by="caller")
    places = [SimpleNamespace(place=1, id="one"), SimpleNamespace(place=2, id="two")]
    park = Script("queues/park")
    at_once(
        park.run(
            get_client(), BackendKeys("default"), limit="api", queue="default", kept=60_000, tasks=places
        )
    )


@of("queues")
def trimming(redis: Redis) -> None:
    consumer = Consumer()
    push_many(9)
    old = claim(consumer, 3)
    hand_in(consumer, *map(failed, old[:2]), succeeded(old[2]))
    keys = QueueKeys("default", "default")
    for key in (keys.dead, keys.successful):
        age(redis, key, timedelta(days=365))
    hand_in(consumer, *map(failed, claim(consumer, 5)))
    with options(dead_limit=4):
        consumer.trim("default")


# Locks and semaphores


@of("locks")
def locks(redis: Redis) -> None:
    """Free, held, in turn and by force; extended, to its end and beyond; left and lost."""
    held, waiter = lock("a", timeout=10, fair=True), lock("a", fair=True)
    held.acquire(token="one")
    held.extend(20)
    held.reacquire()
    assert not lock("a").acquire(token="other", blocking=False)
    for token in (b"two", b"three", b"four"):
        at_once(waiter._try(token, waits=True))
    at_once(held._leave(b"two"))
    held.release()
    redis.zadd(LockKeys.named("a").beats, {b"three": 1, b"four": 1})  # as if they had died long ago
    waiter.acquire(token="three")
    at_once(waiter._leave(b"three"))
    for end in (lambda each: each.extend(-20), lambda each: each.extend(0, replace_ttl=True)):
        ended = lock("b", timeout=10)
        ended.acquire(token="one")
        end(ended)
    forced = lock("c", timeout=None)
    forced.acquire(token="one")
    LockReader().force_release(key_of("c"), "one", forced.fence)
    lost = lock("d", timeout=None)
    lost.acquire(token="one")
    redis.delete(key_of("d"))
    with pytest.raises(LockLost):
        lost.release()


@of("locks")
def locks_at_keys_of_ones_own(redis: Redis) -> None:
    """One of them is held by redis-py's Lock."""
    with Lock(redis, "a"):
        assert not Lock(redis, "a").acquire(blocking=False)
    redis.set("a", "other")
    assert not Lock(redis, "a").acquire(token="one", blocking=False)


@of("locks")
def fenced_values(redis: Redis) -> None:
    value = FencedValue("a")
    value.set("old", fence=1, ttl=60)
    value.set("new", fence=3)
    with pytest.raises(StaleFence):
        value.set("old", fence=2)
    with pytest.raises(StaleFence):
        value.delete(fence=2)
    value.delete(fence=4)


@of("semaphores")
def permits(redis: Redis) -> None:
    semaphore = Semaphore("api", limit=5)
    light, heavy = take(semaphore)[0], take(semaphore, weight=4)[0]
    waiter, other = Waiter(semaphore, weight=3), Waiter(semaphore)
    waiter.ask()
    other.ask()
    other.leave()
    light.refresh()
    assert semaphore.try_acquire() is None
    semaphore.set_limit(6)
    semaphore.reset_limit()
    heavy.release()
    waiter.ask()
    semaphore.evict(light.id)


@of("semaphores")
def permits_after_all_others_died(redis: Redis) -> None:
    """Holders, and the first of the queue; the next is woken."""
    semaphore = Semaphore("api", limit=5, lease=10)
    take(semaphore)
    take(semaphore, weight=4)
    dead, waiter, other = Waiter(semaphore), Waiter(semaphore, weight=3), Waiter(semaphore)
    dead.ask()
    let_permits_pass(redis, "api", 21)
    Semaphore("api", limit=5).acquire(weight=5)
    for each in (waiter, other):
        each.ask()
    redis.zadd(SemaphoreKeys("api").queue, {waiter.id: LONG_AGO})
    let_permits_pass(redis, "api", 30)
    redis.zadd(SemaphoreKeys("api").beats, {waiter.id: 2**53, other.id: 2**53})
    waiter.ask()


@of("rates")
def rates(redis: Redis) -> None:
    """Counted, waiting, refused, and after a month without a call."""
    rate = RateLimit("api", "2/h")
    for caller in ("one", "two", "three", "three"):
        rate.ask("joe", caller=caller)
    with pytest.raises(TooFast):
        rate.acquire("joe")
    let_calls_pass(redis, 3_600, key="joe")
    rate.ask("joe", caller="three")
    redis.zadd(RateKeys("api").names, {"old": 1, "api": 2})
    rate.ask("joe", caller="five")


# Chats and mailboxes


def _chat(**settings: Any) -> Chat:
    given = replace(FREE, **settings)
    chat = Chat.create("joe", members=["jack", "jill"], id="guild:7", client_id="first", settings=given)
    for number in range(2):
        chat.send("joe", f"text {number}", client_id=f"joe {number}", mentions=["jill"])
        chat.send("jack", f"text {number}", client_id=f"jack {number}")
    return chat


@of("chat")
def messages(redis: Redis) -> None:
    """Sent, quoted, changed and changed back, reacted to, read and deleted."""
    chat = _chat(rate_limit=100, rate_period=36_000.0)
    chat.send("jack", "hello", mentions=["jill", "joe"], client_id="a")
    chat.send("jack", "hello", reply_to=2)
    chat.edit("jack", 3, "changed", mentions=["jill"])
    chat.edit("jack", 3, "text 0")
    chat.react("jack", 3, "👍")
    chat.react("jill", 3, "👍")
    chat.react("jack", 3, "👍", is_on=False)
    chat.acknowledge("jill", 5)
    chat.delete_message(3, by="jack")
    chat.trim(before=4)
    chat.delete()


@of("chat")
def members(redis: Redis) -> None:
    """Added, muted, made owner, sent away, blocked, and gone by themselves, until nobody is left."""
    chat = _chat()
    _new, out = at_once(chat._enter(get_client(), "joe", ["mary", "jack", "joan"]))
    at_once(chat._enter(get_client(), "joe", ["mary", "jack", "joan"], after=out))
    chat.add(["mary"])
    chat.mute("jack", seconds=60, by="joe")
    chat.unmute("jack", by="joe")
    chat.mute("jack")
    chat.leave("jack")
    chat.add(["jack"])
    chat.leave("jack")
    chat.unmute("jack", by="joe")
    chat.kick("mary", by="joe")
    chat.block("jack", by="joe")
    chat.unblock("jack", by="joe")
    chat.set_role("jill", "owner", by="joe")
    chat.set_role("joe", "member", by="joe")
    chat.rename("Party", by="jill")
    with pytest.raises(NotAllowed):
        chat.close(by="joe")
    for person in ("joe", "jill"):
        chat.leave(person)


@of("chat")
def limits(redis: Redis) -> None:
    """Of a chat that drops what was read, of one that is configured, and of creating and adding."""
    chat = _chat(drop_read_after=60)
    chats.let_pass(redis, chat.id, 3600)
    chat.acknowledge("jill", 5)
    args = {"least": "o", "by": "joe", "call": "a call", "event": b"e", "channel": channel("chat", "one")}
    facts = ["max_age", "0", "60000", "max_messages", "*", "9"]
    at_once(CHANGE.run(get_client(), ChatKeys(chat.id), facts=facts, **args))
    args = {"people": 5, "create_limit": 2, "create_period": 60_000, "add_limit": 9, "add_period": 60_000}
    keys, args["most_created"] = InboxKeys("joe"), 3
    at_once(CHARGE.run(get_client(), keys, id=chat.id, call="one", **args))
    at_once(CHARGE.run(get_client(), keys, id="", call="other", **args))


@of("chat")
def inboxes(redis: Redis) -> None:
    """Hints that are written, forgotten and dropped; presence; and the erasure of a person."""
    chat = _chat()
    chat.react("jack", 2, "👍")
    chat.kick("jack")
    Presence(chat.id).attend("joe")
    Presence(chat.id).type("joe")
    Presence(chat.id).attend("joe", is_shown=False)
    client, keys = get_client(), InboxKeys("jack")
    at_once(HINT.run(client, keys, id=chat.id, most=9, is_done=1))
    redis.zadd(keys.hints, {chat.id: 1, "other": 2})
    at_once(FORGET.run(client, keys, young=YOUNG, ids=[chat.id, "other"]))
    redis.zadd(keys.past, {"third": 2})
    at_once(DROP.run(client, keys, chats=["other", 1, 1, 0, "third", "", 2, 0]))
    Inbox("jack").erase()


@of("mailboxes")
def mails(redis: Redis) -> None:
    """Pushed, again, too many and by somebody who is blocked; pulled, dropped and acknowledged."""
    mailbox = Mailbox("jack", limit=3)
    for text in "abc":
        mailbox.push("jill", text, data={"a": []}, client_id=text)
    mailbox.push("jill", "b", data={"a": []}, client_id="b")
    with pytest.raises(MailboxFull):
        mailbox.push("jill", "d", client_id="d")
    mailbox.pull(1)
    dropping = Mailbox("jack", limit=2, when_full="drop_oldest")
    dropping.push("jill", "e", client_id="e")
    after = mailbox.pull(2, newest=True)[-1].id
    mailbox.pull(2, after=after)
    mailbox.push("jill", "f")
    mailbox.acknowledge(mailbox.pull(2)[-1].id)
    mailbox.block("jill")
    with pytest.raises(Blocked):
        mailbox.push("jill", "g", client_id="g")
    mailbox.push("joe", "a")
    mailbox.clear()
    mailbox.push("joe", "b")
    mailbox.erase()


# Autocomplete


@of("autocomplete")
def books(redis: Redis) -> None:
    book, loading = AddressBook("guild:7"), Load("guild:7", replaces=True)
    book.load([(1, "ann smith"), (2, "bob"), (3, "Éva")])
    book.select(1)
    book.add("Bea", id=1)
    book.rename(1, "Beate")
    book.rename(9, "Joe")
    book.remove(2)
    at_once(loading.begin(redis))
    at_once(loading.write(redis, [row(1, "new", words=True), row(2, "new", words=True)]))
    book.rename(3, "bea")
    book.remove(1)
    book.add("joe", id="y")
    at_once(loading.finish(redis))
    book.select(3)
    book.select(9)
    with pytest.raises(BookNotFound):
        AddressBook("none").select(1)
    keys = BookKeys(book.name)
    redis.zadd(keys.ranks, {"9": 700})
    at_once(PRUNE.run(get_client(), keys, ids=[1, 9]))
    at_once(book._list(get_client()))
    book.erase()
    AddressBook("other").vacate()


@of("autocomplete")
def contacts(redis: Redis) -> None:
    recent = RecentContacts("jack", limit=3)
    for contact in "abcda":
        recent.touch(contact, label=f"label {contact}")
    recent.remove("b")
    recent.remove("z")
    recent.clear()


# Counters, rows and tables of addresses


@of("counters")
def counters(redis: Redis) -> None:
    forget()
    Counter("hits").update(2)
    Counter("hits:/a").update()
    asyncio.run(Counter("hits:/a").aupdate(3))
    measure("pay-us", 1_500)
    flush()
    Marks().add("version 1")
    source = SumSourceKeys("all", "one")
    for call, name in ((1, "a"), (2, "b"), (1, "c")):  # the last is late
        at_once(SUM.run(get_client(), source, call=call, added=[Added(name, 3), Added("a", 1)]))
    wrong, names = f"{CounterKeys('00').names}-of-old", CounterKeys("00").names
    redis.set(wrong, "something else")
    redis.zadd(names, {"hits": 1, "other": 2**52})
    for key, kept in ((wrong, 0), (names, 3_600_000_000)):
        asked = {"kind": "zset", "latest": "", "longest": 3_600, "kept": kept}
        at_once(cleaning.MEND.run(get_client(), SimpleNamespace(key=key), **asked))


@of("rows")
def rows(redis: Redis) -> None:
    """Scheduled, loaded, refreshed while they are loaded, delayed, refused, released, failed and removed."""
    rows = cache()
    rows.schedule("1", 60)
    refresh({"1": ["sword", 3]})
    rows.schedule("1", 5)
    rows.refresh("1")
    loader = Loader()
    claims = loader.claim().claims
    rows.refresh("1")
    loader.store(claims, bodies({"1": None}))
    RowControls("items").set_delay(5, "1")
    rows.refresh("1")
    claims = loader.claim().claims
    rows.invalidate("1")
    loader.store(claims, bodies({"1": ["sword", 3]}))
    for end in (
        lambda claims: loader.release(claims, [member("items", "1")], pause=3),
        lambda claims: loader.fail(claims, {member("items", "1"): "ValueError: no"}),
        lambda claims: let_pass(redis, 60),  # its lease is over
        lambda claims: loader.store(claims, bodies({"1": ["sword", 3]})),
    ):
        let_pass(redis, 60)
        end(loader.claim().claims)
    let_pass(redis, 60)
    keys = DaemonKeys(bucket(member("items", "1")), "f" * 16)
    at_once(CLAIM.run(get_client(), keys, token=f"{'f' * 16}-1", limit=10, lease=5_000_000))
    at_once(begin(get_client(), [member("items", "2")], "f" * 16, SHAPE, None, 5))
    rows.unschedule("1")


def imported(version: str) -> None:
    for number in range(2):
        put("default", version, number, b"part")
    activate("default", version, Manifest(1, 1, 10, 5, 10, ["digest"] * 2, "test"))


@of("geo")
def tables_of_addresses(redis: Redis) -> None:
    imported("old")
    imported("new")
    put("default", "new", 1, b"part")
    assert activate("default", "newer", Manifest(1, 1, 10, 5, 10, ["digest"], "test"))  # it has no part
    remove("default")


# Logs


@of("logs")
def copying(redis: Redis) -> None:
    stream = logs.stream()
    stream.recognise(b"a line\n", "access.log")
    logs.append(stream, 0)
    with pytest.raises(LogsFull):
        logs.append(logs.stream(200), 1, wait=0)
    with pytest.raises(CopiedElsewhere):
        logs.append(stream, 2)
    block = logs.blocks(2)[1]  # after lines that were left out
    later = Block(block.data, block.after, block.start + 5_000, block.line + 2, block.lines, block.mark)
    stream.append(logs.FILE, later, name="access.log")
    assert stream.status().skipped == 2
    stream.recognise(b"another line\n", "other.log")
    redis.zadd(JobKeys("default").seen, {logs.FILE: 1})
    stream.forget(60)


@of("logs")
def finishing(redis: Redis) -> None:
    """A file from which lines were left out."""
    place = Place(500, 11, "-")
    logs.stream().finish(logs.FILE, place, after=0, name="access.log", size=500, state="damaged")
    assert logs.stream().status().skipped == 11


@of("logs")
def counting(redis: Redis) -> None:
    """By two aggregations: chunks whose lease is over, that are given up, sent again and discarded."""
    logs.fill(logs.stream(), 6)
    aggregation, other = logs.joined(tries=2), logs.joined("other")
    consumer, before = aggregation.consumer(), other.consumer()
    before.flush(before.claim(1), {})
    given_up, taken = consumer.claim(2)
    logs.let_leases_pass(redis, aggregation, [given_up.id])
    aggregation.consumer().claim(1)
    assert len(consumer.beat()) == 1
    with pytest.raises(ChunksLost):
        consumer.flush([given_up, taken], {"country:2011-10-10": {"US": 3}})
    logs.let_leases_pass(redis, aggregation, [given_up.id, taken.id])
    last = aggregation.consumer()
    chunks = last.claim(3)
    last.flush(chunks, {"values:path:served:2011-10-10": {f"*/200//{number}": 2 for number in range(1_003)}})
    [(dead, _at)] = aggregation.dead()
    aggregation.resend([dead])
    logs.let_leases_pass(redis, aggregation)
    for _ in range(3):
        aggregation.consumer().claim()
        logs.let_leases_pass(redis, aggregation)
    aggregation.discard([chunk for chunk, _at in aggregation.dead()])
    last.sample([Sample("date", "a.log", 3, 80, "1.2.3.4 2011-02-30")])
    before.claim(1)
    before.release()
    Aggregation("geo").join()
    other.leave()
