"""
One turn: prefixes looked for by one process, each beside a PING; other calls; pages; and a crowd that looks.

All look for the same prefixes, which are made before. A page is asked for by Django's test client, with all that a
site does around it; each person asks for so few that our throttle lets all of them through.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TypeAlias

from django.contrib.auth import get_user_model
from django.test import AsyncClient
from django.urls import reverse

from benchmarks.bench import Bench
from benchmarks.completing import names, sentinels
from benchmarks.crew import Crew, Task, client
from components.services.autocomplete import AddressBook

GUILD = "guild"
_WARM_UP = 50  # calls: scripts are loaded, connections open, and Python has seen its code
_PERSONS = 60  # who ask for pages in turns


@dataclass(frozen=True)
class Latency:
    """Seconds of each call, and of the PING before it."""

    times: list[float]
    pings: list[float]


def seconds(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def beside_ping(calls: Sequence[Callable[[], object]]) -> Latency:
    """Each of *calls*, after a PING that is measured as it is."""
    redis = client()
    redis.ping()
    pings, times = [], []
    for call in calls:
        pings.append(seconds(redis.ping))
        times.append(seconds(call))
    return Latency(times, pings)


def look(complete: Callable[[str], object], length: int, count: int) -> Latency:
    """*count* prefixes of so many characters."""
    complete("a")
    return beside_ping([lambda each=each: complete(each) for each in names.prefixes(length, count)])


def other_calls(book: AddressBook, count: int) -> Iterator[tuple[str, Latency]]:
    """What each of the other calls takes, in a book that has all names from 1 to *count* and more."""
    known = [1 + number * 7919 % count for number in range(_WARM_UP * 4)]
    added = [f"new-{number}" for number in range(len(known))]
    for name, ids, call in (
        ("select", known, book.select),
        ("get", known, book.get),
        ("add", added, lambda one: book.add("Ann Smith", id=one)),
        ("rename", added, lambda one: book.rename(one, "Bea Smith")),
        ("remove", added, book.remove),
    ):
        yield name, beside_ping([lambda one=one, call=call: call(one) for one in ids])


class Pages:
    """Persons of the staff, who look for names in pages of one process and its event loop, as under uvicorn."""

    def __init__(self, loop: asyncio.Runner) -> None:
        self._loop = loop
        users, clients = get_user_model().objects, []
        for number in range(_PERSONS):
            one = AsyncClient(raise_request_exception=True)
            one.force_login(users.create_superuser(f"staff-{number}"))
            clients.append(one)
        self._turns = cycle(clients)

    def ours(self, book: str) -> Callable[[str], None]:
        address = reverse("components:api-book", args=[book])
        return lambda prefix: self._get(address, {"q": prefix})

    def admin(self, site: str) -> Callable[[str], None]:
        address = reverse(f"{site}:autocomplete")
        asked = {"app_label": "completing", "model_name": "letter", "field_name": "to"}
        return lambda prefix: self._get(address, {**asked, "term": prefix})

    def _get(self, address: str, query: Mapping[str, str]) -> None:
        response = self._loop.run(next(self._turns).get(address, query))
        if response.status_code != 200:
            raise RuntimeError(f"{address} with {query} answered {response.status_code}.")


@dataclass(frozen=True)
class Crowd:
    """What all processes together did."""

    rate: float
    #: How often a transaction was begun, for each answer.
    tries: float
    #: Processor time of all processes, and of all threads of the server, for each answer; microseconds.
    client_cpu: float
    server_cpu: float


def crowd(bench: Bench, crew: Crew, system: str, processes: int, duration: float) -> Crowd:
    """So many look for prefixes in the same guild, as fast as they can. Raises Stuck."""
    before = bench.work()
    results = crew.do([Task(_JOBS[system], (duration,))] * processes)
    work = bench.work() - before
    done, tries, cpu = map(sum, zip(*results, strict=True))
    return Crowd(done / duration, tries / done, cpu / done * 1e6, work.cpu / done)


def open_guild(count: int) -> None:
    """The same names in both directories."""
    members = names.guild(count)
    AddressBook(GUILD).load(enumerate(members), replace=True)
    sentinels.join(client(), GUILD, members)


#: How many answers one process had, how often a transaction was begun for them, its processor time in seconds.
Looked: TypeAlias = Generator[None, None, tuple[int, int, float]]


def _ours(duration: float) -> Looked:
    book = AddressBook(GUILD)

    def complete(prefix: str) -> int:
        book.complete(prefix)
        return 1

    return _look_up(complete, duration)


def _sentinels(duration: float) -> Looked:
    redis = client()
    return _look_up(lambda prefix: sentinels.complete(redis, GUILD, prefix)[1], duration)


def _look_up(complete: Callable[[str], int], duration: float) -> Looked:
    members = names.guild(2_000)
    asked = cycle(names.beginnings(members, 1_000))
    complete(next(asked))
    yield
    done, tries, cpu = 0, 0, time.process_time()
    until = time.monotonic() + duration
    while time.monotonic() < until:
        tries += complete(next(asked))
        done += 1
    return done, tries, time.process_time() - cpu


OURS, BOOK = "components", "book"
_JOBS = {OURS: _ours, BOOK: _sentinels}
