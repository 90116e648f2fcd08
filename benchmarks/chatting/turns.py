"""
One turn of one system: a message is sent, handed to a group that reads, wakes one of a thousand that wait, is stored.

Who reads sits in one process, all of them, as under an ASGI server; who sends is another process. Times are of the
monotonic clock, which both share.
"""

from __future__ import annotations

import asyncio
import random
import string
import time
from collections.abc import Generator
from dataclasses import dataclass

from benchmarks import chatting
from benchmarks.bench import Bench
from benchmarks.chatting.base import Channel, Store
from benchmarks.crew import Crew, Task
from benchmarks.locking.turns import Alone, alone

LETTERS = 100  # of a message
MEMBERS = 10  # of a group
SPEAKERS = 16  # coroutines of a process that send at once, as views under an ASGI server do
WAITERS = 1_000  # in one process
_SILENCE = 3.0  # seconds without anything: the rest is lost
_SETTLING, _IDLE = 0.5, 0.05  # seconds, and the part of them for which the process works when all surely wait
_GLANCE = 0.01  # seconds between two looks
_WARM_UP = 20


def text() -> str:
    return "".join(random.choices(string.ascii_letters, k=LETTERS))


def people(count: int) -> list[str]:
    return [f"user-{number}" for number in range(count)]


def send(bench: Bench, store: Store, count: int) -> Alone:
    """One process sends to a chat of ten, one message after the other."""
    bench.clear()
    members = people(MEMBERS)
    store.create("chat", members)
    return alone(bench, lambda: store.send("chat", members[0], text()), count)


def stored(bench: Bench, store: Store, count: int, speakers: int) -> float:
    """Bytes that Redis needs for a message of so many speakers in turns; of several nobody has read the others'."""
    bench.clear()
    members = people(MEMBERS)
    store.create("chat", members)
    for speaker in members[:speakers]:
        store.send("chat", speaker, text())
    before = bench.memory()
    for number in range(count):
        store.send("chat", members[number % speakers], text())
    return (bench.memory() - before) / count


@dataclass(frozen=True)
class Group:
    """Messages per second: until the last was sent, and until all members had all of them."""

    sent: float
    had: float
    #: Of all that the members should have got.
    lost: int
    #: Processor time of the server for a message, in microseconds.
    server_cpu: float


def group(bench: Bench, crew: Crew, name: str, count: int, *, together: bool) -> Group:
    """
    *count* messages as fast as they can be sent, to a group of ten who all read: in another process, or *together* in
    that of the sender. Raises Stuck.
    """
    bench.clear()
    before = bench.work()
    if together:
        [((received, had_at), (began, sent_at))] = crew.do([Task(_all_of_them, (name, count))])
    else:
        (received, had_at), (began, sent_at) = crew.do(
            [Task(_members, (name, count)), Task(_speaker, (name, count))]
        )
    work = bench.work() - before
    return Group(
        count / (sent_at - began), count / (had_at - began), MEMBERS * count - received, work.cpu / count
    )


def _members(name: str, count: int) -> Generator[None, None, tuple[int, float]]:
    with asyncio.Runner() as runner:
        crowd = runner.run(_gather(chatting.channel(name)))
        yield
        runner.run(crowd.wait_for(MEMBERS * count))
        return crowd.outcome


async def _gather(channel: Channel) -> Crowd:
    crowd = Crowd(channel, {person: ["group"] for person in people(MEMBERS)})
    await channel.create("group", people(MEMBERS))
    await crowd.settle()
    return crowd


def _speaker(name: str, count: int) -> Generator[None, None, tuple[float, float]]:
    channel = chatting.channel(name)
    with asyncio.Runner() as runner:
        runner.run(_warm_up(channel))
        yield
        return runner.run(_speak(channel, count))


