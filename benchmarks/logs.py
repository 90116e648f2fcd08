"""
Logs handed out through Redis and counted by place, beside the book's loop and GoAccess.

The lines are made up (log_lines.py), and all tables are compared with the expected ones. The book's loop is from
chapter 6.6 of "Redis in Action", with its counting errors corrected. GoAccess is a program that reads the file
itself, without Redis; it counts more than days and places, but locates no addresses here. Lines of web servers are
counted by path, referrer and agent as well.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from redis import Redis

from benchmarks import log_lines
from benchmarks.harness import Bench, Crew, Rounds, Task, Turn, client, say
from benchmarks.log_lines import FIRST_DAY, Locator, Tally, World
from benchmarks.report import (
    Bar,
    Column,
    at_least,
    at_most,
    mid,
    middle,
    none,
    print_bars,
    print_rounds,
    ratio,
    span,
)
from components.services.geo import import_places
from components.services.logs import PLACES, Aggregation, Copier, LogStream
from components.services.logs.lines import LineReader, find_format
from components.services.logs.traffic import DIMENSIONS, Traffic
from components.services.logs.traffic.place_counter import PlaceCounter
from components.services.logs.worker.log_worker import LogWorker

ALL = 7_300_000_000  # lines of the book's two years
#: The demanded lines per second, by level.
LEVELS = {"country": 4_200_000, "city": 2_500_000}
CHUNK = 4 << 20  # bytes of lines
KEY = "book:file"
GOACCESS = "GoAccess, no places"
#: In the combined format: the row and what is counted by besides cities and hours.
COMBINED = ", combined"
WEB = {"combined, by city": (), "combined, by city, path, referrer, agent": DIMENSIONS}
# The bytes that the book reads at a time, and the lines after which its callback writes.
BLOCK, FLUSH = 128 * 1024, 100_000


class Flow(NamedTuple):
    """Bytes that were sent over the wire."""

    to: int
    back: int


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    with TemporaryDirectory(prefix="logs-") as folder:
        logs = Logs(bench, crew, Path(folder), options)
        for number in range(1, options.rounds + 1):
            for level in LEVELS:
                for processes in (1, 2):
                    say(f"round {number} of {options.rounds}: {processes} processes by {level}")
                    logs.ours(level, processes)
                say(f"round {number} of {options.rounds}: the book's loop by {level}")
                logs.book(level)
            for by in WEB:
                logs.web(by)
            logs.goaccess("")
            logs.goaccess(COMBINED)
        logs.report()


class Logs:
    """All turns with the same lines, each with an empty server."""

    def __init__(self, bench: Bench, crew: Crew, folder: Path, options: Namespace) -> None:
        self.bench, self.crew, self.options = bench, crew, options
        self.log, self.short = folder / "access.log", folder / "short.log"
        self.world = log_lines.world(options.ranges)
        self.locator = Locator(self.world)
        say("making lines")
        self.tally, self.head = self._write(self.log, options.lines), self._write(self.short, options.book)
        self.combined = folder / "combined.log"
        self.requests = self._write(self.combined, options.book, "combined")
        self.csv = log_lines.write_places(self.world, folder)
        self.turns: Rounds = {}
        self.peak, self.flows = 0, dict[str, Flow]()
        self.wrong = 0
        self.size = self.log.stat().st_size

    def _write(self, path: Path, number: int, form: str = "book") -> Tally:
        tally = Tally()
        with path.open("wb") as file:
            file.writelines(log_lines.blocks(number, form, tally=tally))
        return tally

    def _begin(self) -> None:
        self.bench.clear()
        import_places(*self.csv)
        Aggregation(PLACES).join()

    def ours(self, level: str, processes: int) -> None:
        """Copy the log into Redis, and count all of it in each number of processes."""
        self._begin()
        before = self._flow()
        self._note("copylogs", self.crew.do(Task(copy, (str(self.log), 2 * max(self.size, CHUNK)))))
        copied = self._flow()
        self.peak = max(self.peak, self.bench.memory())
        self._note(row_name(level, processes), self.crew.do(*[Task(count, (level,))] * processes))
        counted = self._flow()
        self.flows["copy"] = Flow(copied.to - before.to, copied.back - before.back)
        self.flows[level] = Flow(counted.to - copied.to, counted.back - copied.back)
        for name, expected in log_lines.expected(self.tally, self.locator, level).items():
            self._check(f"{level}, {processes} processes: {name}", Aggregation(PLACES).table(name), expected)

    def book(self, level: str) -> None:
        """Count fewer lines, in the book's way."""
        self._begin()
        self.bench.redis.set(KEY, self.short.read_bytes())
        task = Task(count_as_the_book, (self.world, KEY, self.options.book, level))
        self._note(f"the book's loop, by {level}", self.crew.do(task))
        for name, expected in log_lines.expected(self.head, self.locator, level).items():
            pairs: Any = self.bench.redis.zrange(f"book:{name}", 0, -1, withscores=True)
            self._check(
                f"book, {level}: {name}", {place.decode(): int(number) for place, number in pairs}, expected
            )

    def web(self, name: str) -> None:
        """Copy and count lines of web servers."""
        self._begin()
        self.crew.do(Task(copy, (str(self.combined), 2 * CHUNK + self.combined.stat().st_size)))
        self._note(name, self.crew.do(Task(count, ("city", "combined", WEB[name]))))
        for table, expected in log_lines.expected(self.requests, self.locator, "city").items():
            self._check(f"{name}: {table}", Aggregation(PLACES).table(table), expected)
        first, last = Traffic().latest(3) or (FIRST_DAY, FIRST_DAY)
        for each in WEB[name]:
            found = Traffic().values(each, first, last)
            self._check(f"{name}: {each}", (found.total, found.without), (self.options.book, 0))

    def goaccess(self, form: str) -> None:
        if not (program := shutil.which("goaccess")):
            print("GoAccess is not installed and is left out: apt install goaccess")
            return
        log = self.combined if form else self.short
        command = [program, str(log), "--no-global-config", "--no-progress", "-o"]
        command.append(str(log.with_name("report.json")))
        if form:
            command.append("--log-format=COMBINED")
        else:
            command += ["--log-format=%h %d %t %U", "--date-format=%Y-%m-%d", "--time-format=%H:%M:%S"]
        begun, used = time.monotonic(), _children()
        subprocess.run(command, check=True, capture_output=True)
        took = time.monotonic() - begun, _children() - used
        self._note(GOACCESS + form, [(self.options.book, *took)])

    def _note(self, what: str, done: list[tuple[int, float, float]]) -> None:
        """Record the simultaneous work of processes as one turn, with the sums of their lines and processor times."""
        lines, wall, cpu = (
            sum(each[0] for each in done),
            max(each[1] for each in done),
            sum(each[2] for each in done),
        )
        turn: Turn = {"rate": lines / wall, "cpu": cpu / lines * 1e9}
        self.turns.setdefault(what, []).append(turn)

    def _flow(self) -> Flow:
        info: Any = self.bench.redis.info("stats")
        return Flow(info["total_net_input_bytes"], info["total_net_output_bytes"])

    def _check(self, what: str, found: Any, expected: Any) -> None:
        if found != expected:
            self.wrong += 1
            print(f"\n{what} differs from the counts of the lines.")

    def report(self) -> None:
        order = ["copylogs", *(row_name(level, number) for level in LEVELS for number in (1, 2))]
        rounds = {
            name: self.turns[name] for name in (*order, *(name for name in self.turns if name not in order))
        }
        took = Column("7.3 billion lines take", lambda _, turns: _hours(ALL / middle(turns, "rate") / 3600))
        print_rounds("", rounds, mid("lines/s", "rate"), span(), mid("CPU, ns a line", "cpu"), took)
        print(f"\nA line is {self.size / self.options.lines:.1f} bytes.")
        print(f"Redis has {self.peak / 1e6:,.0f} MB when all lines are copied and none are counted.")
        for what, flow in self.flows.items():
            print(f"Over the wire, {what}: {flow.to / 1e6:,.0f} MB to Redis, {flow.back / 1e6:,.0f} MB back.")
        print_bars(self._bars())
        if self.wrong:
            sys.exit("Counts are wrong.")

    def _bars(self) -> Iterator[Bar]:
        yield at_least("copylogs", 4_000_000, middle(self.turns["copylogs"], "rate"), ",.0f", " lines/s")
        for level, least in LEVELS.items():
            one, two = (self.turns[row_name(level, number)] for number in (1, 2))
            yield at_least(f"by {level}, end to end", least, middle(one, "rate"), ",.0f", " lines/s")
            times = ratio(one, self.turns[f"the book's loop, by {level}"])
            yield at_least(f"by {level}, times the book's loop", 20, times, ".1f")
            if peer := self.turns.get(GOACCESS):
                yield at_least(f"by {level}, times GoAccess without places", 20, ratio(one, peer), ".1f")
            growth = median(b["cpu"] / a["cpu"] - 1 for a, b in zip(one, two, strict=True))
            yield at_most(f"by {level}, CPU a line with two processes", 0.1, growth, "+.0%")
        if peer := self.turns.get(GOACCESS + COMBINED):
            for name in WEB:
                yield at_least(f"{name}, times GoAccess", 10, ratio(self.turns[name], peer), ".1f")
        yield none("tables that differ from the counts of the lines", self.wrong)


