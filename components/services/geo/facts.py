"""Facts about addresses: a place, a table of places, and the result of an import."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["country", "region", "city"]
_DEPTH: dict[Level, int] = {"country": 1, "region": 2, "city": 3}


@dataclass(frozen=True, slots=True)
class Place:
    """A city, or a region or country if nothing finer is known. Unknown fields are empty."""

    #: The code of ISO 3166-1, "US", if the source has one.
    country: str = ""
    country_name: str = ""
    #: The code within the country, "CA", or else the name.
    region: str = ""
    region_name: str = ""
    city: str = ""

    @property
    def id(self) -> str:
        """The id of the place in every table and from every source: "US/CA/Mountain View", "US/CA", "US"."""
        return self.id_at("city")

    def id_at(self, level: Level) -> str:
        """Return the id of the place at a level: "US/CA" for "region"; "unknown" if the country is not known."""
        parts = (self.country, self.region, self.city)[: _DEPTH[level]]
        together = "".join(parts)
        if "/" in together or "%" in together:
            parts = tuple(part.replace("%", "%25").replace("/", "%2F") for part in parts)
        return "/".join(parts).rstrip("/") or "unknown"


#: The first place of every table: that of unknown addresses.
UNKNOWN = Place()


@dataclass(frozen=True)
class TableInfo:
    """A table in Redis."""

    name: str
    #: A digest of its content: the same source imported twice is the same version.
    version: str
    #: A description of the source, for people.
    source: str
    #: 1970 if the stored instant cannot be read.
    imported_at: datetime
    #: Ranges of addresses.
    ipv4: int
    ipv6: int
    #: In Redis, and in a process that has loaded it.
    stored_size: int
    size: int


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    version: str
    #: True if it was the current version before.
    was_current: bool
    source: str
    #: Ranges, after neighbours with the same place became one, and places.
    ipv4: int
    ipv6: int
    places: int
    #: Ranges of the source that have no place: their addresses are unknown.
    nameless: int
    stored_size: int
