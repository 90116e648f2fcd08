"""
Autocomplete, ours against the book's, PostgreSQL's LIKE and the admin: `python benchmarks/autocomplete.py`;
docs/benchmarks.md says what it measures.

One private Redis server and one private PostgreSQL, in turns. What needs PostgreSQL is left out where there is none.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from django.core.management import call_command

from benchmarks.bench import Bench, say
from benchmarks.completing import database, names, report, sizes, turns
from benchmarks.completing.report import INDEXED, LIKE, ORM, PLAIN, PREFIX, REBUILT, VIEW, WORDS, Measured
from benchmarks.crew import Crew
from benchmarks.server import standing_bench
from benchmarks.tables import print_conditions

PARTS = ("load", "latency", "crowd", "database", "rebuild", "contacts")
SELECTED = 20_000  # times, before prefixes are looked for
CROWDS = (1, 4, 16)  # processes
GUILD = 10_000  # names that they look for
RARE = 1  # prefix of each length in a round for what looks at all rows, and takes a second for that
_T = TypeVar("_T")


def main() -> None:
    options = read_options()
    with (
        database.standing_database() as has_database,
        standing_bench(settings="benchmarks.completing.site") as bench,
        Crew(max(CROWDS)) as crew,
    ):
        print_conditions(bench.redis, database.version(), f"medians of {options.rounds} rounds")
        report.print_guarantees()
        run = Run(bench, crew, options)
        for part in PARTS:
            if part in options.parts and (has_database or part not in ("database", "rebuild")):
                getattr(run, part)()
        say("")
    report.print_bars_of(run.measured, count=options.names)


def read_options() -> Namespace:
    parser = ArgumentParser(description="Autocomplete, ours against the book's, LIKE and the admin.")
    parser.add_argument(
        "--parts", type=lambda text: text.split(","), default=PARTS, help=f"Of {','.join(PARTS)} (all)."
    )
    parser.add_argument("--names", type=int, default=1_000_000, help="In the book (default: 1000000).")
    parser.add_argument("--rounds", type=int, default=3, help="Turns of each system (default: 3).")
    parser.add_argument("--prefixes", type=int, default=400, help="Of each length in a turn (default: 400).")
    parser.add_argument("--seconds", type=float, default=1.0, help="Of a turn of many (default: 1).")
    return parser.parse_args()


class Run:
    """The parts, in the order in which each leaves what the next one needs."""

    def __init__(self, bench: Bench, crew: Crew, options: Namespace) -> None:
        from benchmarks.completing.models import persons

        self.bench, self.crew, self.options = bench, crew, options
        self.book = persons.book
        say("making names")
        self.entries = list(names.entries(options.names))
        self.measured = Measured()
        self._is_filled = False

    def load(self) -> None:
        for name, words in ((PREFIX, False), (WORDS, True)):
            say(f"loading, {name}")
            self.bench.clear()
            # Both as rebuildindex does it: beside the old one.
            self.measured.loads[name] = sizes.load(
                self.bench,
                self.entries,
                lambda: self.book.load(self.entries, replace=True, words=words),  # noqa: B023
            )
        report.print_loads(self.measured.loads, len(self.entries))

    def _select(self) -> None:
        """Let the book have all names by their words, some of which were selected."""
        if not self.book.count():
            self.book.load(self.entries, progress=lambda done: say(f"{done:,} names"))
        if self.book.info().selected:
            return
        say("selecting")
        each = sizes.select(self.bench, self.book, SELECTED, len(self.entries))
        print(f"\nEach entry that was ever selected takes {each:.0f} bytes more.", flush=True)

    def latency(self) -> None:
        self._select()
        taken: dict[int, list[turns.Latency]] = {length: [] for length in names.LENGTHS}
        for number in range(1, self.options.rounds + 1):
            for length, rounds in taken.items():
                say(f"prefixes, round {number} of {self.options.rounds}: {length} characters")
                rounds.append(turns.look(self.book.complete, length, self.options.prefixes))
        report.print_latencies(
            f"a prefix of {len(self.entries):,} names",
            {f"of {length}": rounds for length, rounds in taken.items()},
        )
        self.measured.latencies = taken
        others = dict(turns.other_calls(self.book, len(self.entries)))
        report.print_latencies("other calls", {name: [latency] for name, latency in others.items()})

    def crowd(self) -> None:
        turns.open_guild(GUILD)
        self.measured.crowds = {
            processes: self._alternate(
                f"{processes} processes",
                [turns.OURS, turns.BOOK],
                lambda system: turns.crowd(self.bench, self.crew, system, processes, self.options.seconds),  # noqa: B023
            )
            for processes in CROWDS
        }
        report.print_crowds(self.measured.crowds, GUILD)

    def database(self) -> None:
        self._select()
        self._fill()

        from benchmarks.completing import turns
        from benchmarks.completing.models import Person

        def by_orm(prefix: str) -> object:
            return list(
                Person.objects.filter(key__startswith=prefix).order_by("key").values_list("pk", "name")[:10]
            )

        queries: dict[str, Callable[[str], object]] = {
            turns.OURS: self.book.complete,
            LIKE: database.like,
            ORM: by_orm,
        }
        self.measured.queries = self._by_length("queries", queries)
        report.print_peers("a prefix", turns.OURS, self.measured.queries)
        with asyncio.Runner() as loop:
            pages = turns.Pages(loop)
            views = {
                VIEW: pages.ours(self.book.name),
                INDEXED: pages.admin("indexed"),
                PLAIN: pages.admin("plain"),
            }
            self.measured.pages = self._by_length("pages", views)
        report.print_peers("a page for a prefix", VIEW, self.measured.pages)

    def rebuild(self) -> None:
        self._fill()
        self.bench.clear()
        say("rebuildindex")
        rebuild = lambda: call_command("rebuildindex", self.book.name, stdout=StringIO())  # noqa: E731
        rebuilt = sizes.load(self.bench, self.entries, rebuild)
        self.measured.loads[REBUILT] = rebuilt
        report.print_loads({REBUILT: rebuilt}, len(self.entries))

    def contacts(self) -> None:
        say("contacts")
        each, text = sizes.contacts(self.bench)
        print(
            f"\nA person with 100 recent contacts takes {each:,.0f} bytes, {text:,} of them ids and labels."
        )

    def _fill(self) -> None:
        if not self._is_filled:
            say("filling the table")
            database.fill(self.entries)
            self._is_filled = True

    def _by_length(self, what: str, asked: Mapping[str, Callable[[str], object]]) -> report.Peers:
        taken: dict[str, dict[int, list[turns.Latency]]] = {name: {} for name in asked}
        for length in names.LENGTHS:
            rounds = self._alternate(
                f"{what}, {length} characters",
                list(asked),
                lambda name: turns.look(asked[name], length, self._count(name)),  # noqa: B023
            )
            for name, found in rounds.items():
                taken[name][length] = found
        return taken

    def _count(self, name: str) -> int:
        return RARE if name == PLAIN else max(1, self.options.prefixes // 10)

    def _alternate(self, what: str, systems: Sequence[str], turn: Callable[[str], _T]) -> dict[str, list[_T]]:
        """A turn of each in every round."""
        taken: dict[str, list[_T]] = {name: [] for name in systems}
        for number in range(1, self.options.rounds + 1):
            for name in systems:
                say(f"{what}, round {number} of {self.options.rounds}: {name}")
                taken[name].append(turn(name))
        return taken


if __name__ == "__main__":
    main()