def row_name(level: str, processes: int) -> str:
    return f"by {level}, {processes} process{'es' * (processes > 1)}"


def _hours(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"


# Jobs of processes, which return lines, seconds, and seconds of processor time


def copy(path: str, limit: int) -> Generator[None, None, tuple[int, float, float]]:
    copier = Copier(LogStream(limit=limit), size=CHUNK)
    client().ping()
    yield
    begun = _now()
    copier.copy(path)
    return _took(copier.lines, begun)


def count(
    level: str, form: str = "book", by: Sequence[str] = ()
) -> Generator[None, None, tuple[int, float, float]]:
    """Count as aggregatelogs does. The clock starts after the addresses are loaded and the kernel is compiled."""
    reader = LineReader(find_format(form))
    counter = PlaceCounter(level=level, kernel=reader.kernel, form=reader.form, dimensions=by)
    counter.block(reader.read(next(log_lines.blocks(100, form, addresses=10))))
    counter.flush()
    worker = LogWorker(Aggregation(PLACES), reader, [lambda: counter], drains=True)
    yield
    begun = _now()
    worker.run()
    return _took(worker.lines, begun)


def count_as_the_book(
    world: World, key: str, lines: int, level: str
) -> Generator[None, None, tuple[int, float, float]]:
    """Count the lines of a file that is stored in Redis."""
    redis, locator = client(), Locator(world)
    names = locator.cities if level == "city" else locator.countries
    yield
    begun = _now()
    sums: dict[str, Counter[str]] = {}
    for number, line in enumerate(_read_lines(redis, key), 1):
        address, day, _rest = line.split(" ", 2)
        sums.setdefault(day, Counter())[locator.find(address, names)] += 1
        if number % FLUSH == 0:
            _write(redis, sums, level)
    _write(redis, sums, level)
    return _took(lines, begun)


def _read_lines(redis: Redis, key: str) -> Iterator[str]:
    rest, at = b"", 0
    while block := redis.getrange(key, at, at + BLOCK - 1):
        at += len(block)  # type: ignore[arg-type]
        *lines, rest = (rest + block).split(b"\n")  # type: ignore[operator]
        for line in lines:
            yield line.decode()


def _write(redis: Redis, sums: dict[str, Counter[str]], level: str) -> None:
    pipe = redis.pipeline(transaction=False)
    for day, counts in sums.items():
        for place, number in counts.items():
            pipe.zincrby(f"book:daily:{level}:{day}", number, place)
    pipe.execute()
    sums.clear()


def _children() -> float:
    """Return the seconds of processor time of programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _now() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


def _took(lines: int, begun: tuple[float, float]) -> tuple[int, float, float]:
    wall, cpu = _now()
    return lines, wall - begun[0], cpu - begun[1]
