"""
A folder of all that may be wrong with logs, good ones among them, copied at once: each good line counts once, and all
else is told with file, line and byte.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from array import array
from collections import Counter
from ipaddress import IPv4Address
from pathlib import Path
from random import Random

import pytest
import zstandard
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.logs import Aggregation, LogStream
from components.services.logs.lines import Counting, PlaceTable, Ranges, Reason, find_format
from tests.logs.commands.test_copylogs import start
from tests.support.logs import joined, lines
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

LIMIT = 150_000  # bytes: the last file has more, compressed, and so waits
ENDLESS = 256 << 20  # bytes of a line; in a sparse file they need no disk
MEMORY = 120 << 20  # bytes of the process, less than half of that
NETWORK = int(IPv4Address("10.0.0.0"))
#: What stands in lines as their day, and whether there is such a day.
DAYS = {
    "9999-12-31": True,
    "0001-01-01": True,
    "2012-02-29": True,
    "0000-01-01": False,
    "10000-01-01": False,
    "2011-02-29": False,
    "2011-13-01": False,
    "-001-01-01": False,
}


class Folder:
    """Files, and what is to become of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Numbers of the lines that are counted (see lines()).
        self.good: list[int] = []
        #: File and byte of lines that are rejected when they are counted, and why; None: for whatever reason.
        self.rejected: dict[tuple[str, int], Reason | None] = {}
        #: Of a file the line, the byte, and what is told of it.
        self.told: dict[str, tuple[int, int, str]] = {}
        self._next = 0

    def add(self, name: str, *parts: bytes) -> None:
        (self.path / name).write_bytes(b"".join(parts))

    def lines(self, count: int, *, kept: int | None = None) -> bytes:
        """Lines that stand nowhere else, the first *kept* of which can be read."""
        first, self._next = self._next, self._next + count
        self.good += range(first, first + (count if kept is None else kept))
        return lines(first, count)

    def cut(self, name: str, packed: bytes, left: bytes, says: str) -> None:
        """A file that ends too early; *left* is what can be decompressed."""
        first = int(IPv4Address(left.split(b" ")[0].decode())) - NETWORK
        self.good += range(first, first + left.count(b"\n"))
        self.add(name, packed)
        self.told[name] = (left.count(b"\n") + 1, left.rfind(b"\n") + 1, says)


def fill_with_damage(folder: Folder) -> None:
    folder.add("good.gz", gzip.compress(folder.lines(300)), gzip.compress(folder.lines(100)))
    folder.add("good.zst", zstandard.compress(folder.lines(300)))
    packed = gzip.compress(folder.lines(2_000, kept=0))
    left = zlib.decompressobj(31).decompress(packed[:-500])
    folder.cut("cut.gz", packed[:-500], left, "gzip member 1 ends too early")
    folder.add("begun.gz", packed[:15])
    folder.told["begun.gz"] = (1, 0, "gzip member 1 ends too early")
    packed = zstandard.compress(folder.lines(8_000, kept=0))
    left = zstandard.ZstdDecompressor().decompressobj().decompress(packed[:-500])
    folder.cut("cut.zst", packed[:-500], left, "a zstd frame ends too early")
    data = folder.lines(500)
    folder.add("checksum.gz", gzip.compress(data)[:-8], bytes(8))
    folder.told["checksum.gz"] = (501, len(data), "gzip member 1 is damaged")
    data = folder.lines(50)
    folder.add("followed.gz", gzip.compress(data), b"no gzip")
    folder.told["followed.gz"] = (51, len(data), "gzip member 1 is followed by something else")


def fill_with_junk(folder: Folder) -> None:
    before, junk = folder.lines(10), Random(9).randbytes(20_000) + b"\n"
    folder.add("junk", before, junk, folder.lines(10))
    at = len(before)
    for line in junk.split(b"\n")[:-1]:
        folder.rejected["junk", at] = None
        at += len(line) + 1
    before, nul = folder.lines(10), bytes(5_000) + b"\n"
    among = folder.lines(1).replace(b"achievement", b"achieve\0ment")
    folder.add("nul", before, nul, among, b"10.0\0.0.1 2011-10-10 13:55:36 a\n", folder.lines(10))
    folder.rejected["nul", len(before)] = Reason.FORMAT
    folder.rejected["nul", len(before + nul + among)] = Reason.ADDRESS


def fill_with_days(folder: Folder) -> None:
    folder.add("good", folder.lines(300))
    written = b""
    for day, is_one in DAYS.items():
        line = folder.lines(1, kept=is_one).replace(b"2011-10-10", day.encode())
        if not is_one:
            folder.rejected["days", len(written)] = Reason.DATE
        written += line
    folder.add("days", written)


def fill_with_long_lines(folder: Folder) -> None:
    before = folder.lines(5)
    folder.add("long\nline", before, b"x" * 50_000 + b"\n", folder.lines(5))
    folder.told["long?line"] = (6, len(before), "the line is longer than a chunk")
    with (folder.path / "endless").open("wb") as file:
        file.truncate(ENDLESS)
    os.utime(folder.path / "endless", (0, 0))  # nobody writes to it any more
    folder.told["endless"] = (1, 0, "the line is longer than a chunk")


