"""
Autocomplete in a million names beside the guild directory of the book, PostgreSQL's LIKE, and Django's admin.

All systems look for the same prefixes, which are made in advance. Pages are requested by Django's test client,
through a site's whole middleware. No person requests more pages than our throttle allows.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from io import StringIO
from itertools import cycle
from random import Random
from statistics import median
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import AsyncClient
from django.urls import reverse

from benchmarks import names, sentinels
from benchmarks.harness import (
    OURS,
    Bench,
    Call,
    Crew,
    Rounds,
    System,
    Task,
    Turn,
    alternate,
    beside_ping,
    client,
    percentile,
    say,
)
from benchmarks.report import (
    Bar,
    Column,
    at_least,
    at_most,
    compare,
    mid,
    middle_part,
    over,
    part,
    print_bars,
    print_promises,
    print_rounds,
    print_table,
    span,
    times,
)
from benchmarks.shop.models import Person, persons
from components.services.autocomplete import AddressBook, RecentContacts, fold

BOOK = "book"
PREFIX, WORDS, REBUILT = "by their beginnings", "by their words", "by their words, from PostgreSQL"
LIKE, ORM = "LIKE, bare", "LIKE, by Django's ORM"
INDEXED, PLAIN = "admin, with an index", "admin, as documented"
SELECTED = 20_000  # how many names are selected before the searches
CROWDS = (1, 4, 16)  # numbers of processes
# The name of the directory that processes search, and the number of names in it.
GUILD, GUILD_SIZE = "guild", 10_000
PERSONS = 60  # how many people request pages in turn
CONTACTS, USERS = 100, 500  # how many contacts a person has, and how many people have contacts

PROMISES = ["system", "finds a name by", "letters", "order", "looking writes", "round trips"]
SYSTEMS = [
    System(OURS, ["each word", "all, folded", "selected, then the alphabet", "no", "1"]),
    System(BOOK, ["its beginning", "a to z", "alphabet", "yes", "4, and more when disturbed"]),
    System(LIKE, ["its beginning", "all, as a column has them", "alphabet", "no", "1"]),
    System(
        INDEXED, ["its beginning", "all, as a column has them", "alphabet", "no", "2, and 2 for who asks"]
    ),
    System(PLAIN, ["any part of it", "all, accents differ", "alphabet", "no", "2, and 2 for who asks"]),
]


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    print_promises(PROMISES, SYSTEMS)
    Run(bench, crew, options).run()


class Run:
    """The parts, in the order in which each leaves what the next one needs."""

    def __init__(self, bench: Bench, crew: Crew, options: Namespace) -> None:
        self.bench, self.crew, self.options = bench, crew, options
        self.has_database = connection.vendor == "postgresql"
        self.book = persons.book
        say("making names")
        self.entries = list(names.entries(options.names))
        self.bars: list[Bar] = []
        self._is_filled = False

    def run(self) -> None:
        for name in self.options.parts:
            if self.has_database or name not in ("database", "rebuild"):
                getattr(self, name)()
        print_bars(self.bars)

    def load(self) -> None:
        """Load names that are in memory beside the old ones, as rebuildindex does."""
        loads = {}
        for name, words in ((PREFIX, False), (WORDS, True)):
            say(f"loading, {name}")
            self.bench.clear()
            loads[name] = [self._load(lambda: self.book.load(self.entries, replace=True, words=words))]  # noqa: B023
        self._report_loads(loads)
        beyond = loads[PREFIX][0]["beyond"]
        self.bars.append(at_most("bytes of a name beyond its text", 150, beyond, ".0f"))

    def rebuild(self) -> None:
        self._fill()
        self.bench.clear()
        say("rebuildindex")
        rebuild = lambda: call_command("rebuildindex", self.book.name, stdout=StringIO())  # noqa: E731
        self._report_loads({REBUILT: [self._load(rebuild)]})

    def _load(self, call: Call) -> Turn:
        """Measure a load of all names into an empty server that already has the scripts."""
        book = AddressBook("warm-up")
        book.load(self.entries[:1_000], replace=True)
        book.erase()
        forget_calls(self.bench)
        empty, count = self.bench.memory(), len(self.entries)
        with self.bench.cost(count) as turn:
            call()
        forget_calls(self.bench)
        text = sum(len(str(one)) + len(label.encode()) for one, label in self.entries) / count
        size = (self.bench.memory() - empty) / count
        return turn | {"bytes": size, "text": text, "beyond": size - text}

    def _report_loads(self, loads: Rounds) -> None:
        columns = mid("client CPU µs", "client", ".1f"), mid("Redis CPU µs", "redis", ".1f")
        columns += mid("bytes of Redis", "bytes"), mid("id and label", "text"), mid("beyond these", "beyond")
        print_rounds(f"{len(self.entries):,} names", loads, mid("names/s", "rate"), *columns)
        for name, [load] in loads.items():
            self.bars.append(at_least(f"loaded, {name}", 50_000, load["rate"], ",.0f", "/s"))

    def _select(self) -> None:
        """Give the book all names, found by their words, and select some of them."""
        if not self.book.count():
            self.book.load(self.entries, progress=lambda done: say(f"{done:,} names"))
        if self.book.info().selected:
            return
        say("selecting")
        chosen, empty, count = Random(6), self.bench.memory(), len(self.entries)
        # a few names often, and many once
        ids = {min(count, int(chosen.paretovariate(0.5))) * 7919 % count + 1 for _ in range(SELECTED)}
        for one in ids:
            self.book.select(one)
        forget_calls(self.bench)
        each = (self.bench.memory() - empty) / len(ids)
        print(f"\nEach entry that was ever selected takes {each:.0f} bytes more.", flush=True)

    def latency(self) -> None:
        """Look for prefixes, with a PING before each search; then measure other calls."""
        self._select()
        prefixes = {f"of {length}": length for length in names.LENGTHS}
        taken = compare(
            f"a prefix of {len(self.entries):,} names",
            prefixes,
            self.options.rounds,
            lambda name: look(self.book.complete, prefixes[name], self.options.prefixes),
            *BESIDE_PING,
        )
        worst = max(map(more_than_ping, taken.values())) * 1e3
        what = f"prefixes of {len(self.entries):,} names, the worst p99 above PING's"
        self.bars.append(at_most(what, 2, worst, ".2f", " ms"))
        print_rounds("other calls", self._other_calls(), *BESIDE_PING)

    def _other_calls(self) -> Rounds:
        known = [1 + number * 7919 % len(self.entries) for number in range(200)]
        added = [f"new-{number}" for number in range(len(known))]
        calls: dict[str, tuple[Sequence[Any], Callable[[Any], object]]] = {
            "select": (known, self.book.select),
            "get": (known, self.book.get),
            "add": (added, lambda one: self.book.add("Ann Smith", id=one)),
            "rename": (added, lambda one: self.book.rename(one, "Bea Smith")),
            "remove": (added, self.book.remove),
        }
        return {name: [beside_ping(bound(call, ids))] for name, (ids, call) in calls.items()}

    def crowd(self) -> None:
        """Let processes search a directory of 10,000 names, which is the most that the book's directory allows."""
        members = names.guild(GUILD_SIZE)
        AddressBook(GUILD).load(enumerate(members), replace=True)
        sentinels.join(client(), GUILD, members)
        for processes in CROWDS:
            found = compare(
                f"directory of {GUILD_SIZE:,}, {processes} process{'es' * (processes > 1)}",
                (OURS, BOOK),
                self.options.rounds,
                lambda name: self._crowd(name, processes),  # noqa: B023
                mid("answers/s", "rate"),
                span(),
                over(form=".1f"),
                mid("tries", "tries", ".1f"),
                mid("client CPU µs", "client"),
                mid("Redis CPU µs", "redis"),
            )
        lead = times(found, OURS, BOOK)
        self.bars.append(at_least(f"{processes} processes at once, times the book's", 30, lead, ".1f"))

    def _crowd(self, name: str, processes: int) -> Turn:
        before, duration = self.bench.work(), self.options.seconds
        results = self.crew.do(*[Task(_look_up, (name, duration))] * processes)
        done, tries, cpu = map(sum, zip(*results, strict=True))
        redis = (self.bench.work().cpu - before.cpu) / done
        return {"rate": done / duration, "tries": tries / done, "client": cpu / done * 1e6, "redis": redis}

    def database(self) -> None:
        """Search names with LIKE, and through pages of the admin."""
        self._select()
        self._fill()
        self._by_length("a prefix", {OURS: self.book.complete, LIKE: like, ORM: like_by_orm})
        with asyncio.Runner() as loop:
            pages = Pages(loop)
            views = {
                OURS: pages.ours(self.book.name),
                INDEXED: pages.admin("indexed"),
                PLAIN: pages.admin("plain"),
            }
            self._by_length("a page for a prefix", views)

    def _fill(self) -> None:
        """Make the tables: names with all rows and both indexes."""
        if self._is_filled:
            return
        say("filling the table")
        call_command("migrate", run_syncdb=True, verbosity=0)
        with connection.cursor() as cursor:
            with cursor.copy("COPY shop_person (id, name, key) FROM STDIN") as copy:
                for number, name in self.entries:
                    copy.write_row((number, name, fold(name)))
            cursor.execute("CREATE INDEX ON shop_person (key)")
            cursor.execute("CREATE INDEX ON shop_person (key text_pattern_ops)")
            cursor.execute("VACUUM ANALYZE shop_person")
        self._is_filled = True

    def _by_length(self, what: str, asked: Mapping[str, Callable[[str], object]]) -> None:
        """Compare the p50 of all systems at each length of the prefix."""
        others, rows, ratios = [name for name in asked if name != OURS], [], []
        for length in names.LENGTHS:
            rounds = alternate(
                f"{what}, {length} characters",
                asked,
                self.options.rounds,
                lambda name: look(asked[name], length, self._count(name)),  # noqa: B023
            )
            found = [middle_part(turns, "times", 50) for turns in rounds.values()]
            ratios.append({name: _times_ours(rounds, name) for name in others})
            shown = [f"{value * 1e3:.2f}" for value in found] + [
                f"{value:.1f}" for value in ratios[-1].values()
            ]
            rows.append([f"of {length}", *shown])
        print_table(
            [what, *(f"{name}, p50 ms" for name in asked), *(f"{name}, times ours" for name in others)], rows
        )
        for name in others:
            found = [each[name] for each in ratios]
            what = f"{name}, times ours, median of the lengths ({min(found):.2f} to {max(found):.2f})"
            self.bars.append(at_least(what, 1, median(found)))

    def _count(self, name: str) -> int:
        # The admin as documented looks at all rows, and takes a second for that.
        return 1 if name == PLAIN else max(1, self.options.prefixes // 10)

    def contacts(self) -> None:
        """Measure the bytes of people who have as many contacts as are kept."""
        say("contacts")
        known = [(f"user-{one:04}", label) for one, label in names.entries(CONTACTS)]
        empty, users = self.bench.memory(), min(USERS, self.options.names)
        for number in range(users):
            recent = RecentContacts(f"person-{number}")
            for one, label in known:
                recent.touch(one, label=label)
        text = sum(len(one) + len(label.encode()) for one, label in known)
        each = (self.bench.memory() - empty) / users
        print(
            f"\nA person with {CONTACTS} recent contacts takes {each:,.0f} bytes, {text:,} of them ids and labels."
        )


BESIDE_PING = (
    part("p50 ms", "times", 50),
    part("p99 ms", "times", 99),
    part("PING p50", "pings", 50),
    part("PING p99", "pings", 99),
    Column("p99 more than PING's", lambda _, turns: f"{more_than_ping(turns) * 1e3:.2f}"),
)


def more_than_ping(turns: Sequence[Turn]) -> float:
    """Return the seconds by which the p99 exceeds the p99 of the PINGs in between."""
    return median(percentile(turn["times"], 99) - percentile(turn["pings"], 99) for turn in turns)


def _times_ours(rounds: Rounds, name: str) -> float:
    pairs = zip(rounds[OURS], rounds[name], strict=True)
    return median(percentile(theirs["times"], 50) / percentile(ours["times"], 50) for ours, theirs in pairs)


def look(complete: Callable[[str], object], length: int, count: int) -> Turn:
    """Look for *count* prefixes with *length* characters."""
    complete("a")
    return beside_ping(bound(complete, names.prefixes(length, count)))


def bound(call: Callable[[Any], object], arguments: Iterable[Any]) -> list[Call]:
    return [lambda one=one: call(one) for one in arguments]  # type: ignore[misc]


def forget_calls(bench: Bench) -> None:
    """Delete the stored answers of scripts, which would otherwise be kept for a minute."""
    for key in bench.redis.scan_iter(match="*:call:*", count=1_000):
        bench.redis.unlink(key)


def like(prefix: str) -> list[tuple[int, str]]:
    """
    Return ten names that begin with a prefix, in the order of the index for LIKE, by Django's connection without its
    ORM.
    """
    with connection.cursor() as cursor:
        sql = "SELECT id, name FROM shop_person WHERE key LIKE %s ORDER BY key USING ~<~ LIMIT 10"
        cursor.execute(sql, [fold(prefix) + "%"])
        found: list[tuple[int, str]] = cursor.fetchall()
        return found


def like_by_orm(prefix: str) -> object:
    return list(Person.objects.filter(key__startswith=prefix).order_by("key").values_list("pk", "name")[:10])


def _look_up(name: str, duration: float) -> Generator[None, None, tuple[int, int, float]]:
    """Return the answers of one process, how many transactions they took, and the processor time."""
    book, redis = AddressBook(GUILD), client()

    def complete(prefix: str) -> int:
        if name == BOOK:
            return sentinels.complete(redis, GUILD, prefix)[1]
        book.complete(prefix)
        return 1

    asked = cycle(names.beginnings(names.guild(2_000), 1_000))
    complete(next(asked))
    yield
    done, tries, cpu = 0, 0, time.process_time()
    until = time.monotonic() + duration
    while time.monotonic() < until:
        tries += complete(next(asked))
        done += 1
    return done, tries, time.process_time() - cpu


class Pages:
    """Members of staff who search through pages served by one process and its event loop, as under uvicorn."""

    def __init__(self, loop: asyncio.Runner) -> None:
        self._loop = loop
        users, clients = get_user_model().objects, []
        for number in range(PERSONS):
            one = AsyncClient(raise_request_exception=True)
            one.force_login(users.create_superuser(f"staff-{number}"))
            clients.append(one)
        self._turns = cycle(clients)

    def ours(self, book: str) -> Callable[[str], None]:
        address = reverse("components:api-book", args=[book])
        return lambda prefix: self._get(address, {"q": prefix})

    def admin(self, site: str) -> Callable[[str], None]:
        address = reverse(f"{site}:autocomplete")
        asked = {"app_label": "shop", "model_name": "letter", "field_name": "to"}
        return lambda prefix: self._get(address, {**asked, "term": prefix})

    def _get(self, address: str, query: Mapping[str, str]) -> None:
        response = self._loop.run(next(self._turns).get(address, query))
        if response.status_code != 200:
            raise RuntimeError(f"{address} with {query} answered {response.status_code}.")
