"""
Ranges and places from a MaxMind DB: GeoLite2 and GeoIP2 of cities or countries, DB-IP, and databases of the same
structure.

The package maxminddb, which the extra "logs" installs, reads it. It maps the file into memory, and a file that
shrinks meanwhile would kill the process; so a copy is read.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from components.exceptions import ExtraNotInstalled, InvalidGeoSource
from components.services.geo.builder import Builder

#: The mark before the metadata, near the end of the file.
MARK = b"\xab\xcd\xefMaxMind.com"
MARKED = 131_072  # bytes at the end of the file that have the mark

_Names = tuple[str, str, str, str, str]


def read_mmdb(path: Path, builder: Builder) -> str:
    """
    Add a file to *builder*, and return a description for people. Raises InvalidGeoSource, ExtraNotInstalled, OSError.
    """
    try:
        import maxminddb
    except ImportError:
        raise ExtraNotInstalled(
            f"{path} is a MaxMind DB, which needs the package maxminddb. "
            "Run pip install 'django-redis-components[logs]'."
        ) from None
    builder.begin(path.name)
    with TemporaryDirectory() as folder:
        copy = _copy(path, folder)
        try:
            with maxminddb.open_database(copy) as reader:
                return _read_all(path, reader, builder)
        except InvalidGeoSource:
            raise
        except (maxminddb.InvalidDatabaseError, ValueError, OverflowError) as error:
            # Junk may cause any of them.
            shown = str(error).replace(copy, path.name).rstrip(".")
            raise InvalidGeoSource(
                f"{path} is not a whole MaxMind DB: {shown}. It may be cut off. Download it again."
            ) from None


def _copy(path: Path, folder: str) -> str:
    copy = Path(folder, "copy.mmdb")
    try:
        shutil.copyfile(path, copy)
    except OSError as error:
        if error.filename is not None and error.filename2 is None:
            raise  # the file itself cannot be opened
        said = f"{error.strerror}, while it was copied into {folder}"
        raise OSError(error.errno, said, str(path)) from None
    return str(copy)


def _read_all(path: Path, reader: Any, builder: Builder) -> str:
    metadata = reader.metadata()

    @lru_cache(maxsize=65_536)
    def number_of(names: _Names) -> int:
        if not all(isinstance(name, str) for name in names):
            raise TypeError(names)
        return builder.place(*names)

    for network, record in reader:
        try:
            place = number_of(_names(record))
        except (AttributeError, TypeError, LookupError):
            raise InvalidGeoSource(
                f"{path}, network {network}: its record is not like those of GeoLite2 City or Country. The file is a "
                f"{metadata.database_type!r}."
            ) from None
        family = builder.ipv4 if network.version == 4 else builder.ipv6
        builder.add(family, int(network.network_address), int(network.broadcast_address), place)
    built = datetime.fromtimestamp(metadata.build_epoch, UTC)
    return f"{metadata.database_type}, built {built:%Y-%m-%d}"


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
