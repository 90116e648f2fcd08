"""What processes of logs.py do: copy a file into Redis, count it, or count it as the book does."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Iterator
from typing import NamedTuple

from redis import Redis

from benchmarks.aggregating.lines import World
from benchmarks.aggregating.places import Locator
from benchmarks.crew import client

#: Bytes of lines in a chunk.
CHUNK = 4 << 20
_BLOCK = 128 * 1024  # bytes that the book reads at a time
_FLUSH = 100_000  # lines after which the book's callback writes


class Turn(NamedTuple):
    """What one process did."""

    lines: int
    #: Seconds.
    wall: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.lines / self.wall


def copy(path: str, limit: int) -> Generator[None, None, Turn]:
    from components.services.logs import Copier, LogStream

    copier = Copier(LogStream(limit=limit), size=CHUNK)
    client().ping()
    yield
    begun = _now()
    copier.copy(path)
    return _turn(copier.lines, begun)


def count(level: str, kernel: str | None = None) -> Generator[None, None, Turn]:
    """The table of addresses is loaded, and what is compiled is ready, before the clock starts."""
    from components.services.logs import PLACES, Aggregation
    from components.services.logs.lines import Book, LineReader
    from components.services.logs.traffic.place_counter import PlaceCounter
    from components.services.logs.worker.log_worker import LogWorker

    reader = LineReader(Book(), kernel=kernel)
    counter = PlaceCounter(level=level, kernel=reader.kernel)
    counter.block(reader.read(b"1.2.3.4 2011-10-10 13:55:36 a\n"))
    counter.flush()
    worker = LogWorker(Aggregation(PLACES), reader, [lambda: counter], drains=True)
    yield
    begun = _now()
    worker.run()
    return _turn(worker.lines, begun)


def count_as_the_book(world: World, key: str, lines: int, level: str) -> Generator[None, None, Turn]:
    """The loop of chapter 6.6, mended so that it counts right; by lines of a file that lies in Redis."""
    redis, locator = client(), Locator(world)
    names = locator.cities if level == "city" else locator.countries
    yield
    begun = _now()
    sums: dict[str, Counter[str]] = {}
    for number, line in enumerate(_read_lines(redis, key), 1):
        address, day, _rest = line.split(" ", 2)
        sums.setdefault(day, Counter())[locator.find(address, names)] += 1
        if number % _FLUSH == 0:
            _write(redis, sums, level)
    _write(redis, sums, level)
    return _turn(lines, begun)


def _read_lines(redis: Redis, key: str) -> Iterator[str]:
    rest, at = b"", 0
    while block := redis.getrange(key, at, at + _BLOCK - 1):
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


def _now() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


def _turn(lines: int, begun: tuple[float, float]) -> Turn:
    wall, cpu = _now()
    return Turn(lines, wall - begun[0], cpu - begun[1])
