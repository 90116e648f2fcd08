"""Logs while Redis' memory is full, and when it has lost its last second: each line counts once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

from components.embedded import EmbeddedServer
from components.services.logs import Aggregation, Chunk, Copier, LogStream
from components.services.logs.lines import Columns, LineReader, find_format
from components.services.logs.worker.log_worker import LogWorker
from components.testing import redis_at
from tests.support.logs import bytes_in_flight, joined, let_leases_pass, lines
from tests.support.restricted import operator
from tests.support.waiting import eventually

LINES = 2_000
SIZE = 2_000


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_bytes(lines(0, LINES))
    return path


Start = Callable[[Literal["everysec", "always"]], EmbeddedServer]


@pytest.fixture
def server_with(tmp_path: Path) -> Iterator[Start]:
    """A server that writes what it does into a file."""
    servers: list[EmbeddedServer] = []

    def begin(appendfsync: Literal["everysec", "always"]) -> EmbeddedServer:
        servers.append(EmbeddedServer(tmp_path / "redis", appendfsync=appendfsync).start())
        return servers[0]

    yield begin
    for each in servers:
        each.stop()


class Worker:
    """Counts how often each line comes, in flushes of a few chunks."""

    def __init__(self) -> None:
        self.aggregation = joined()
        self._consumer = self.aggregation.consumer()

    def count(self) -> bool:
        """Some of what there is; whether there was any."""
        if not (chunks := self._consumer.claim(3)):
            return False
        self._consumer.flush(chunks, {"lines": self.sums(chunks)})
        return True

    def sums(self, chunks: list[Chunk]) -> dict[str, int]:
        found = [line.decode() for chunk in chunks for line in self._consumer.read(chunk).splitlines()]
        assert len(found) == len(set(found))
        return dict.fromkeys(found, 1)

    def count_all(self) -> None:
        """As its leases end, too: what a restart has made of them is to be claimed anew."""
        for _ in range(LINES):
            if not self.count() and not LogStream().status().chunks:
                return
            let_leases_pass(operator(), self.aggregation)
        pytest.fail(f"Chunks are left: {LogStream().status()}")


def assert_each_line_counted_once() -> None:
    assert Aggregation("geo").table("lines") == dict.fromkeys(lines(0, LINES).decode().splitlines(), 1)
    assert LogStream().status().bytes == bytes_in_flight(operator()) == 0
    assert LogStream().status().lines == LINES


class Lines:
    """A callback that counts lines, and fills the memory of Redis when it has the first."""

    def __init__(self) -> None:
        self._count = 0

    def block(self, columns: Columns) -> None:
        if not self._count:
            operator().config_set("maxmemory", 1)
        self._count += len(columns)

    def flush(self) -> dict[str, dict[str, int]]:
        count, self._count = self._count, 0
        return {"lines": {"all": count}}


def test_workers_make_room_where_memory_is_full(server_with: Start, log: Path) -> None:
    """They end when it is not any more, since an end needs a little."""
    with redis_at(server_with("everysec").url) as client, ThreadPoolExecutor() as pool:
        log.write_bytes(lines(0, LINES) + b"junk\n")
        Copier(LogStream(), size=SIZE).copy(log)
        reader = LineReader(find_format("book"), kernel="naive")
        worker = LogWorker(Aggregation("lines"), reader, [Lines], drains=True)

        def make_room() -> bool:
            is_counted = eventually(lambda: not LogStream().status().chunks)
            client.config_set("maxmemory", 0)
            return is_counted

        room = pool.submit(make_room)

        assert worker.run() == 0
        assert room.result()
        aggregation = Aggregation("lines")
        assert aggregation.table("lines") == {"all": LINES}
        assert aggregation.table("totals:lines")["format"] == 1
        assert [sample.head for sample, _at in aggregation.samples()] == ["junk"]


def test_lines_lost_in_a_power_cut_are_copied_and_counted_again(server_with: Start, log: Path) -> None:
    """With "everysec" the last second is lost: both what was copied then, and what was counted."""
    server = server_with("everysec")
    with redis_at(server.url):
        worker = Worker()
        written: list[int] = []
        taken = iter(range(10_000))

        def cut_power() -> None:
            match next(taken):
                case 12:
                    worker.count()
                    written.append(_written(server).stat().st_size)
                case 20:
                    worker.count()  # the very chunks that it is going to have again
                    server.kill()
                    os.truncate(_written(server), written[0] + 100)
                    server.start()

        copier = Copier(LogStream(), size=SIZE, progress=cut_power)

        assert copier.copy(log) == "copied"
        assert copier.lines > LINES
        worker.count_all()
        assert_each_line_counted_once()


def _written(server: EmbeddedServer) -> Path:
    """The file that has what was done lately."""
    [*_, last] = sorted(each for each in server.folder.rglob("*.aof") if not each.name.endswith(".base.aof"))
    return last
