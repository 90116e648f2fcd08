"""
Chats beside the group chat of the book and the two channel layers of channels_redis.

All readers are in one process, as under an ASGI server; the sender is another process. Both use the same monotonic
clock.

The book's chat is that of chapter 6 of "Redis in Action", built anew from its description: same structures, same
round trips. A chat's ZSET has its members by what they have read, a person's ZSET their chats by the same. Messages
are JSON in a ZSET by their number, which a counter gives under the book's lock. Whoever fetches has read what they
got, and then removes what all have read.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import string
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import product
from statistics import median
from typing import Any

from django.test.utils import override_settings

from benchmarks.book_locks import give_back, take
from benchmarks.harness import (
    OURS,
    SLICES,
    URL,
    Bench,
    Crew,
    Rounds,
    System,
    Task,
    Turn,
    alternate,
    client,
    find_installed,
    socket_path,
    url,
)
from benchmarks.locks import alone
from benchmarks.report import (
    COST,
    Bar,
    at_least,
    at_most,
    compare,
    mid,
    middle_part,
    most,
    none,
    over,
    part,
    print_bars,
    print_promises,
    print_rounds,
    print_table,
    span,
    times,
    total,
)
from benchmarks.trips import TripCounter
from components.services.chat import Chat, ChatSettings, Inbox

BOOK, CORE, PUBSUB = "book", "channels_redis core", "channels_redis pub/sub"
SIZES = (1_000, 5_000, 20_000)  # messages in a chat whose bytes are measured
# The chats of the person who fetches, and the number of new messages in the chats that have some.
CHATS, UNREAD = 500, 2
BUSY = (0, 50, 500)  # numbers of chats with new messages
LETTERS = 100  # characters of a message
MEMBERS = 10  # members of a group
# Coroutines of a process that send at the same time, as views under an ASGI server do.
SPEAKERS = 16
WAITERS = 1_000  # in one process
_SILENCE = 3.0  # after this many seconds without a message, the missing ones count as lost
# Seconds, and the share of them that a process may be busy when all readers are certainly waiting.
_SETTLING, _IDLE = 0.5, 0.05
_GLANCE = 0.01  # seconds between two checks
#: No message is refused because of its rate, and none expires during the benchmark; other settings are the defaults.
_SETTINGS = ChatSettings(rate_limit=0, max_messages=10_000_000, max_bytes=1 << 40)


class OurStore:
    """A store that keeps messages of a chat until they are read: ours."""

    def create(self, chat: str, members: Sequence[str]) -> None:
        Chat.create(members[0], members=members[1:], id=chat, settings=_SETTINGS)

    def send(self, chat: str, sender: str, text: str) -> None:
        Chat(chat).send(sender, text)

    def fetch(self, person: str) -> Mapping[str, int]:
        """Fetch everything that a person has not read. Return the last seq of each chat that has something new."""
        return {chat.chat_id: chat.messages[-1].seq for chat in Inbox(person).fetch()}

    def acknowledge(self, person: str, read: Mapping[str, int]) -> None:
        Inbox(person).acknowledge(read)


class BookStore:
    def create(self, chat: str, members: Sequence[str]) -> None:
        with client().pipeline() as pipe:
            pipe.zadd(f"chat:{chat}", dict.fromkeys(members, 0))
            for person in members:
                pipe.zadd(f"seen:{person}", {chat: 0})
            pipe.execute()

    def send(self, chat: str, sender: str, text: str) -> None:
        redis, lock = client(), f"chat:{chat}"
        identifier = take(redis, lock)
        if identifier is None:
            raise TimeoutError(f"The lock of {chat} was not free in time.")
        try:
            number = redis.incr(f"ids:{chat}")
            message = {"id": number, "ts": time.time(), "sender": sender, "message": text}
            redis.zadd(f"msgs:{chat}", {json.dumps(message): number})
        finally:
            give_back(redis, lock, identifier)

    def fetch(self, person: str) -> Mapping[str, int]:
        redis = client()
        chats: Any = redis.zrange(f"seen:{person}", 0, -1, withscores=True)
        with redis.pipeline() as reading:
            for chat, seen in chats:
                reading.zrangebyscore(b"msgs:" + chat, seen + 1, "inf")
            answers = reading.execute() if chats else []
        found = [
            (chat, list(map(json.loads, texts))) for (chat, _), texts in zip(chats, answers, strict=True)
        ]
        with redis.pipeline() as writing:
            for chat, messages in found:
                if messages:
                    upto = messages[-1]["id"]
                    redis.zadd(b"chat:" + chat, {person: upto})
                    slowest: Any = redis.zrange(b"chat:" + chat, 0, 0, withscores=True)
                    writing.zadd(f"seen:{person}", {chat: upto})
                    writing.zremrangebyscore(b"msgs:" + chat, 0, slowest[0][1])
            writing.execute()
        return {chat.decode(): messages[-1]["id"] for chat, messages in found if messages}

    def acknowledge(self, person: str, read: Mapping[str, int]) -> None:
        """Do nothing, since fetching marks messages as read."""


class OurChannel:
    """A channel that passes messages of a group to waiting members: ours. Each method needs a running event loop."""

    async def create(self, group: str, members: Sequence[str]) -> None:
        """Create the group before anybody reads or sends; called in any process."""
        await Chat.acreate(members[0], members=members[1:], id=group, settings=_SETTINGS)

    async def sit_by(self, group: str, members: int) -> None:
        """Add members who read nothing."""

    async def send(self, group: str, sender: str, text: str) -> None:
        await Chat(group).asend(sender, text)

    async def read(self, groups: Sequence[str], person: str) -> AsyncIterator[Sequence[str]]:
        """Yield the messages of a member, for ever. The first one is empty; from then on no message is missed."""
        inbox = Inbox(person)
        positions = (await inbox.achanges({})).positions
        yield []
        while True:  # a long-poll, as in the page
            changes = await inbox.achanges(positions, limit=200, wait=25.0)
            positions = changes.positions
            yield [message.text for chat in changes.chats for message in chat.messages if not message.event]


class Core:
    """
    The channel layer that keeps messages. With its default capacity of 100 it would lose messages that are not read
    in time.
    """

    @cached_property
    def _layer(self) -> Any:
        from channels_redis.core import RedisChannelLayer

        return RedisChannelLayer(hosts=[url()], capacity=1_000_000)

    async def create(self, group: str, members: Sequence[str]) -> None:
        """Do nothing, since nothing is stored for a group in which nobody waits."""

    async def sit_by(self, group: str, members: int) -> None:
        for _ in range(members):
            await self._layer.group_add(group, await self._layer.new_channel())

    async def send(self, group: str, sender: str, text: str) -> None:
        await self._layer.group_send(group, {"type": "chat.message", "sender": sender, "text": text})

    async def read(self, groups: Sequence[str], person: str) -> AsyncIterator[Sequence[str]]:
        name = await self._layer.new_channel()
        for group in groups:
            await self._layer.group_add(group, name)
        yield []
        while True:
            message = await self._layer.receive(name)
            yield [message["text"]]


class PubSub(Core):
    @cached_property
    def _layer(self) -> Any:
        from channels_redis.pubsub import RedisPubSubChannelLayer

        return RedisPubSubChannelLayer(hosts=[url()])


PROMISES = ["system", "kept", "in order", "sent again after a lost reply", "only members", "waiters"]
_ONE = "one connection for all"
_PROMISED = ["by number, age and bytes", "by the server", "recognised", "with each message", _ONE]
STORES = [
    System(OURS, _PROMISED, OurStore),
    System(
        BOOK,
        ["until all have fetched it", "by a counter, under a lock", "said twice", "not asked for", "poll"],
        BookStore,
    ),
]
CHANNELS = [
    System(OURS, _PROMISED, OurChannel),
    System(
        CORE,
        ["60 s, 100 of a consumer", "by the clock of the sender", "said twice", "no", _ONE],
        Core,
        "channels_redis",
    ),
    System(PUBSUB, ["no", "by arrival", "said twice", "no", _ONE], PubSub, "channels_redis"),
]
WAYS = {system.name: system.way for system in CHANNELS}
_RATE = mid("messages/s", "rate"), span(), over()


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    stores = {system.name: system.way() for system in STORES}
    channels = find_installed(CHANNELS, options.only)
    print_promises(PROMISES, [*STORES, *(each for name, each in channels.items() if name != OURS)])

    count = options.messages // SLICES
    sends = compare(
        "send to a chat of 10",
        stores,
        options.rounds * SLICES,
        lambda name: send(bench, stores[name], count),
        *_RATE,
        *COST,
    )
    sizes = [size for size in SIZES if size <= options.stored]
    stored = {
        (name, speakers): [bytes_of(bench, store, size, speakers) for size in sizes]
        for (name, store), speakers in product(stores.items(), (1, MEMBERS))
    }
    head = ["bytes of Redis per message", "speakers", *(f"{size:,} messages" for size in sizes)]
    rows = (
        [name, str(speakers), *(f"{each:.0f}" for each in found)]
        for (name, speakers), found in stored.items()
    )
    print_table(head, rows)
    fetched: Rounds = {}
    for busy in BUSY:
        rounds = alternate(
            f"fetch from {busy} chats",
            stores,
            options.rounds,
            lambda name: fetch(bench, stores[name], busy, 3),  # noqa: B023
        )
        fetched |= {f"{name}, {busy} with new ones": turns for name, turns in rounds.items()}
    print_rounds(
        f"in {CHATS} chats",
        dict(sorted(fetched.items(), key=lambda item: item[0].split(",")[0] != OURS)),
        mid("fetch, ms", "fetch", ".1f", 1e3),
        most("round trips", "fetch trips"),
        mid("acknowledge, ms", "read", ".1f", 1e3),
        most("round trips", "read trips"),
    )

    rounds, count = options.rounds, options.messages
    spoken = {
        at_once: compare(
            f"send to 10 who do not read, {at_once} at once",
            channels,
            rounds,
            lambda name: speak_alone(bench, crew, name, count, at_once),  # noqa: B023
            *_RATE,
        )
        for at_once in (1, SPEAKERS)
    }
    groups = {
        where: compare(
            f"10 read in {process} process",
            channels,
            rounds,
            lambda name: group(bench, crew, name, count, where),  # noqa: B023
            mid("sent/s", "sent"),
            over(OURS, "sent"),
            mid("had by all/s", "had"),
            span("had"),
            over(OURS, "had"),
            mid("Redis CPU µs", "redis"),
            total("lost", "lost"),
        )
        for where, process in (("apart", "another"), ("together", "the same"))
    }
    # core cannot let a thousand wait: its waiters take turns at one connection
    wakers = [name for name in channels if name != CORE]
    wakes = compare(
        f"one of {WAITERS:,} who wait",
        wakers,
        rounds,
        lambda name: wake(bench, crew, name, options.wakes, options.pause),
        part("p50 ms", "times", 50),
        part("p99 ms", "times", 99),
        most("max ms", "slowest", ".2f", 1e3),
        total("lost", "lost"),
    )
    print_bars([*bars_of_stores(sends, stored, fetched), *bars_of_channels(spoken, groups, wakes)])


def text() -> str:
    return "".join(random.choices(string.ascii_letters, k=LETTERS))


def people(count: int) -> list[str]:
    return [f"user-{number}" for number in range(count)]


def send(bench: Bench, store: Any, count: int) -> Turn:
    """Let one process send messages to a chat of ten, one after another."""
    bench.clear()
    store.create("chat", people(MEMBERS))
    return alone(bench, lambda: store.send("chat", "user-0", text()), count)


def bytes_of(bench: Bench, store: Any, count: int, speakers: int) -> float:
    """
    Return the bytes of a message when *speakers* people take turns. If there are several, none has read the messages
    of the others.
    """
    bench.clear()
    members = people(MEMBERS)
    store.create("chat", members)
    for speaker in members[:speakers]:
        store.send("chat", speaker, text())
    before = bench.memory()
    for number in range(count):
        store.send("chat", members[number % speakers], text())
    return (bench.memory() - before) / count


def fetch(bench: Bench, store: Any, busy: int, repeated: int) -> Turn:
    """Measure how long it takes to get the new messages of *busy* of 500 chats, and to acknowledge them; and count
    round trips.
    """
    bench.clear()
    for number in range(CHATS):
        store.create(f"chat-{number}", ["reader", "speaker"])
    store.acknowledge("reader", store.fetch("reader"))
    fetches, reads = [], []
    for last in range(repeated + 1):
        for number in range(busy):
            for _ in range(UNREAD):
                store.send(f"chat-{number}", "speaker", text())
        if last == repeated:
            break
        began = time.monotonic()
        found = store.fetch("reader")
        fetched = time.monotonic()
        store.acknowledge("reader", found)
        fetches.append(fetched - began)
        reads.append(time.monotonic() - fetched)
    trips = dict(zip(("fetch trips", "read trips"), _trips(store), strict=True))
    return {"fetch": median(fetches), "read": median(reads), **trips}


def _trips(store: Any) -> tuple[int, int]:
    """Return the round trips of a fetch, and of an acknowledgement, with open connections and loaded scripts."""
    # Each measurement has its own proxy, because connections through an earlier one stay open and would not be
    # counted.
    own = socket_path().with_name(f"trips-{time.monotonic_ns()}")
    with TripCounter(socket_path(), own) as counter, _at(counter.url):
        store.acknowledge("nobody", store.fetch("nobody"))
        begun = counter.trips
        found = store.fetch("reader")
        fetched = counter.trips
        store.acknowledge("reader", found)
        return fetched - begun, counter.trips - fetched


@contextmanager
def _at(address: str) -> Iterator[None]:
    """Connect all clients of this process to the server at *address*."""
    before = url()
    caches = {"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": address}}
    try:
        os.environ[URL] = address
        client.cache_clear()
        with override_settings(CACHES=caches):
            yield
    finally:
        os.environ[URL] = before
        client.cache_clear()


@cache
def channel(name: str) -> Any:
    """Return this process's channel object."""
    return WAYS[name]()


