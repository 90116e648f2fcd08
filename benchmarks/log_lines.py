"""
Made-up ranges and log lines, which are the same in every run, and the counts that they must give.

Few addresses are in most lines, and few countries have most addresses.

Of 700,000 addresses, the one of rank r has a share of 1/(r + 50), so the first 1,000 have a third of all lines, like
the visitors of a site. Ranges follow each other over all of IPv4; a tenth of them are followed by a gap, and a fifth
end within a /24. A log goes from one day to the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

FIRST_DAY = date(2011, 10, 8)
_FIRST, _LAST = 1 << 24, 224 << 24  # unicast
_AT_ONCE = 50_000  # lines of a block: 2 MB in the book's format
# Flattens the ranks: the first address is in one line of 480.
_FLATNESS = 50
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BROWSER = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"
)


@dataclass(frozen=True)
class World:
    """
    Ranges with a city and a country each, which are numbers from 1 on; low numbers have the most ranges.

    The ranges of IPv6 are the same, with 2001: before them.
    """

    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    cities: NDArray[np.uint32]
    countries: NDArray[np.uint32]

    @property
    def ipv6_starts(self) -> bytes:
        return _wide(self.starts, 0)

    @property
    def ipv6_ends(self) -> bytes:
        return _wide(self.ends, 0xFF)


class Tally:
    """How many lines each address has on each day, counted while the lines are made."""

    def begin(self, addresses: list[str], days: int) -> None:
        self.addresses = addresses
        self.counts = np.zeros((days, len(addresses)), np.int64)

    def __iter__(self) -> Iterator[tuple[date, str, int]]:
        for day, number in zip(*self.counts.nonzero(), strict=True):
            yield FIRST_DAY + timedelta(int(day)), self.addresses[number], int(self.counts[day, number])


def _wide(numbers: NDArray[np.uint32], fill: int) -> bytes:
    wide = np.full((len(numbers), 16), fill, np.uint8)
    wide[:, :2] = 0x20, 0x01
    wide[:, 2:6] = numbers.astype(">u4").view(np.uint8).reshape(-1, 4)
    return wide.tobytes()


def world(ranges: int = 500_000, cities: int = 120_000, countries: int = 240) -> World:
    """Make ranges that cover most of IPv4."""
    random = np.random.default_rng(11)
    edges = np.cumsum(np.exp2(random.uniform(4, 16, ranges + 1)))
    edges = (_FIRST + edges / edges[-1] * (_LAST - _FIRST)).astype(np.int64)
    edges = np.unique(np.where(random.random(len(edges)) < 0.2, edges & ~0xF, edges & ~0xFF))
    lengths = np.diff(edges)
    lengths = np.where(random.random(len(lengths)) < 0.1, lengths - lengths // 3, lengths)
    city = 1 + (cities * random.random(len(lengths)) ** 3).astype(np.int64)
    country_of_city = np.minimum(random.zipf(1.3, cities + 1), countries)
    columns = edges[:-1], edges[:-1] + lengths - 1, city, country_of_city[city]
    return World(*(column.astype(np.uint32) for column in columns))


def blocks(
    lines: int,
    form: str = "book",
    *,
    addresses: int = 700_000,
    days: int = 3,
    ipv6: float = 0.0,
    first_day: date = FIRST_DAY,
    tally: Tally | None = None,
) -> Iterator[bytes]:
    """
    Yield a log of the format "book" or "combined" in blocks of 50,000 lines; *ipv6* is the share of IPv6 addresses.

    *tally* notes how many lines each address has on each day.
    """
    random = np.random.default_rng(7)
    texts = _addresses(random, addresses, ipv6)
    if tally is not None:
        tally.begin(texts, days)
    reach = np.cumsum(1 / (np.arange(addresses) + _FLATNESS))
    write = {"book": _book, "combined": _combined}[form]
    later = (first_day - FIRST_DAY).days * 86_400
    for first in range(0, lines, _AT_ONCE):
        count = min(_AT_ONCE, lines - first)
        who = np.searchsorted(reach, random.random(count) * reach[-1])
        when = (first + np.arange(count)) * (days * 86_400) // lines
        if tally is not None:
            np.add.at(tally.counts, (when // 86_400, who), 1)
        visitors, seconds = who.tolist(), (when + later).tolist()
        events = random.integers(0, 1_000, count).tolist()
        written = [
            write(texts[visitor], second, event)
            for visitor, second, event in zip(visitors, seconds, events, strict=True)
        ]
        yield "".join(written).encode()


def _addresses(random: Generator, count: int, ipv6: float) -> list[str]:
    """Make addresses in neighbourhoods of 4,096; there are a quarter as many neighbourhoods."""
    near = random.integers(_FIRST, _LAST, 1 + count // 4)[random.integers(0, 1 + count // 4, count)]
    numbers = near & ~0xFFF | random.integers(0, 1 << 12, count)
    is_ipv6 = random.random(count) < ipv6
    return [
        f"2001:{n >> 16:x}:{n & 0xFFFF:x}::1"
        if six
        else f"{n >> 24}.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"
        for n, six in zip(numbers.tolist(), is_ipv6.tolist(), strict=True)
    ]


def _when(second: int) -> tuple[date, str]:
    day, second = divmod(second, 86_400)
    time = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return FIRST_DAY + timedelta(days=day), time


def _book(address: str, second: int, event: int) -> str:
    day, time = _when(second)
    return f"{address} {day} {time} achievement-{event}\n"


def _combined(address: str, second: int, event: int) -> str:
    day, time = _when(second)
    stamp = f"{day.day:02}/{_MONTHS[day.month - 1]}/{day.year}:{time} +0000"
    request = f'"GET /achievements/{event}/ HTTP/1.1" 200 {5_000 + event}'
    return f'{address} - - [{stamp}] {request} "https://fakegame.example/" "{_BROWSER}"\n'


def country(number: int) -> str:
    """Return a country code of two letters."""
    return chr(65 + number // 26) + chr(65 + number % 26)


def region(city: int) -> str:
    return f"R{city % 70}"


def write_places(world: World, folder: Path) -> tuple[Path, Path]:
    """Write the CSV pair that importgeoip reads; return the two files."""
    blocks, places = folder / "Blocks.csv", folder / "Location.csv"
    columns = (world.starts.tolist(), world.ends.tolist(), world.cities.tolist())
    ranges = (f'"{start}","{end}","{city}"\n' for start, end, city in zip(*columns, strict=True))
    blocks.write_text("Made up\nstartIpNum,endIpNum,locId\n" + "".join(ranges))
    of_city = dict(zip(world.cities.tolist(), world.countries.tolist(), strict=True))
    cities = (
        f'{city},"{country(number)}","{region(city)}","City {city}","",0,0,,\n'
        for city, number in of_city.items()
    )
    head = "Made up\nlocId,country,region,city,postalCode,latitude,longitude,metroCode,areaCode\n"
    places.write_text(head + "".join(cities))
    return blocks, places


class Locator:
    """
    Ranges in lists, searched by bisection as in the book. Unlike the book's, they have ends, so that an unused
    address does not count for the city before it.
    """

    def __init__(self, world: World) -> None:
        self.starts, self.ends = world.starts.tolist(), world.ends.tolist()
        pairs = zip(world.cities.tolist(), world.countries.tolist(), strict=True)
        self.cities = [f"{country(number)}/{region(city)}/City {city}" for city, number in pairs]
        self.countries = [name.partition("/")[0] for name in self.cities]

    def find(self, address: str, names: list[str]) -> str:
        a, b, c, d = address.split(".")
        number = ((int(a) * 256 + int(b)) * 256 + int(c)) * 256 + int(d)
        at = bisect_right(self.starts, number) - 1
        return names[at] if at >= 0 and number <= self.ends[at] else "unknown"


def expected(tally: Tally, locator: Locator, level: str) -> dict[str, Counter[str]]:
    """Return the tables that all lines must give, looking up each address once."""
    names = locator.cities if level == "city" else locator.countries
    tables: dict[str, Counter[str]] = {}
    place = {address: locator.find(address, names) for address in tally.addresses}
    for day, address, count in tally:
        tables.setdefault(f"daily:{level}:{day}", Counter())[place[address]] += count
    return tables
