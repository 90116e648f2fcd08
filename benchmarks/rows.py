"""
Cached rows, ours against the book's, Django's ORM, cacheops and Django's cache: `python benchmarks/rows.py`;
docs/benchmarks.md says what it measures.

One private Redis server and one private PostgreSQL, in turns. Peers that are not installed are left out.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench import Bench, say
from benchmarks.caching import BOOK, report
from benchmarks.completing import database
from benchmarks.server import standing_bench
from benchmarks.tables import print_conditions

PARTS = ("refresh", "lateness", "reading", "counts", "idle")
DAEMONS = (1, 2)
LISTS, LENGTH = 50, 100  # lists of rows, and rows of each, that are read
SLICES = 5  # turns of a round that reads: the shorter they are, the more alike are the moments that a ratio compares
BOOKS = 20  # the book's daemon gets so many times fewer rows
IDLE = 10_000  # rows that are not due


def main() -> None:
    options = read_options()
    with ExitStack() as stack:
        if not stack.enter_context(database.standing_database()):
            sys.exit(
                "Rows come out of PostgreSQL: install it, and pip install -r benchmarks/requirements.txt"
            )
        bench = stack.enter_context(standing_bench(settings="benchmarks.caching.site"))
        from benchmarks.caching import table

        print_conditions(bench.redis, database.version(), f"medians of {options.rounds} rounds")
        say("filling the tables")
        table.fill(max(options.rows, IDLE))
        run = Run(bench, options)
        for part in PARTS:
            if part in options.parts:
                getattr(run, part)()
        say("")
        report.print_bars_of(run.measured, options.rows)


def read_options() -> Namespace:
    parser = ArgumentParser(description="Cached rows, ours against others.")
    parser.add_argument(
        "--parts", type=lambda text: text.split(","), default=PARTS, help=f"Of {','.join(PARTS)} (all)."
    )
    parser.add_argument("--rows", type=int, default=50_000, help="In the table (default: 50000).")
    parser.add_argument("--rounds", type=int, default=3, help="Turns of each system (default: 3).")
    parser.add_argument("--periods", type=int, default=4, help="For which lateness is measured (default: 4).")
    parser.add_argument("--calls", type=int, default=200, help="Of a turn that reads (default: 200).")
    return parser.parse_args()


class Run:
    """The parts, each with an empty server."""

    def __init__(self, bench: Bench, options: Namespace) -> None:
        self.bench, self.options = bench, options
        self.measured = report.Measured()

    def refresh(self) -> None:
        from benchmarks.caching.daemons import refresh
        from benchmarks.caching.reader import Reader

        with Reader("Book", {}) as reader:
            for number in range(1, self.options.rounds + 1):
                for how_many in DAEMONS:
                    say(f"refresh, round {number} of {self.options.rounds}: {how_many} daemons")
                    turn = refresh(self.bench, self.options.rows, how_many)
                    self.measured.refreshes.setdefault(how_many, []).append(turn)
                say(f"refresh, round {number} of {self.options.rounds}: {BOOK}")
                self.measured.books.append(reader.do("refresh_book", self.options.rows // BOOKS))
        report.print_refreshes(self.measured, self.options.rows)

    def lateness(self) -> None:
        from benchmarks.caching.lateness import lateness

        for how_many in DAEMONS:
            say(f"lateness, {how_many} daemons")
            turn = lateness(self.bench, self.options.rows, how_many, self.options.periods)
            self.measured.latenesses[how_many] = turn
        report.print_latenesses(self.measured.latenesses, self.options.rows, self.options.periods)

    def reading(self) -> None:
        from benchmarks.caching.reader import Reader
        from benchmarks.caching.systems import find

        self.bench.clear()
        chosen = Random(2).sample(range(1, self.options.rows + 1), LISTS * LENGTH)
        lists = [chosen[at : at + LENGTH] for at in range(0, len(chosen), LENGTH)]
        with ExitStack() as stack:
            readers = {}
            for name, way in find().items():
                say(f"reading: {name} begins")
                readers[name] = stack.enter_context(Reader(way.system.__name__, way.environment))
                readers[name].do("begin", lists)
                self.measured.guarantees[name] = way.guarantees
            self.measured.reads = {name: [] for name in readers}
            for number in range(1, self.options.rounds * SLICES + 1):
                for name, reader in readers.items():
                    say(f"reading, turn {number} of {self.options.rounds * SLICES}: {name}")
                    self.measured.reads[name].append(reader.do("read", lists, self.options.calls))
        report.print_reads(self.measured)

    def counts(self) -> None:
        from benchmarks.caching.counts import count

        say("counts")
        self.measured.counts = count(self.bench)
        report.print_counts(self.measured.counts)

    def idle(self) -> None:
        from benchmarks.caching.daemons import idle

        say("idle")
        report.print_idling(idle(self.bench, IDLE), IDLE)


if __name__ == "__main__":
    main()