class Worker:
    """An aggregation that counts as workers do, and notes what it sees."""

    def __init__(self) -> None:
        self._consumer = joined("places").consumer()
        network = (array("I", [NETWORK]), array("I", [NETWORK + (1 << 24) - 1]), array("I", [1]))
        self._counting = Counting(PlaceTable(Ranges(*network), Ranges()), find_format("book"), kernel="naive")
        self.addresses = Counter[int]()
        self.rejected: dict[tuple[str, int], Reason] = {}
        #: How far each file was copied.
        self.ends: dict[str, int] = {}

    def count(self) -> bool:
        """What there is; whether there was any."""
        if not (chunks := self._consumer.claim(4)):
            return False
        for chunk in chunks:
            columns = self._counting.add(self._consumer.read(chunk), source=chunk.file, offset=chunk.start)
            name = Path(chunk.file).name
            self.addresses.update(columns.addresses.tolist())
            for at, reason in zip(columns.rejected_starts.tolist(), columns.reasons.tolist(), strict=True):
                self.rejected[name, chunk.start + at] = Reason(reason)
            self.ends[name] = max(self.ends.get(name, 0), chunk.end)
        counts = self._counting.take()
        days = Counter[str]()
        for (day, place), count in counts.counts.items():
            assert place == 1
            days[day.isoformat()] += count
        totals = {reason.name.lower(): count for reason, count in counts.rejected.items()} | {
            "lines": counts.lines
        }
        self._consumer.flush(chunks, {"days": days, "totals": totals})
        return True


def test_all_that_is_good_is_counted_once_and_all_else_is_reported(
    redis_server: EmbeddedServer, redis: Redis, tmp_path: Path
) -> None:
    folder, worker = Folder(tmp_path / "logs"), Worker()
    folder.path.mkdir()
    for fill in (fill_with_damage, fill_with_junk, fill_with_days, fill_with_long_lines):
        fill(folder)
    last = folder.lines(60_000, kept=0)
    folder.add("the last", last)

    process = start(
        redis_server.url,
        folder.path,
        folder.path / "nothing",
        "--chunk=16K",
        f"--limit={LIMIT}",
        "--no-progress",
    )
    assert eventually(lambda: redis.info("clients")["blocked_clients"])  # of the last file, it waits for room
    assert peak_memory(process.pid) < MEMORY
    os.truncate(folder.path / "the last", 100)
    while process.poll() is None or LogStream().status().chunks:
        worker.count()
    output = process.communicate()[0].decode()

    assert process.returncode == 1
    read, before = last[: worker.ends["the last"]], len(folder.good)
    assert 100 < len(read) < len(last)
    whole, left = read.count(b"\n"), read[read.rfind(b"\n") + 1 :]
    first = int(IPv4Address(last.split(b" ")[0].decode())) - NETWORK
    folder.good += range(first, first + whole)
    if re.match(rb"\S+ \d{4}-\d\d-\d\d", left):
        folder.good.append(first + whole)
    elif left:
        folder.rejected["the last", len(read) - len(left)] = None
    lines_of_last = whole + bool(left)
    folder.told["the last"] = (
        lines_of_last + 1,
        len(read),
        "it became shorter while it was read, and has 100 bytes now",
    )
    folder.told["nothing"] = (0, 0, "cannot be read: No such file or directory")
    assert before < len(folder.good)

    assert worker.addresses == Counter(NETWORK + number for number in folder.good)
    assert worker.rejected.keys() == folder.rejected.keys()
    for at, reason in folder.rejected.items():
        assert reason in (None, worker.rejected[at]), at
    assert_told(output, folder)
    assert_counted(worker, folder)


def peak_memory(pid: int) -> int:
    """The most that a process ever had, in bytes; only Linux tells of another one."""
    status = Path(f"/proc/{pid}/status")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) * 1024 if status.exists() else 0  # type: ignore[index]


def assert_told(output: str, folder: Folder) -> None:
    found = re.findall(r"^\S*?/?([^/\n]+), line ([\d,]+), byte ([\d,]+): (.*)$", output, re.MULTILINE)
    told = {name: (_number(line), _number(byte), reason) for name, line, byte, reason in found}
    assert len(found) == len(told)
    assert told.keys() == folder.told.keys()
    for name, (line, byte, says) in folder.told.items():
        assert told[name][:2] == (line, byte), name
        assert re.match(says, told[name][2]), name
    assert f"Problems: {len(found)}." in output
    assert "copied before" not in output


def _number(shown: str) -> int:
    return int(shown.replace(",", ""))


def assert_counted(worker: Worker, folder: Folder) -> None:
    days = dict.fromkeys((day for day, is_one in DAYS.items() if is_one), 1)
    aggregation = Aggregation("places")
    assert aggregation.table("days") == days | {"2011-10-10": len(folder.good) - len(days)}
    totals = aggregation.table("totals")
    assert totals.pop("lines") == len(folder.good) + len(folder.rejected)
    assert totals == Counter(reason.name.lower() for reason in worker.rejected.values())
    status = LogStream().status()
    assert (status.lines, status.skipped) == (len(folder.good) + len(folder.rejected), 2)
    assert (status.bytes, status.chunks) == (0, 0)
