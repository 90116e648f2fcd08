"""Logs while Redis' memory is full, and when it has lost its last second: each line counts once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from redis import Redis

from components.embedded import EmbeddedServer
from components.services.logs import Aggregation, Copier, LogStream
from components.services.logs.lines import Columns
from components.testing import redis_at
from tests.support.counting_logs import worker
from tests.support.logs import bytes_in_flight, joined, let_leases_pass, lines
from tests.support.restricted import operator
from tests.support.waiting import eventually

LINES = 2_000
SIZE = 2_000


class Filling:
    """A callback that counts lines, and fills the memory of Redis when it has the first."""

    count = 0

    def block(self, columns: Columns) -> None:
        if not self.count:
            operator().config_set("maxmemory", 1)
        self.count += len(columns)

    def flush(self) -> Mapping[str, Mapping[str, int]]:
        count, self.count = self.count, 0
        return {"lines": {"all": count}}


def test_workers_make_room_where_memory_is_full(redis: Redis, tmp_path: Path) -> None:
    """They end when it is not any more, since an end needs a little."""
    (tmp_path / "log").write_bytes(lines(0, LINES) + b"junk\n")
    Copier(LogStream(), size=SIZE).copy(tmp_path / "log")
    counting = worker(Filling, name="lines")

    def make_room() -> bool:
        is_counted = eventually(lambda: not LogStream().status().chunks)
        operator().config_set("maxmemory", 0)
        return is_counted

    with ThreadPoolExecutor() as pool:
        room = pool.submit(make_room)
        assert counting.run() == 0
        assert room.result()
    aggregation = Aggregation("lines")
    assert aggregation.table("lines") == {"all": LINES}
    assert aggregation.table("totals:lines")["format"] == 1
    assert [sample.head for sample, _at in aggregation.samples()] == ["junk"]


def test_lines_lost_in_a_power_cut_are_copied_and_counted_again(tmp_path: Path) -> None:
    """With "everysec" the last second is lost: both what was copied then, and what was counted."""
    log, written, taken = tmp_path / "log", list[int](), iter(range(10_000))
    log.write_bytes(lines(0, LINES))

    def count() -> bool:
        """Count how often some lines come; return whether there were any."""
        if not (chunks := consumer.claim(3)):
            return False
        found = b"".join(map(consumer.read, chunks)).decode().splitlines()
        consumer.flush(chunks, {"lines": dict.fromkeys(found, 1)})
        return True

    def lately() -> Path:
        """Return the file that has what was done lately."""
        files = sorted(server.folder.rglob("*.aof"))
        return [each for each in files if not each.name.endswith(".base.aof")][-1]

    def cut_power() -> None:
        match next(taken):
            case 12:
                count()
                written.append(lately().stat().st_size)
            case 20:
                count()  # the very chunks that it is going to have again
                server.kill()
                os.truncate(lately(), written[0] + 100)
                server.start()

    with EmbeddedServer(tmp_path / "redis", appendfsync="everysec") as server, redis_at(server.url):
        aggregation = joined()
        consumer = aggregation.consumer()
        copier = Copier(LogStream(), size=SIZE, progress=cut_power)

        assert copier.copy(log) == "copied"
        assert copier.lines > LINES
        while count() or LogStream().status().chunks:
            let_leases_pass(operator(), aggregation)  # what a restart has made of them is claimed anew
        assert aggregation.table("lines") == dict.fromkeys(lines(0, LINES).decode().splitlines(), 1)
        assert LogStream().status().bytes == bytes_in_flight(operator()) == 0
        assert LogStream().status().lines == LINES