def group(bench: Bench, crew: Crew, name: str, count: int, where: str) -> Turn:
    """
    Send as fast as possible to a group of ten readers, "apart" from the sender or "together" in its process. Raises
    Stuck. One rate ends when the last message is sent, the other when all members have received all messages.
    """
    bench.clear()
    before = bench.work()
    if where == "together":
        [((received, had_at), (began, sent_at))] = crew.do(Task(_all_of_them, (name, count)))
    else:
        (received, had_at), (began, sent_at) = crew.do(
            Task(_members, (name, count)), Task(_speaker, (name, count))
        )
    return {
        "sent": count / (sent_at - began),
        "had": count / (had_at - began),
        "lost": MEMBERS * count - received,
        "redis": (bench.work().cpu - before.cpu) / count,
    }


def _members(name: str, count: int) -> Generator[None, None, tuple[int, float]]:
    with asyncio.Runner() as runner:
        crowd = runner.run(_gather(name))
        yield
        runner.run(crowd.wait_for(MEMBERS * count))
        return crowd.outcome


async def _gather(name: str) -> Crowd:
    crowd = Crowd(channel(name), {person: ["group"] for person in people(MEMBERS)})
    await channel(name).create("group", people(MEMBERS))
    await crowd.settle()
    return crowd


def _speaker(
    name: str, count: int, at_once: int = SPEAKERS, sit_by: bool = False
) -> Generator[None, None, Any]:
    with asyncio.Runner() as runner:
        if sit_by:
            runner.run(channel(name).create("group", people(MEMBERS)))
            runner.run(channel(name).sit_by("group", MEMBERS))
        runner.run(_warm_up(name))
        yield
        return runner.run(_speak(name, count, at_once))


