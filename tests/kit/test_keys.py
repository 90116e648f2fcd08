"""The keyspace is what keys.py says: names, types, slots, and who lets go of what."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter

import pytest
from django.test.utils import override_settings
from hypothesis import assume, example, given
from hypothesis import strategies as st
from redis import Redis
from redis.crc import key_slot

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.keyspace import bucket
from components.services.autocomplete import AddressBook, RecentContacts
from components.services.autocomplete import keys as autocomplete_keys
from components.services.autocomplete.loading import Load, row
from components.services.chat import Chat, ChatSettings, Presence, limits
from components.services.chat.hints import YOUNG, forget_hints
from components.services.chat.keys import ChatKeys, InboxKeys
from components.services.counters import Counter, Marks, flush
from components.services.counters.keys import MarkKeys, SumSourceKeys
from components.services.counters.sums import SUM, Added
from components.services.geo.importing import activate, put
from components.services.geo.layout import Manifest
from components.services.locks import Lock
from components.services.locks import drop_ins as locks_module
from components.services.locks.fences import FencedValue
from components.services.locks.named import key_of
from components.services.logs import Aggregation, Sample, WorkerRecord, note_job
from components.services.mailboxes import Mailbox
from components.services.queues import Consumer, NewTask, Progress, TaskQueue, Ticks
from components.services.queues import keys as queues_keys
from components.services.queues.consumer import Parking
from components.services.rows import Loader, RowCache, Shape, Stored, name_and_key
from components.services.semaphores import Semaphore
from docs.keyspace import END, SCHEMA, SUFFIXES, Key
from tests.support.logs import append, let_leases_pass, stream
from tests.support.mailboxes import sent
from tests.support.queues import ECHO, claim, failed, hand_in, push_many, succeeded
from tests.support.semaphores import Waiter, take
from tests.support.waiting import eventually

TYPES = {
    "HASH": b"hash",
    "SET": b"set",
    "ZSET": b"zset",
    "LIST": b"list",
    "STRING": b"string",
    "STREAM": b"stream",
}
names = st.text(min_size=1, max_size=20) | st.text("a{}%7BD:", min_size=1, max_size=4)


def tag(key: str) -> str:
    """What a cluster hashes: the text between the first { and the next }."""
    match = re.search(r"\{([^}]*)\}", key)
    assert match is not None
    return match[1]


def test_each_key_reads_prefix_pattern_name_part_and_says_its_type_and_its_end() -> None:
    assert {key.service for key in SCHEMA.values()} >= {"chat", "mailboxes", "queues"}
    for label, key in SCHEMA.items():
        made = key()
        assert re.fullmatch(r"components:[a-z]+:\{[^{}]+\}:[a-z-]+(:(mail|shop)(:mail)?)?", made), label
        assert re.match(r"(HASH|SET|ZSET|LIST|STRING|STREAM)\b", key.doc), label
        assert END.search(key.doc), label
        with override_settings(COMPONENTS={"PREFIX": "staging"}):
            assert key() == made.replace("components:", "staging:", 1)


@given(names, names)
def test_all_keys_of_one_name_lie_in_one_slot_whatever_the_name(name: str, part: str) -> None:
    made = [(entity_of(label), key(name, part)) for label, key in SCHEMA.items()]

    for _entity, group in groupby(made, key=itemgetter(0)):
        alike = [key for _, key in group]
        assert len({key_slot(key.encode("utf-8", "surrogatepass")) for key in alike}) == 1
        assert len({tag(key) for key in alike}) == 1


def entity_of(label: str) -> tuple[str, str]:
    """What has all its keys in one slot: that of a class, or what the functions of a service are for."""
    kind = label.partition(".")[0] if "Keys." in label else ""
    return SCHEMA[label].service, kind or SCHEMA[label]().split(":")[1]


@example("a}b", "a}c")
@example("a{", "a%7B")
@given(names, names)
def test_different_names_have_different_keys_and_tags(name: str, other: str) -> None:
    assume(name != other)

    assert tag(queues_keys.BackendKeys(name).tasks) != tag(queues_keys.BackendKeys(other).tasks)


@given(names, names)
def test_no_two_parts_share_a_key_whatever_they_are_called(part: str, other: str) -> None:
    made = {label: {key("shop", each) for each in (part, other)} for label, key in SCHEMA.items()}

    for label, found in made.items():
        assert len(found) == (len({part, other}) if SCHEMA[label].has_part else 1)
    assert len(set().union(*made.values())) == sum(map(len, made.values()))


def hand_over(redis: Redis, key: str) -> dict[str, str]:
    """
    One releases the lock at *key*, another waits and is woken, a third takes it, leaves it without knowing its
    fence, and takes it again; what follows the keys that are prefixes.
    """
    first, second, third = (Lock(redis, key, timeout=9) for _ in range(3))
    assert first.acquire()
    at_once(second._try(b"second", waits=True))
    digits = str(first.fence)[:-8]
    first.release()
    assert third.acquire()
    at_once(third._leave(third.local.token))
    let_go = third.local.token.decode()
    assert third.acquire(token="third")
    made = {"wake": "second", "released": digits, "let_go": let_go}
    return {f"LockKeys.{name}": f":{suffix}" for name, suffix in made.items()}


def look_up(redis: Redis, name: str) -> dict[str, str]:
    """A book, a load beside it, and a person's contacts, so that all their keys are there; the ends of these."""
    book = AddressBook(name)
    for number in range(70):
        book.add("ann", id=number)
        book.select(number)
    RecentContacts(name).touch("jill")
    load = Load(name, replaces=True)
    at_once(load.begin(redis))
    at_once(load.write(redis, [row(1, "bea", words=True)]))
    book.add("joe", id=71)
    RecentContacts(name).remove("joe")
    answered, *others = sorted(redis.keys("*:books:*:calls:*"))
    redis.delete(*others)
    [dropped] = redis.keys("*:contacts:*:calls:*")
    redis.rename(redis.keys("*:books:*:names")[0], autocomplete_keys.names(name))
    ends = {"BookKeys.calls": answered, "ContactsKeys.calls": dropped}
    return {label: f":{key.decode().rpartition(':')[2]}" for label, key in ends.items()}


