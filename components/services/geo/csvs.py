"""
Ranges and places from CSV: one file has blocks with numbers of locations, another one has the locations.

The book uses the pair of GeoLiteCity (startIpNum, endIpNum, locId; in Latin-1); its successor GeoLite2 has networks
instead. A file is recognised by the names of its columns, whatever its own name.

Files of DB-IP and IP2Location have ranges and places in each row, and no names of columns: the caller names them.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from itertools import islice
from pathlib import Path

from components.exceptions import InvalidGeoSource, InvalidValue
from components.services.geo.builder import Builder

#: Columns of each kind of file. Files whose kinds begin with the same word belong together.
KINDS: dict[str, tuple[str, ...]] = {
    "GeoLiteCity blocks": ("startipnum", "endipnum", "locid"),
    "GeoLiteCity locations": ("locid", "country", "region", "city"),
    "GeoLite2 blocks": ("network", "geoname_id"),
    "GeoLite2 locations": ("geoname_id", "country_iso_code", "country_name"),
}
#: Columns of locations: number; country and its name; region and its name; city.
_NAMES = {
    "GeoLiteCity": ("locid", "country", "", "region", "", "city"),
    "GeoLite2": (
        "geoname_id",
        "country_iso_code",
        "country_name",
        "subdivision_1_iso_code",
        "subdivision_1_name",
        "city_name",
    ),
}
#: Names of columns, for files that have none.
NAMES = ("first", "last", "network", "country", "country_name", "region", "region_name", "city")
#: Stands for a column that is not read; as a value, for a name that is not known.
_NONE = "-"
_MAPPED = 0xFFFF << 32  # the first address of IPv4 in IPv6
_PREFACE = 5  # lines that may have the names of columns: the first one may be a copyright
_LONGEST = 10_000  # bytes of such a line
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class CsvFile:
    """A file of a known kind."""

    path: Path
    kind: str
    encoding: str
    columns: Sequence[str]
    #: The number of the line with the names of columns.
    header: int

    @property
    def family(self) -> str:
        return self.kind.partition(" ")[0]

    @property
    def is_blocks(self) -> bool:
        return self.kind.endswith("blocks")

    def each(self, wanted: Sequence[str], take: Callable[[int, Sequence[str]], None]) -> None:
        """
        Call *take* for each row with its line and the *wanted* columns; "" for columns that the file does not have.
        If that raises ValueError, raise InvalidGeoSource, which names the file and the line.
        """
        places = [self.columns.index(name) if name in self.columns else None for name in wanted]
        needed = max(place for place in places if place is not None)
        with self.path.open("rb") as file:
            # Decoded line by line, so that an error can name the line with the junk.
            reader = csv.reader(line.decode(self.encoding) for line in file)
            try:
                for row in islice(reader, self.header, None):
                    if len(row) <= needed and row:
                        raise ValueError(f"{len(row)} columns, of {len(self.columns)}")
                    if row:
                        take(reader.line_num, [row[place] if place is not None else "" for place in places])
            except InvalidGeoSource:
                raise
            except (csv.Error, ValueError) as error:
                line = reader.line_num + isinstance(error, UnicodeDecodeError)
                raise InvalidGeoSource(
                    f"{self.path}, line {line:,}: {error}. Correct the file, or download it again."
                ) from None


def recognise(path: Path) -> CsvFile | None:
    """Return the file if its first lines have the columns of a known kind, else None. Raises OSError."""
    with path.open("rb") as file:
        first = [file.readline(_LONGEST).removeprefix(_BOM).decode("latin-1") for _ in range(_PREFACE)]
    for number, line in enumerate(first, start=1):
        columns = [name.strip(' "\r\n').lower() for name in line.split(",")]
        kind = next((kind for kind, names in KINDS.items() if set(names) <= set(columns)), None)
        if kind:
            return CsvFile(path, kind, _encoding(path, kind), columns, number)
    return None


def _encoding(path: Path, kind: str) -> str:
    """Return the encoding. GeoLiteCity is in Latin-1, unless somebody has converted it."""
    if kind == "GeoLiteCity locations":
        try:
            path.read_bytes().decode()
        except UnicodeDecodeError:
            return "latin-1"
    return "utf-8"


def read_csvs(files: Sequence[CsvFile], builder: Builder) -> str:
    """Add files to *builder*, and return a description for people. Raises InvalidGeoSource, OSError."""
    blocks = [file for file in files if file.is_blocks]
    locations = [file for file in files if not file.is_blocks]
    if not blocks or len(locations) != 1 or len({file.family for file in files}) > 1:
        given = "; ".join(f"{file.path} has {file.kind}" for file in files)
        raise InvalidGeoSource(
            f"Files of blocks and one file of locations, of the same source, are needed; there are: {given}."
        )
    places = {"": 0, **_read_locations(locations[0], builder)}
    for file in blocks:
        builder.begin(file.path.name)
        _read_blocks(file, builder, places, locations[0].path.name)
    return ", ".join(file.path.name for file in (*blocks, *locations))


def check_columns(columns: Sequence[str]) -> None:
    """Raise InvalidValue if these columns do not say where an address is."""
    given = [name for name in columns if name != _NONE]
    addresses = {*given} & {"first", "last", "network"}
    if (
        not {*given} <= {*NAMES}
        or len({*given}) < len(given)
        or addresses not in ({"first", "last"}, {"network"})
        or not {*given} & {"country", "country_name"}
    ):
        raise InvalidValue(
            f"The columns {','.join(columns)} are wrong: name each once, {_NONE} for one that is not read. Needed "
            f"are first and last, or network; and country or country_name. There are: {', '.join(NAMES)}."
        )


def read_ranges(paths: Sequence[Path], columns: Sequence[str], builder: Builder) -> str:
    """Add files without names of columns to *builder*. Return and raise what read_csvs() does; also InvalidValue."""
    check_columns(columns)

    def take(line: int, row: Sequence[str]) -> None:
        first, last, network, *names = row
        start, end = _network(network) if network else (_number(first), _number(last))
        is_wide = end >= 2**32 or ":" in first + network
        if is_wide and start >= _MAPPED and end < _MAPPED + 2**32:
            start, end, is_wide = start - _MAPPED, end - _MAPPED, False
        family = builder.ipv6 if is_wide else builder.ipv4
        place = builder.place(*("" if name == _NONE else name for name in names))
        builder.add(family, start, end, place, line)

    for path in paths:
        builder.begin(path.name)
        CsvFile(path, "ranges", "utf-8-sig", columns, 0).each(NAMES, take)
    return ", ".join(path.name for path in paths)


def _number(address: str) -> int:
    return int(address) if address.isdecimal() else int(ip_address(address))


def _network(text: str) -> tuple[int, int]:
    network = ip_network(text)
    return int(network.network_address), int(network.broadcast_address)


def _read_locations(file: CsvFile, builder: Builder) -> dict[str, int]:
    places: dict[str, int] = {}

    def take(_line: int, row: Sequence[str]) -> None:
        location, *names = row
        place = builder.place(*names)
        if places.setdefault(location, place) != place:
            raise ValueError(f"location {location!r} was another place before")

    file.each(_NAMES[file.family], take)
    return places


def _read_blocks(file: CsvFile, builder: Builder, places: dict[str, int], names: str) -> None:
    def take(line: int, row: Sequence[str]) -> None:
        *addresses, location = row
        if len(addresses) == 2:  # of GeoLiteCity
            family, first, last = builder.ipv4, *map(int, addresses)
        else:
            family = builder.ipv6 if ":" in addresses[0] else builder.ipv4
            first, last = _network(addresses[0])
        if location not in places:
            raise ValueError(f"location {location!r} is not in {names}")
        builder.add(family, first, last, places[location], line)

    file.each(KINDS[file.kind], take)