def _all_of_them(name: str, count: int) -> Generator[None, None, Any]:
    with asyncio.Runner() as runner:
        crowd = runner.run(_gather(name))
        runner.run(_warm_up(name))
        yield
        spoken = runner.run(_speak(name, count, SPEAKERS))
        runner.run(crowd.wait_for(MEMBERS * count))
        return crowd.outcome, spoken


def speak_alone(bench: Bench, crew: Crew, name: str, count: int, at_once: int) -> Turn:
    """Send to a group of ten members who are not reading, with *at_once* messages under way. Raises Stuck."""
    bench.clear()
    [(began, sent_at)] = crew.do(Task(_speaker, (name, count, at_once, True)))
    return {"rate": count / (sent_at - began)}


async def _warm_up(name: str) -> None:
    await channel(name).create("warm-up", ["somebody else"])
    for _ in range(20):
        await channel(name).send("warm-up", "somebody else", text())


async def _speak(name: str, count: int, at_once: int) -> tuple[float, float]:
    messages = iter([text() for _ in range(count)])

    async def speaker() -> None:
        for message in messages:
            await channel(name).send("group", "user-0", message)

    began = time.monotonic()
    await asyncio.gather(*(speaker() for _ in range(at_once)))
    return began, time.monotonic()


class Crowd:
    """The readers of a process, and the messages that they have received, with their times."""

    def __init__(self, channel: Any, groups: dict[str, list[str]]) -> None:
        self._channel, self._groups = channel, groups
        self.came: list[tuple[float, str]] = []

    @property
    def outcome(self) -> tuple[int, float]:
        """Return the number of messages that have come, and when the last one came."""
        return len(self.came), max((at for at, _ in self.came), default=float("inf"))

    async def settle(self) -> None:
        """Wait until all readers are waiting."""
        ready: asyncio.Queue[None] = asyncio.Queue()
        self._tasks = [
            asyncio.create_task(self._read(person, groups, ready)) for person, groups in self._groups.items()
        ]
        while ready.qsize() < len(self._tasks):
            await asyncio.sleep(_GLANCE)
            for task in self._tasks:
                if task.done():
                    task.result()
        busy = 1.0
        while busy > _IDLE:
            before = time.process_time()
            await asyncio.sleep(_SETTLING)
            busy = (time.process_time() - before) / _SETTLING

    async def _read(self, person: str, groups: list[str], ready: asyncio.Queue[None]) -> None:
        async for texts in self._channel.read(groups, person):
            now = time.monotonic()
            if not texts:
                ready.put_nowait(None)
            self.came += [(now, text) for text in texts]

    async def wait_for(self, count: int) -> None:
        """Wait until *count* messages have come, or until no more come."""
        last, since = -1, time.monotonic()
        while len(self.came) < count and time.monotonic() - since < _SILENCE:
            if len(self.came) != last:
                last, since = len(self.came), time.monotonic()
            await asyncio.sleep(_GLANCE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def wake(bench: Bench, crew: Crew, name: str, count: int, pause: float) -> Turn:
    """Let a thousand people wait in one process, each in their own group, and send to one at a time. Raises Stuck."""
    bench.clear()
    took, _ = crew.do(Task(_waiters, (name, count)), Task(_caller, (name, count, pause)))
    return {"times": took, "lost": count - len(took), "slowest": max(took)}


def _waiters(name: str, count: int) -> Generator[None, None, list[float]]:
    async def create() -> None:
        for person in people(WAITERS):
            await channel(name).create(person, [person, "caller"])

    with asyncio.Runner() as runner:
        crowd = Crowd(channel(name), {person: [person] for person in people(WAITERS)})
        runner.run(create())
        runner.run(crowd.settle())
        yield
        runner.run(crowd.wait_for(count))
        return [at - float(message) for at, message in crowd.came]


def _caller(name: str, count: int, pause: float) -> Generator[None, None, None]:
    async def call() -> None:
        for person in random.choices(people(WAITERS), k=count):
            await asyncio.sleep(random.uniform(0, 2 * pause))
            await channel(name).send(person, "caller", repr(time.monotonic()))

    with asyncio.Runner() as runner:
        runner.run(_warm_up(name))
        yield
        runner.run(call())


def bars_of_stores(
    sends: Rounds, stored: dict[tuple[str, int], list[float]], fetched: Rounds
) -> Iterator[Bar]:
    yield at_least("send, times the book's", 3, times(sends, OURS, BOOK))
    for speakers, who in ((1, "of one who has read all"), (MEMBERS, "of ten who never read")):
        parts = zip(stored[OURS, speakers], stored[BOOK, speakers], strict=True)
        worst = max(ours / theirs for ours, theirs in parts)
        yield at_most(f"bytes of a message {who}, part of the book's", 0.75, worst)
    trips = max(
        turn["fetch trips"] for name, turns in fetched.items() if name.startswith(OURS) for turn in turns
    )
    yield at_most(f"fetch in {CHATS} chats, round trips", 2, trips, ".0f")


def bars_of_channels(spoken: dict[int, Rounds], groups: dict[str, Rounds], wakes: Rounds) -> Iterator[Bar]:
    peers = (CORE, 20), (PUBSUB, 2)
    for (at_once, rounds), (name, least) in product(spoken.items(), peers):
        yield at_least(f"send to 10, {at_once} at once, times {name}", least, times(rounds, OURS, name))
    for (where, rounds), (name, least) in product(groups.items(), peers):
        yield at_least(f"had by 10, {where}, times {name}", least, times(rounds, OURS, name, "had"))
    yield none(
        "messages lost", sum(turn["lost"] for each in (*groups.values(), wakes) for turn in each[OURS])
    )
    late = middle_part(wakes[OURS], "times", 99) * 1e3
    yield at_most(f"wake-up of one of {WAITERS:,}, p99", 10, late, ".2f", " ms")