def _all_of_them(
    name: str, count: int
) -> Generator[None, None, tuple[tuple[int, float], tuple[float, float]]]:
    channel = chatting.channel(name)
    with asyncio.Runner() as runner:
        crowd = runner.run(_gather(channel))
        runner.run(_warm_up(channel))
        yield
        spoken = runner.run(_speak(channel, count))
        runner.run(crowd.wait_for(MEMBERS * count))
        return crowd.outcome, spoken


def spoken(bench: Bench, crew: Crew, name: str, count: int, at_once: int) -> float:
    """Messages per second to a group of ten who do not read meanwhile, *at_once* under way. Raises Stuck."""
    bench.clear()
    [(began, sent_at)] = crew.do([Task(_lone_speaker, (name, count, at_once))])
    return count / (sent_at - began)


def _lone_speaker(name: str, count: int, at_once: int) -> Generator[None, None, tuple[float, float]]:
    channel = chatting.channel(name)
    with asyncio.Runner() as runner:
        runner.run(channel.create("group", people(MEMBERS)))
        runner.run(channel.sit_by("group", MEMBERS))
        runner.run(_warm_up(channel))
        yield
        return runner.run(_speak(channel, count, at_once))


async def _warm_up(channel: Channel) -> None:
    await channel.create("warm-up", ["somebody else"])
    for _ in range(_WARM_UP):
        await channel.send("warm-up", "somebody else", text())


async def _speak(channel: Channel, count: int, at_once: int = SPEAKERS) -> tuple[float, float]:
    messages = iter([text() for _ in range(count)])

    async def speaker() -> None:
        for message in messages:
            await channel.send("group", "user-0", message)

    began = time.monotonic()
    await asyncio.gather(*(speaker() for _ in range(at_once)))
    return began, time.monotonic()


class Crowd:
    """Those who wait in a process, and what has come to them: when, and what."""

    def __init__(self, channel: Channel, groups: dict[str, list[str]]) -> None:
        self._channel, self._groups = channel, groups
        self.came: list[tuple[float, str]] = []

    @property
    def outcome(self) -> tuple[int, float]:
        """How much has come, and when the last."""
        return len(self.came), max((at for at, _ in self.came), default=float("inf"))

    async def settle(self) -> None:
        """All wait."""
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
        """Until so many have come, or nothing comes any more."""
        last, since = -1, time.monotonic()
        while len(self.came) < count and time.monotonic() - since < _SILENCE:
            if len(self.came) != last:
                last, since = len(self.came), time.monotonic()
            await asyncio.sleep(_GLANCE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(frozen=True)
class Wakes:
    """Seconds from the call of send() in one process until the message is in another, where it is waited for."""

    times: list[float]
    lost: int


def wake(bench: Bench, crew: Crew, name: str, count: int, pause: float) -> Wakes:
    """A thousand wait in one process, each in a group of his own; one of them gets a message. Raises Stuck."""
    bench.clear()
    times, _ = crew.do([Task(_waiters, (name, count)), Task(_caller, (name, count, pause))])
    return Wakes(times, count - len(times))


def _waiters(name: str, count: int) -> Generator[None, None, list[float]]:
    channel = chatting.channel(name)
    with asyncio.Runner() as runner:
        crowd = Crowd(channel, {person: [person] for person in people(WAITERS)})
        runner.run(_create(channel))
        runner.run(crowd.settle())
        yield
        runner.run(crowd.wait_for(count))
        return [at - float(message) for at, message in crowd.came]


async def _create(channel: Channel) -> None:
    for person in people(WAITERS):
        await channel.create(person, [person, "caller"])


def _caller(name: str, count: int, pause: float) -> Generator[None, None, None]:
    channel = chatting.channel(name)
    with asyncio.Runner() as runner:
        runner.run(_warm_up(channel))
        yield
        runner.run(_call(channel, count, pause))


async def _call(channel: Channel, count: int, pause: float) -> None:
    for person in random.choices(people(WAITERS), k=count):
        await asyncio.sleep(random.uniform(0, 2 * pause))
        await channel.send(person, "caller", repr(time.monotonic()))
