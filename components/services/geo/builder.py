"""
Builder: collects the ranges and places of a source, in any order, and refuses ranges that overlap.

Neighbours with the same place become one range, which halves the number of ranges of networks. The file and the line
of each range are kept, so that an error can name both ranges that overlap. Places with the same names are one place.
"""

from array import array
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeAlias

from components.exceptions import InvalidGeoSource
from components.services.geo.facts import UNKNOWN, Place
from components.services.geo.ranges import WideArray

#: A function that is called now and then with a text about the progress.
Progress: TypeAlias = Callable[[str], None]

_TELL = 20_000  # ranges
_LINE_BITS = 48


class Family:
    """The ranges of IPv4, or of IPv6."""

    def __init__(self, address: type[IPv4Address] | type[IPv6Address]) -> None:
        self._address = address
        self.most = 2**32 - 1 if address is IPv4Address else 2**128 - 1
        self._empty()
        self._is_sorted = True

    def _empty(self) -> None:
        is_wide = self._address is IPv6Address
        self.starts: Any = WideArray() if is_wide else array("I")
        self.ends: Any = WideArray() if is_wide else array("I")
        self.places = array("I")
        self._origins = array("Q")  # the file's number and the line of each
        self._last = -1

    def add(self, start: int, end: int, place: int, origin: int) -> None:
        if start <= self._last:
            self._is_sorted = False
        elif start == self._last + 1 and self.places and self.places[-1] == place and self._is_sorted:
            self.ends.pop()
            self.ends.append(end)
            self._last = end
            return
        self.starts.append(start)
        self.ends.append(end)
        self.places.append(place)
        self._origins.append(origin)
        self._last = end

    def finish(self, tell: Callable[[int], str]) -> None:
        """Sort the ranges. Raises InvalidGeoSource if two overlap; *tell* returns where one comes from."""
        if self._is_sorted:
            return
        starts, ends, places, origins = self.starts, self.ends, self.places, self._origins
        self._empty()
        self._is_sorted = True
        before = -1
        for at in sorted(range(len(starts)), key=starts.__getitem__):
            if starts[at] <= self._last:
                one, other = sorted((before, at), key=origins.__getitem__)
                shown = [
                    f"{self._address(starts[each])} to {self._address(ends[each])}" for each in (other, one)
                ]
                raise InvalidGeoSource(
                    f"{tell(origins[other])}: {shown[0]} overlaps {shown[1]} of {tell(origins[one])}. An address can "
                    "have one place only. Correct the file, or download it again."
                )
            self.add(starts[at], ends[at], places[at], origins[at])
            before = at


class Builder:
    """A table that is being built."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.ipv4, self.ipv6 = Family(IPv4Address), Family(IPv6Address)
        self._numbers: dict[tuple[str, ...], int] = {}
        self._files: list[str] = []
        self._progress = progress
        self._count = 0
        #: The number of ranges that have no place.
        self.nameless = 0

    @property
    def places(self) -> list[Place]:
        return [UNKNOWN, *(Place(*names) for names in self._numbers)]

    def begin(self, file: str) -> None:
        """Begin with *file*: everything that is added from now on comes from it."""
        self._files.append(file)

    def place(self, country: str, country_name: str, region: str, region_name: str, city: str) -> int:
        """Return the number of a place; 0 if its country is not known."""
        code = country or country_name
        if not code:
            return 0
        part = region or region_name
        names = (code, country_name or code, part, region_name or part, city)
        return self._numbers.setdefault(names, len(self._numbers) + 1)

    def add(self, family: Family, start: int, end: int, place: int, line: int = 0) -> None:
        """Add the range of addresses from *start* to *end*, in *line* of the file. Raises InvalidGeoSource."""
        self._count += 1
        if self._progress and not self._count % _TELL:
            self._progress(f"{self._count:,} ranges read")
        origin = len(self._files) - 1 << _LINE_BITS | line
        if not 0 <= start <= end <= family.most:
            raise InvalidGeoSource(
                f"{self._tell(origin)}: the range from {start} to {end} ends before it begins, or is beyond "
                f"{family.most}. Correct the file, or download it again."
            )
        if place:
            family.add(start, end, place, origin)
        else:
            self.nameless += 1

    def finish(self) -> None:
        """Sort the ranges. Raises InvalidGeoSource if ranges overlap, or if there are none."""
        for family in (self.ipv4, self.ipv6):
            family.finish(self._tell)
        if not len(self.ipv4.places) + len(self.ipv6.places):
            raise InvalidGeoSource(
                f"{', '.join(self._files)}: none of {self._count:,} ranges has a country. Use a database of cities "
                "or countries, such as GeoLite2-City."
            )

    def _tell(self, origin: int) -> str:
        file, line = self._files[origin >> _LINE_BITS], origin & (1 << _LINE_BITS) - 1
        return f"{file}, line {line:,}" if line else file
