"""
Read a MaxMind DB, as a program of its own: write what is in the file *argument* to standard output, as JSON in lines.

The lines are {"places": […], "ranges": […]}, as often as needed; at the end {"type": …, "built": …}, or instead, why
the file cannot be read: {"odd": network, "type": …}, {"wrong": …}. A place is five texts; a range has the version of
its addresses, the first, the last, and the number of its place, from 0 on. This imports nothing of the app.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

_MANY = 1_000  # ranges in a line

_Names = tuple[str, str, str, str, str]


def main(path: str) -> None:
    import maxminddb

    try:
        with maxminddb.open_database(path) as reader:
            _read_all(reader)
    except (
        maxminddb.InvalidDatabaseError,
        ValueError,
        OverflowError,
        RecursionError,
        MemoryError,
        OSError,
    ) as error:
        _write(wrong=str(error).replace(path, "the file"))  # junk may cause any of them


def _read_all(reader: Any) -> None:
    metadata = reader.metadata()
    numbers: dict[_Names, int] = {}
    places: list[_Names] = []
    ranges: list[tuple[int, int, int, int]] = []
    for network, record in reader:
        try:
            names = _names(record)
            if not all(isinstance(name, str) for name in names):
                raise TypeError(names)
        except (AttributeError, TypeError, LookupError, ValueError):
            return _write(odd=str(network), type=metadata.database_type)
        if names not in numbers:
            numbers[names] = len(numbers)
            places.append(names)
        first, last = int(network.network_address), int(network.broadcast_address)
        ranges.append((network.version, first, last, numbers[names]))
        if len(ranges) == _MANY:
            _write(places=places, ranges=ranges)
            places, ranges = [], []
    _write(places=places, ranges=ranges)
    return _write(type=metadata.database_type, built=metadata.build_epoch)


def _write(**message: Any) -> None:
    json.dump(message, sys.stdout)
    sys.stdout.write("\n")


def _names(record: Mapping[str, Any]) -> _Names:
    country = record.get("country", _NOTHING)
    [region, *_] = record.get("subdivisions") or [_NOTHING]
    city = record.get("city", _NOTHING)
    return country.get("iso_code", ""), _name(country), region.get("iso_code", ""), _name(region), _name(city)


_NOTHING: Mapping[str, Any] = {}


def _name(thing: Mapping[str, Any]) -> str:
    """Return the name in English, or else in the first language that there is."""
    names = thing.get("names") or _NOTHING
    name: str = names["en"] if "en" in names else next(iter(names.values()), "")
    return name


if __name__ == "__main__":
    main(sys.argv[1])