def share(name: str) -> dict[str, str]:
    """One permit is released, a heavy one held, one waited for; what follows the keys that are prefixes."""
    semaphore = Semaphore(name, limit=3)
    released, _held = take(semaphore)[0], take(semaphore, weight=2)
    waiter = Waiter(semaphore, weight=3)
    waiter.ask()
    released.release()
    semaphore.set_limit(4)
    return {"SemaphoreKeys.ended": f":{released.id}", "SemaphoreKeys.wake": f":{waiter.id}"}


#: What lies in buckets by name, beginnings of keys.
_IN_BUCKETS = (
    "CounterKeys",
    "DaemonKeys",
    "FamilyKeys",
    "MarkKeys",
    "RowKeys",
    "SourceKeys",
    "chat.",
    "locks.",
    "mailboxes.",
    "semaphores.",
)


def correspond(name: str) -> str:
    """A mailbox of which something is known in all its keys; the part of that of what was pushed."""
    mailbox = Mailbox(name, limit=1, when_full="drop_oldest")
    for text in ("one", "two"):
        mailbox.push("jill", text)
    mailbox.pull()
    mailbox.block("joe")
    return sent(name).rpartition(":sent:")[2]


def tally(redis: Redis, name: str) -> dict[str, str]:
    """A counter, of the family of its own name, of which something is known in all its keys; the parts of these."""
    Marks().add("version 1")
    redis.rename(redis.keys("*:marks")[0], MarkKeys(bucket(name)).marks)
    Counter(f"{name}:").measure(5)
    flush()
    tag = bucket(f"{name}:")
    for key in redis.keys(f"*:counters:{{{tag}}}:*"):
        redis.rename(key, key.replace(b"{%s}" % tag.encode(), b"{%s}" % bucket(name).encode()))
    for kind in ("samples", "histograms"):
        redis.delete(*(key for key in redis.keys(f"*:{kind}:*") if b"/60:" not in key))
    [samples], [histograms] = redis.keys("*:samples:*"), redis.keys("*:histograms:*")
    [source] = redis.keys("*:source:*")
    return {
        "CounterKeys.histograms": histograms.decode().rpartition(":histograms")[2],
        "CounterKeys.samples": samples.decode().rpartition(":samples")[2],
        "SourceKeys.source": source.decode().rpartition(":source:")[2],
    }


