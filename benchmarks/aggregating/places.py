"""The made-up world as the CSV pair that importgeoip reads, and as the book's loop keeps it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from pathlib import Path

from benchmarks.aggregating.lines import Tally, World


def country(number: int) -> str:
    """A code of two letters."""
    return chr(65 + number // 26) + chr(65 + number % 26)


def region(city: int) -> str:
    return f"R{city % 70}"


def write(world: World, folder: Path) -> tuple[Path, Path]:
    """The two files."""
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
    Ranges in lists, sought by bisection, as the book has them; but with their ends, so that an address of nobody is
    not taken for the city before it.
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
    """The tables that all lines must come to: each address is sought once."""
    names = locator.cities if level == "city" else locator.countries
    tables: dict[str, Counter[str]] = {}
    place = {address: locator.find(address, names) for address in tally.addresses}
    for day, address, count in tally:
        tables.setdefault(f"daily:{level}:{day}", Counter())[place[address]] += count
    return tables
