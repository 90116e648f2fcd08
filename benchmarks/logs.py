"""
Logs handed out through Redis and counted by place, ours against the book's loop and GoAccess:
`python benchmarks/logs.py`; docs/benchmarks.md says what it measures.

The lines are made up, and whoever made them says what they must come to.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.aggregating import jobs, lines, places
from benchmarks.aggregating.jobs import Turn
from benchmarks.bench import Bench, say
from benchmarks.crew import Crew, Task
from benchmarks.server import standing_bench
from benchmarks.tables import Bar, print_bars, print_conditions, print_table

ALL = 7_300_000_000  # lines of the book's two years
LEVELS = ("country", "city")
KEY = "book:file"


class Flow(NamedTuple):
    """What went over the wire, bytes."""

    to: int
    back: int


def main() -> None:
    options = read_options()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="logs-")))
        bench = stack.enter_context(standing_bench())
        print_conditions(bench.redis, f"{options.lines:,} lines; medians of {options.rounds} rounds")
        run = Run(bench, stack.enter_context(Crew(3)), folder, options)
        for number in range(1, options.rounds + 1):
            run.round(number)
        run.goaccess()
        run.report()


def read_options() -> Namespace:
    parser = ArgumentParser(description="Logs counted by place, ours against others.")
    parser.add_argument("--lines", type=int, default=20_000_000, help="Of the log (default: 20 million).")
    parser.add_argument("--rounds", type=int, default=3, help="Turns of each (default: 3).")
    parser.add_argument(
        "--book", type=int, default=500_000, help="Lines for the book's loop (default: 500,000)."
    )
    return parser.parse_args()


class Run:
    """All turns on the same lines, each with an empty server."""

    def __init__(self, bench: Bench, crew: Crew, folder: Path, options: Namespace) -> None:
        self.bench, self.crew, self.options = bench, crew, options
        self.log, self.short = folder / "access.log", folder / "short.log"
        self.tally, self.world = lines.Tally(), lines.world()
        self.locator = places.Locator(self.world)
        say("making lines")
        self._write(self.log, options.lines, self.tally)
        self.head = lines.Tally()
        self._write(self.short, options.book, self.head)
        self.csv = places.write(self.world, folder)
        self.turns: dict[str, list[Turn]] = {}
        self.peak, self.flows = 0, dict[str, Flow]()
        self.is_wrong = False
        self.size = self.log.stat().st_size

    def _write(self, path: Path, number: int, tally: lines.Tally) -> None:
        with path.open("wb") as file:
            file.writelines(lines.blocks(number, tally=tally))

    def round(self, number: int) -> None:
        for level in LEVELS:
            for processes in (1, 2):
                say(f"round {number} of {self.options.rounds}: {processes} processes by {level}")
                self._ours(level, processes)
            say(f"round {number}: the book's loop by {level}")
            self._book(level)
        say("")

    def _begin(self) -> None:
        from components.services.geo import import_places
        from components.services.logs import PLACES, Aggregation

        self.bench.clear()
        import_places(*self.csv)
        Aggregation(PLACES).join()

    def _ours(self, level: str, processes: int) -> None:
        self._begin()
        before = self._flow()
        self._note("copy", self.crew.do([Task(jobs.copy, (str(self.log), 2 * self.size))]))
        copied = self._flow()
        self.peak = max(self.peak, self.bench.memory())
        self._note(f"{level} {processes}", self.crew.do([Task(jobs.count, (level,))] * processes))
        counted = self._flow()
        self.flows["copy"] = Flow(copied.to - before.to, copied.back - before.back)
        self.flows[level] = Flow(counted.to - copied.to, counted.back - copied.back)
        self._check(f"{level}, {processes}", places.expected(self.tally, self.locator, level), "ours")

    def _book(self, level: str) -> None:
        self._begin()
        self.bench.redis.set(KEY, self.short.read_bytes())
        task = Task(jobs.count_as_the_book, (self.world, KEY, self.options.book, level))
        self._note(f"book {level}", self.crew.do([task]))
        self._check(f"book, {level}", places.expected(self.head, self.locator, level), "book")

    def _note(self, what: str, turns: list[Turn]) -> None:
        """Processes at once are one turn, of their lines and processor time together."""
        wall = max(each.wall for each in turns)
        both = Turn(sum(each.lines for each in turns), wall, sum(each.cpu for each in turns))
        self.turns.setdefault(what, []).append(both)

    def _flow(self) -> Flow:
        info: Any = self.bench.redis.info("stats")
        return Flow(info["total_net_input_bytes"], info["total_net_output_bytes"])

    def _check(self, what: str, tables: dict[str, Counter[str]], who: str) -> None:
        from components.services.logs import Aggregation

        for name, expected in tables.items():
            if who == "ours":
                found: Any = Aggregation("places").table(name)
            else:
                pairs: Any = self.bench.redis.zrange(f"book:{name}", 0, -1, withscores=True)
                found = {member.decode(): int(count) for member, count in pairs}
            if found != expected:
                self.is_wrong = True
                print(f"\n{what}: {name} is not what the lines come to.")

    def goaccess(self) -> None:
        """It reads the file itself, without Redis, counts more than days and places, and here locates nothing."""
        if not (program := shutil.which("goaccess")):
            print("GoAccess is not installed, and left out.")
            return
        command = [program, str(self.short), "--no-global-config", "--log-format=%h %d %t %U"]
        command += ["--date-format=%Y-%m-%d", "--time-format=%H:%M:%S", "--no-progress", "-o"]
        for number in range(self.options.rounds):
            begun = time.monotonic()
            subprocess.run(
                [*command, str(self.short.with_name(f"{number}.json"))], check=True, capture_output=True
            )
            wall = time.monotonic() - begun
            self.turns.setdefault("goaccess", []).append(Turn(self.options.book, wall, wall))

    def rate(self, what: str) -> float:
        return median(each.rate for each in self.turns[what])

    def cpu(self, what: str) -> float:
        """Nanoseconds of processor time of our processes for a line."""
        return median(each.cpu / each.lines for each in self.turns[what]) * 1e9

    def report(self) -> None:
        rows = [self._row("copylogs", "copy")]
        for level in LEVELS:
            rows += [self._row(f"by {level}, {n} process{'es' * (n > 1)}", f"{level} {n}") for n in (1, 2)]
        rows += [self._row(f"the book's loop, by {level}", f"book {level}") for level in LEVELS]
        if "goaccess" in self.turns:
            rows.append(self._row("GoAccess, no places", "goaccess"))
        head = ["", "lines/s", "slowest to fastest", "CPU, ns a line", "7.3 billion lines take"]
        print_table(head, rows)
        print(f"\nA line is {self.size / self.options.lines:.1f} bytes.")
        print(f"Redis has {self.peak / 1e6:,.0f} MB when all is copied and nothing counted.")
        for what, flow in self.flows.items():
            print(f"Over the wire, {what}: {flow.to / 1e6:,.0f} MB to Redis, {flow.back / 1e6:,.0f} MB back.")
        print_bars(self._bars())
        if self.is_wrong:
            sys.exit("Counts are wrong.")

    def _row(self, name: str, what: str) -> list[str]:
        rates = [each.rate for each in self.turns[what]]
        hours = ALL / self.rate(what) / 3600
        took = f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"
        return [
            name,
            f"{self.rate(what):,.0f}",
            f"{min(rates):,.0f} to {max(rates):,.0f}",
            f"{self.cpu(what):,.0f}",
            took,
        ]

    def _bars(self) -> list[Bar]:
        asked = {"country": 4_200_000, "city": 2_500_000}
        bars = [Bar("copylogs", "4,000,000 lines/s", f"{self.rate('copy'):,.0f}", self.rate("copy") >= 4e6)]
        for level, least in asked.items():
            rate = self.rate(f"{level} 1")
            bars.append(Bar(f"by {level}, end to end", f"{least:,} lines/s", f"{rate:,.0f}", rate >= least))
            times = median(
                ours.rate / book.rate
                for ours, book in zip(self.turns[f"{level} 1"], self.turns[f"book {level}"], strict=True)
            )
            bars.append(Bar(f"by {level}, times the book's loop", "20", f"{times:.1f}", times >= 20))
            growth = median(
                (two.cpu / two.lines) / (one.cpu / one.lines) - 1
                for one, two in zip(self.turns[f"{level} 1"], self.turns[f"{level} 2"], strict=True)
            )
            bars.append(
                Bar(
                    f"by {level}, CPU a line with two processes",
                    "+10 % at most",
                    f"{growth:+.0%}",
                    growth <= 0.1,
                )
            )
        right = "no" if self.is_wrong else "yes"
        return [*bars, Bar("counts are what the lines come to", "all", right, not self.is_wrong)]


if __name__ == "__main__":
    main()
