"""What is told of addresses: the place where one lives, the table that says so, and an import of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["country", "region", "city"]
_DEPTH: dict[Level, int] = {"country": 1, "region": 2, "city": 3}


@dataclass(frozen=True, slots=True)
class Place:
    """A city, or the region or country where no more is known. What is not known is empty."""

    #: The code of ISO 3166-1, "US", if the source has one.
    country: str = ""
    country_name: str = ""
    #: The code within the country, "CA", or else the name.
    region: str = ""
    region_name: str = ""
    city: str = ""

    @property
    def id(self) -> str:
        """What it is known by in every table and from every source: "US/CA/Mountain View", "US/CA", "US"."""
        return self.id_at("city")

    def id_at(self, level: Level) -> str:
        """The id of what it belongs to: id_at("region") is "US/CA"; "unknown" if not even the country is known."""
        parts = (self.country, self.region, self.city)[: _DEPTH[level]]
        together = "".join(parts)
        if "/" in together or "%" in together:
            parts = tuple(part.replace("%", "%25").replace("/", "%2F") for part in parts)
        return "/".join(parts).rstrip("/") or "unknown"


#: The first place of every table: where nobody knows.
UNKNOWN = Place()


@dataclass(frozen=True)
class TableInfo:
    """A table in Redis."""

    name: str
    #: A digest of its content: the same source imported twice is the same version.
    version: str
    #: What it was made from, for people.
    source: str
    #: 1970 if what is stored of it cannot be read.
    imported_at: datetime
    #: Ranges of addresses.
    ipv4: int
    ipv6: int
    #: In Redis, and in a process that has loaded it.
    stored_size: int
    size: int


@dataclass(frozen=True)
class Imported:
    """What an import has done."""

    version: str
    #: It was the current version before.
    was_current: bool
    source: str
    #: Ranges after neighbours of one place became one, and places.
    ipv4: int
    ipv6: int
    places: int
    #: Ranges in the source that name no place: their addresses are unknown.
    nameless: int
    stored_size: int