def sum_up(name: str) -> None:
    """Add to the sums *name*, by a source of that name."""
    at_once(SUM.run(get_client(), SumSourceKeys(name, name), call=1, added=[Added("tasks:enqueued  ", 1)]))


def cache_rows(redis: Redis, name: str) -> dict[str, str]:
    """A row that was loaded and claimed again, and one that has failed, in one bucket; the parts of their keys."""
    cache, loader = RowCache(name, Shape([("stock", "integer")])), Loader()
    loaded = f"{name}:1"
    tag = bucket(loaded)
    failing = next(f"{name}:{number}" for number in range(2, 500) if bucket(f"{name}:{number}") == tag)
    cache.schedule_many({name_and_key(each)[1]: 0.01 for each in (loaded, failing)})
    claims = loader.claim().claims
    loader.store(claims, {loaded: Stored(True, cache.shape.encode(loaded, [3]))})
    loader.fail(claims, {failing: "ValueError"})
    assert eventually(lambda: len(loader.claim()))
    for key in redis.keys(f"*:rows:{{{tag}}}:*"):
        redis.rename(key, key.replace(b"{%s}" % tag.encode(), b"{%s}" % bucket(name).encode()))
    return {"RowKeys.row_of": loaded, "RowKeys.claim_of": loaded, "DaemonKeys.call": loader.id}


def hand_out_logs(redis: Redis, name: str) -> dict[str, str]:
    """A job of which something is known in all its keys; the parts of these."""
    stream(job=name).recognise(b"a line\n", "access.log")
    for number in range(3):
        append(stream(job=name), number)
    one, other = Aggregation("one", job=name, tries=1), Aggregation("other", job=name)
    for each in (one, other):
        each.join()
    dying, living = one.consumer(), one.consumer()
    dying.claim(1)
    let_leases_pass(redis, one)
    counted, kept = living.claim(2)
    living.flush([counted], {"country:2011-10-10": {"US": 1}})
    living.sample([Sample("date", "a.log", 3, 80, "1.2.3.4 2011-02-30")])
    living.tell(WorkerRecord("host", 7, "2026-01-01T00:00:00+00:00", 1, 1, 0.5, "book", "city", "naive"))
    redis.delete(*redis.keys(f"*:call:{dying.id}"))
    note_job(name)
    return {
        "JobKeys.chunk": kept.id,
        "JobKeys.call": living.id,
        "JobKeys.flushed": living.id,
        "JobKeys.samples": "one",
        "JobKeys.worker": living.id,
        "JobKeys.counts": "country:2011-10-10",
    }


def chart(redis: Redis, name: str) -> dict[str, str]:
    """A table of addresses; the parts of its keys."""
    put(name, "new", 0, b"part")
    activate(name, "new", Manifest(1, 0, 10, 10, 10, ["digest"], "test"))
    [call] = redis.keys("*:geo:*:call:*")
    return {
        "TableKeys.call": call.decode().rpartition(":")[2],
        "TableKeys.manifest": "new",
        "TableKeys.part": "new:0",
    }


def talk(redis: Redis, name: str) -> dict[str, str]:
    """A chat of which something is known in all its keys, of a person of the same name; their suffixes."""
    chat = Chat.create("joe", members=[name], id=name, settings=ChatSettings(rate_period=600))
    chat.send("joe", "one", mentions=[name])
    chat.send("joe", "two")
    chat.send(name, "three")
    chat.delete_message(3)
    chat.edit("joe", 2, "first", mentions=[name])
    Presence(name).attend("joe")
    Presence(name).type("joe")
    at_once(limits.charge(redis, name, chat_id=name, people=1))
    redis.delete(*redis.keys("*:rate:*/add"), *redis.keys("*:rate:*/call/*"))
    chat.add(["jim"])
    chat.mute("jim")
    chat.leave("jim")
    at_once(forget_hints(get_client(), name, ["left"], young=YOUNG))
    redis.delete(*redis.keys("*:calls:*"), *redis.keys("*:rate:*/joe"))
    for keys in (InboxKeys("joe"), InboxKeys("jim")):
        redis.delete(keys.hints, keys.past)
    chat.block("jack")
    [call, trimmed] = [
        key.decode().rpartition("/")[2] for key in sorted(redis.keys("*:calls:*"), key=redis.get)
    ][::-1]
    redis.delete(f"{ChatKeys(name).calls}/{trimmed}")
    suffixes = {f"ChatKeys.{part}": f"/{name}" for part in ("mentions", "own", "rate")}
    suffixes["InboxKeys.rate"] = "/create"
    return {**suffixes, "ChatKeys.calls": f"/{call}", "ChatKeys.sent": "/0:0"}


