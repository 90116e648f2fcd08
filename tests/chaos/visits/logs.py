"""
Logs of visits, and what is to be counted in them: summed up while they are written, not read from them.

The files are plain, gzip of two members and zstd, their last lines have no end; a file is of two of six days. One
line of a hundred is junk, or of a day that is too early or too late. Each address is looked up once, at the end.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Address, ip_address
from itertools import accumulate
from pathlib import Path
from random import Random

import zstandard

from components.services.logs import PLACES
from tests.chaos.visits import plan, world

#: Lines that are not counted, and why.
JUNK = {
    b"\n": "empty",
    b"\r\n": "empty",
    b"no-blank-in-here\n": "format",
    b"\0\0\0\xff\xfe\n": "format",
    b"256.1.1.1 2011-10-10 13:55:36 achievement-1\n": "address",
    b"16.1.1.01 2011-10-10 13:55:36 achievement-1\n": "address",
    b"2001:db8::1::1 2011-10-10 13:55:36 achievement-1\n": "address",
    b"\0\x01 \xff\xfe\n": "address",
    b"16.1.1.1 2011-02-30 13:55:36 achievement-1\n": "date",
    b"16.1.1.1 0000-01-01 13:55:36 achievement-1\n": "date",
    b"16.1.1.1 yesterday achievement-1\n": "date",
    b"16.1.1.1 1969-12-31 23:59:59 achievement-1\n": "late",
    b"2001:db8::1 0001-01-01 00:00:00 achievement-1\n": "late",
    b"16.1.1.1 9999-12-31 23:59:59 achievement-1\n": "future",
}
_DAYS = [f"2011-10-{day:02}" for day in range(8, 14)]
_KINDS = [f"achievement-{number}" for number in range(12)]
_PIECE = 10_000  # lines of one day, at most
_TAILS = 200  # different ones of a day
_LEVELS = ("country", "region", "city")


class Sums:
    """What is to be counted in the lines that were written."""

    def __init__(self) -> None:
        self.lines = self.bytes = 0
        self._addresses: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._hours: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._tails: Counter[str] = Counter()
        self._junk: Counter[bytes] = Counter()

    def add(self, day: str, addresses: list[str], tails: list[str], junk: list[bytes], size: int) -> None:
        self.lines += len(addresses) + len(junk)
        self.bytes += size
        self._addresses[day].update(addresses)
        self._hours[day].update(zip(addresses, (tail.split()[1][:2] for tail in tails), strict=True))
        self._tails.update(tails)
        self._junk.update(junk)

    def tables(self) -> dict[str, dict[str, int]]:
        """All tables of both aggregations."""
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for day, addresses in self._addresses.items():
            for address, number in addresses.items():
                for level, id_ in zip(_LEVELS, world.ids_of(address), strict=True):
                    found[f"daily:{level}:{day}"][id_] += number
                found["checks"]["addresses"] += low_half(address) * number
            found["days"][day] = addresses.total()
            for (address, hour), number in self._hours[day].items():
                found[f"hourly:{day}"][f"{hour}/{world.ids_of(address)[0]}/"] += number
                found[f"answers:{day}"][f"{hour}/"] += number
        for tail, number in self._tails.items():
            day, _time, kind = tail.split()
            found[f"events:{day}"][kind] += number
        for name in (PLACES, plan.EVENTS):
            totals = found[f"totals:{name}"]
            totals["lines"], totals["counted"] = self.lines, self._tails.total()
            for line, number in self._junk.items():
                totals[JUNK[line]] += number
        return {table: dict(counts) for table, counts in found.items()}


@cache
def low_half(text: str) -> int:
    """Of an IPv4 address, 16 bits; 0 of others: their sum tells who was counted, and is exact in Redis."""
    address = ip_address(text)
    mapped = address if isinstance(address, IPv4Address) else address.ipv4_mapped
    return int(mapped) & 0xFFFF if mapped else 0


def write_logs(folder: Path, lines: int, seed: int) -> Sums:
    """Write so many lines into files in the folder."""
    random, sums = Random(seed), Sums()
    shares = [random.uniform(0.5, 1.5) for _ in range(plan.FILES)]
    ends = [round(lines * each / sum(shares)) for each in accumulate(shares)]
    for number, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        days = _DAYS[number // 2 : number // 2 + 2] or _DAYS[-1:]
        # Without its last newline.
        pieces = list(_pieces(random, sums, last - first, days))
        pieces[-1] = pieces[-1][:-1]
        sums.bytes -= 1
        _write(folder, number, pieces)
    return sums


def _pieces(random: Random, sums: Sums, lines: int, days: list[str]) -> Iterator[bytes]:
    visitors = world.addresses()
    reach = list(accumulate(1 / (rank + 20) for rank in range(len(visitors))))
    for first in range(0, lines, _PIECE):
        count = min(_PIECE, lines - first)
        day = days[first * len(days) // lines]
        tails = random.choices(_tails(random, day), k=count - count // 100)
        addresses = random.choices(visitors, cum_weights=reach, k=len(tails))
        junk = random.choices(list(JUNK), k=count // 100)
        written = [f"{address} {tail}".encode() for address, tail in zip(addresses, tails, strict=True)]
        for line in junk:
            written.insert(random.randrange(len(written)), line)  # never last
        piece = b"".join(written)
        sums.add(day, addresses, tails, junk, len(piece))
        yield piece


def _tails(random: Random, day: str) -> list[str]:
    times = [divmod(random.randrange(86_400), 60) for _ in range(_TAILS)]
    return [
        f"{day} {minutes // 60:02}:{minutes % 60:02}:{second:02} {random.choice(_KINDS)}\n"
        for minutes, second in times
    ]


def _write(folder: Path, number: int, pieces: list[bytes]) -> None:
    name = f"visits-{number:02}.log"
    half = len(pieces) // 2
    if number % 3 == 0:
        (folder / name).write_bytes(b"".join(pieces))
    elif number % 3 == 1:
        members = [gzip.compress(b"".join(part), 1) for part in (pieces[:half], pieces[half:])]
        (folder / f"{name}.gz").write_bytes(b"".join(members))
    else:
        (folder / f"{name}.zst").write_bytes(zstandard.compress(b"".join(pieces), 1))
