"""
The world of the demo: real places, with reserved addresses, so that the demo claims nothing about real addresses.

They are in two files in the format of GeoLite2, which `manage.py importgeoip` takes as well. The columns "utc_offset"
(hours) and "players" (relative to other places) are additions.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

_FOLDER = Path(__file__).parent / "geography"
BLOCKS, LOCATIONS = _FOLDER / "made-up-blocks.csv", _FOLDER / "made-up-locations.csv"


@dataclass(frozen=True)
class Location:
    """A place, and its networks."""

    country: str
    utc_offset: float
    players: int
    networks: tuple[IPv4Network | IPv6Network, ...]


def read_locations() -> list[Location]:
    """Return all places, in the order of the file."""
    networks = defaultdict(list)
    for row in _rows(BLOCKS):
        networks[row["geoname_id"]].append(ip_network(row["network"]))
    return [
        Location(
            country=row["country_iso_code"],
            utc_offset=float(row["utc_offset"]),
            players=int(row["players"]),
            networks=tuple(networks[row["geoname_id"]]),
        )
        for row in _rows(LOCATIONS)
    ]


@cache
def example_address() -> str:
    """Return an address that has a place."""
    return str(read_locations()[0].networks[0][9])


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        next(file)  # the first line says that the data are invented
        yield from csv.DictReader(file)