def entity(key: str) -> str:
    """What a key of that name in the schema is made for here: those of locks and semaphores lie in buckets."""
    return bucket("default") if key.startswith(_IN_BUCKETS) else "default"


def spelled(key: Key) -> str:
    """Return what matches all keys that the page of keys means, whatever they are the keys of."""
    return re.sub(r"\\\{.*?\\\}|<\w+>", ".+", re.escape(key.pattern))


def test_stored_rows_match_the_schema(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks_module, "ALIVE", 60_000_000)
    consumer, queue = Consumer(), TaskQueue()
    *_ready, delayed = push_many(7), queue.push(ECHO, delay=60)
    queue.push_many([NewTask(name=ECHO, unique="a", tick=("hourly", datetime(2026, 1, 1, tzinfo=UTC)))])
    good, bad, running = claim(consumer, 3)
    queue.wait_for(good.id, wait=0)
    queue.wait_for(running.id, wait=0)
    hand_in(consumer, succeeded(good), failed(bad))
    cut_off = claim(consumer, 1)
    assert consumer.release(cut_off, begun=cut_off) == 1
    consumer.progress(running, Progress(1))
    consumer.renew(["default"], [running])
    queue.tell(consumer.id, "quiet")
    parking = Parking(consumer)
    parking.park("default", claim(consumer, 2))
    parking.unpark("default", by="default")
    queue.pause("default")
    Ticks().pause("hourly")
    suffixes = {"MailboxKeys.sent": f":{correspond('default').rpartition(':')[2]}"}
    parts = tally(redis, "default")
    sum_up("default")
    suffixes |= talk(redis, "default") | look_up(redis, "default")
    for label in ("CounterKeys.histograms", "CounterKeys.samples"):
        suffixes[label] = parts.pop(label)
    parts |= cache_rows(redis, "default") | hand_out_logs(redis, "default")
    suffixes |= {f"RowKeys.{each}": f":{parts['RowKeys.row_of']}" for each in ("row", "claim")}
    redis.delete(
        *(key for key in redis.keys("*:logs:*:chunk:*") if not key.endswith(parts["JobKeys.chunk"].encode()))
    )
    parts |= chart(redis, "default")
    FencedValue("default").set("a", fence=1, ttl=60)
    # The last: they wake those who wait, and that is forgotten within seconds.
    suffixes |= hand_over(redis, key_of("default"))
    suffixes |= share("default")
    parts |= {"BackendKeys.result": good.id, "BackendKeys.ended": good.id}
    parts |= {"BackendKeys.worker": consumer.id, "BackendKeys.order": consumer.id}
    [pausing] = redis.keys("*:pausing:*")
    parts["BackendKeys.pausing"] = pausing.decode().rpartition(":")[2]
    made = {
        label: f"{key(entity(label), parts.get(label, 'default'))}{suffixes.get(label, '')}"
        for label, key in SCHEMA.items()
    }
    schema = {made[label].encode(): key.doc for label, key in SCHEMA.items()}

    stored = {key: redis.type(key) for key in redis.keys("*")}

    assert delayed
    assert stored == {key: TYPES[doc.split()[0].rstrip(",")] for key, doc in schema.items()}
    expiring = {key for key in stored if redis.pttl(key) > 0}
    assert expiring == {key for key, doc in schema.items() if "Expires" in doc}
    assert suffixes.keys() == SUFFIXES.keys()
    assert [label for label, key in SCHEMA.items() if not re.fullmatch(spelled(key), made[label])] == []
