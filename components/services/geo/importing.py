"""
import_places(): a file or several become the current version of a table.

All is read and checked in memory first; then parts are stored and made current in one step (storing.py). So a source
that is wrong, and an import that dies, leave the table as it was. The same source twice is the same version.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from components.exceptions import GeoTableDamaged, InvalidGeoSource
from components.kit.values import check_name
from components.services.geo import csvs
from components.services.geo.building import Builder, Progress
from components.services.geo.layout import PART, Manifest, compress, cut, digest, version_of, write_table
from components.services.geo.mmdb import MARK, MARKED, read_mmdb
from components.services.geo.records import Imported
from components.services.geo.storing import store
from components.services.geo.tables import DEFAULT, look


def import_places(
    *paths: str | Path, name: str = DEFAULT, force: bool = False, progress: Progress | None = None
) -> Imported:
    """
    Make what *paths* say the table *name*: a .mmdb, or CSV files of blocks and the one of their locations.

    With *force* all parts are stored anew, also those that are there. *progress* is given a text now and then. Raises
    InvalidGeoSource, ExtraNotInstalled, OSError; GeoTableDamaged, RedisUnavailable.
    """
    check_name("geo table", name)
    was_version = _current(name)
    builder = Builder(progress)
    source = _read([Path(path) for path in paths], builder)
    builder.finish()
    version, manifest, parts = _write(builder, source)
    if progress:
        progress(
            f"{manifest.ipv4 + manifest.ipv6:,} ranges of {len(builder.places) - 1:,} places: version {version}"
        )
    store(name, version, manifest, parts, force=force, progress=progress)
    return Imported(
        version=version,
        was_current=was_version == version,
        source=source,
        ipv4=manifest.ipv4,
        ipv6=manifest.ipv6,
        places=len(builder.places) - 1,
        nameless=builder.nameless,
        stored_size=manifest.stored_size,
    )


def _write(builder: Builder, source: str) -> tuple[str, Manifest, list[bytes]]:
    """The version, what it is made of, and its parts, compressed."""
    ipv4, ipv6 = len(builder.ipv4.places), len(builder.ipv6.places)
    data = write_table(builder)
    parts = [compress(part) for part in cut(data)]
    manifest = Manifest(
        ipv4=ipv4,
        ipv6=ipv6,
        size=len(data),
        part=PART,
        stored_size=sum(map(len, parts)),
        digests=[digest(part) for part in cut(data)],
        source=source,
    )
    return version_of(data, ipv4, ipv6), manifest, parts


def _current(name: str) -> str | None:
    """The version; asked first, so that nobody reads a big file for nothing while Redis is away."""
    try:
        info = look(name)
    except GeoTableDamaged:
        return None
    return info.version if info else None


def _read(paths: Sequence[Path], builder: Builder) -> str:
    """What they are, for people."""
    if not paths:
        raise InvalidGeoSource("No file is named: name a .mmdb, or CSV files of blocks and of locations.")
    if len(paths) == 1 and _is_mmdb(paths[0]):
        return read_mmdb(paths[0], builder)
    return csvs.read_csvs([_recognised(path) for path in paths], builder)


def _is_mmdb(path: Path) -> bool:
    if path.suffix.lower() == ".mmdb":
        return True
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MARKED))
        return MARK in file.read()


def _recognised(path: Path) -> csvs.CsvFile:
    if found := csvs.recognise(path):
        return found
    if _is_mmdb(path):
        raise InvalidGeoSource(f"{path} is a MaxMind DB, which is imported alone.")
    known = "; ".join(", ".join(columns) for columns in csvs.KINDS.values())
    raise InvalidGeoSource(
        f"{path} is no MaxMind DB, and none of its first lines names the columns of known CSV: {known}."
    )
