"""
The layout of a stored table: columns and then names, cut into parts that are compressed one by one.

The widest columns come first, so all are aligned and can be read without a copy. Columns of 32 bits are
little-endian. The version is a digest of the content, and not of its compressed form, which differs between machines;
so the same source gives the same version everywhere. Names are stored once: a place has the number of its region, and
a region the number of its country.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256

from components.exceptions import GeoTableDamaged, UnknownFormat
from components.services.geo.builder import Builder
from components.services.geo.facts import Place
from components.services.geo.ranges import WIDE, Cells, Ipv4Ranges, Ipv6Ranges

FORMAT = 1
#: Bytes of a part before it is compressed: Redis sends the compressed part in milliseconds.
PART = 4 * 1024 * 1024
_LARGEST = 2**40  # bytes of a table: far more than any source needs
_FAST = 1  # level of zlib; the next levels take longer than they save
_NARROW = 4  # bytes of an address of IPv4, and of a place


@dataclass(frozen=True)
class Manifest:
    """The parts of a version, and its source."""

    ipv4: int
    ipv6: int
    #: Bytes of the whole table, of each part but the last, and of all compressed parts.
    size: int
    part: int
    stored_size: int
    #: A digest of each part before it is compressed.
    digests: Sequence[str]
    source: str
    format: int = FORMAT

    def write(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def read(text: bytes) -> Manifest:
        """Read a stored manifest. Raises UnknownFormat, GeoTableDamaged."""
        try:
            found = json.loads(text)
            if found["format"] <= FORMAT:
                manifest = Manifest(**found)
                manifest._check()
                return manifest
        except (ValueError, TypeError, LookupError, RecursionError):
            raise GeoTableDamaged("its manifest cannot be read") from None
        raise UnknownFormat(
            f"The geo table has the format {found['format']}, and this release reads up to {FORMAT}. Update it."
        )

    def _check(self) -> None:
        """Raise ValueError or TypeError if these cannot be the numbers and digests of a table."""
        numbers = (self.ipv4, self.ipv6, self.size, self.part, self.stored_size)
        if not all(type(number) is int and 0 <= number <= _LARGEST for number in numbers) or not self.part:
            raise ValueError
        if names_start(self) > self.size or len(self.digests) != -(-self.size // self.part):
            raise ValueError
        if not all(isinstance(each, str) for each in (self.source, *self.digests)):
            raise TypeError


def write_table(builder: Builder) -> bytearray:
    """Return all bytes of a table."""
    four, six = builder.ipv4, builder.ipv6
    data = bytearray()
    data += six.starts.cells
    data += six.ends.cells
    for column in (four.starts, four.ends, four.places, six.places):
        data += _little(column)
    data += _write_names(builder.places)
    return data


def version_of(data: bytearray, ipv4: int, ipv6: int) -> str:
    return sha256(b"%d %d %d " % (FORMAT, ipv4, ipv6) + sha256(data).digest()).hexdigest()[:20]


def cut(data: bytearray) -> list[memoryview]:
    """Return the parts of a table."""
    view = memoryview(data)
    return [view[at : at + PART] for at in range(0, len(data), PART)]


def compress(part: memoryview) -> bytes:
    return zlib.compress(part, _FAST)


def digest(part: bytes | memoryview) -> str:
    return sha256(part).hexdigest()[:32]


def decompress(stored: bytes, size: int, expected: str) -> bytes:
    """Return a part of *size* bytes. Raises GeoTableDamaged if its digest is not the *expected* one."""
    unpacking = zlib.decompressobj()
    try:
        part = unpacking.decompress(stored, size + 1)
    except zlib.error as error:
        raise GeoTableDamaged(f"it cannot be decompressed ({error})") from None
    if len(part) != size or digest(part) != expected:
        raise GeoTableDamaged("its checksum is wrong")
    return part


def read_table(data: bytearray, manifest: Manifest) -> tuple[Ipv4Ranges, Ipv6Ranges, tuple[Place, ...]]:
    four, six = manifest.ipv4, manifest.ipv6
    view, at = memoryview(data).toreadonly(), 0

    def take(length: int) -> memoryview:
        nonlocal at
        start, at = at, at + length
        return view[start:at]

    first, last = (take(six * WIDE) for _ in range(2))
    starts, ends, places = (_cells(take(four * _NARROW)) for _ in range(3))
    ipv6 = Ipv6Ranges(first, last, _cells(take(six * _NARROW)))
    return Ipv4Ranges(starts, ends, places), ipv6, _read_names(bytes(view[at:]))


def names_start(manifest: Manifest) -> int:
    """Return where in the bytes of a table the names begin."""
    return manifest.ipv4 * 3 * _NARROW + manifest.ipv6 * (2 * WIDE + _NARROW)


def read_regions(text: bytes | bytearray) -> dict[str, tuple[str, str]]:
    """Return the names of countries and regions by their ids."""
    countries, regions, _cities = json.loads(text)
    known = [(*each, "", "") for each in countries]
    known += [(*countries[country], code, name) for country, code, name in regions]
    places = [Place(*names) for names in known]
    return {place.id: (place.country_name, place.region_name) for place in places if place.country}


def _little(cells: array[int]) -> bytes:
    if sys.byteorder == "big":
        cells = array(cells.typecode, cells)
        cells.byteswap()
    return cells.tobytes()


def _cells(view: memoryview) -> Cells:
    if sys.byteorder == "little":
        return view.cast("I")
    cells = array("I", view.tobytes())
    cells.byteswap()
    return cells


def _write_names(places: Sequence[Place]) -> bytes:
    countries: dict[tuple[str, str], int] = {}
    regions: dict[tuple[int, str, str], int] = {}
    cities = []
    for place in places:
        country = countries.setdefault((place.country, place.country_name), len(countries))
        region = regions.setdefault((country, place.region, place.region_name), len(regions))
        cities.append([region, place.city])
    return json.dumps([list(countries), list(regions), cities], ensure_ascii=False).encode()


def _read_names(text: bytes) -> tuple[Place, ...]:
    countries, regions, cities = json.loads(text)
    known = [(*countries[country], code, name) for country, code, name in regions]
    return tuple(Place(*[*known[region], city]) for region, city in cities)
