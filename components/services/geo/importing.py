"""
import_places() makes the content of files the current version of a table; remove() removes a table.

Everything is read and checked in memory first. Then the parts are stored one by one, and one script makes the version
current if all parts exist. Nobody reads a version before that, and everybody reads the complete version afterwards.
An invalid source or an interrupted import therefore leaves the table unchanged.

The same source gives the same version. An import that is killed leaves parts that expire within an hour; if it is
repeated before that, it writes only the missing ones. If two imports run at once, the version of the later one
becomes current.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from components.exceptions import GeoTableDamaged, InvalidGeoSource
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.ids import new_call
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.services.geo import csvs
from components.services.geo.builder import Builder, Progress
from components.services.geo.facts import Imported
from components.services.geo.keys import TableKeys
from components.services.geo.layout import PART, Manifest, compress, cut, digest, version_of, write_table
from components.services.geo.mmdb import MARK, MARKED, read_mmdb
from components.services.geo.table import DEFAULT, look

PUT, ACTIVATE, REMOVE = Script("geo/put"), Script("geo/activate"), Script("geo/remove")

_TRIES = 3


def import_places(
    *paths: str | Path,
    name: str = DEFAULT,
    columns: Sequence[str] = (),
    force: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """
    Import a .mmdb file, or CSV files of blocks and the file of their locations, as the table *name*; or CSV files of
    ranges and places, whose *columns* have these names. With *force*, all parts are stored again, even existing ones.
    *progress* is called with a text now and then. Raises InvalidGeoSource, ExtraNotInstalled, OSError, InvalidName,
    InvalidValue, GeoTableDamaged, RedisUnavailable.
    """
    info = None
    with suppress(GeoTableDamaged):
        info = look(name)  # first, so that no large file is read in vain while Redis is unavailable
    builder = Builder(progress)
    source = _read([Path(path) for path in paths], columns, builder)
    builder.finish()
    version, manifest, parts = _write(builder, source)
    if progress:
        progress(
            f"{manifest.ipv4 + manifest.ipv6:,} ranges of {len(builder.places) - 1:,} places: version {version}"
        )
    store(name, version, manifest, parts, force=force, progress=progress)
    return Imported(
        version=version,
        was_current=info is not None and info.version == version,
        source=source,
        ipv4=manifest.ipv4,
        ipv6=manifest.ipv6,
        places=len(builder.places) - 1,
        nameless=builder.nameless,
        stored_size=manifest.stored_size,
    )


def remove(name: str) -> bool:
    """
    Remove a table from Redis. Return False if there is none. Parts of other versions expire as they would have.
    Processes that have the table in memory keep it. Raises InvalidName, RedisUnavailable.
    """
    keys, client = TableKeys(name), get_client()
    with redis_errors():
        version = client.hget(keys.current, "version")
    if version is None:
        return False
    at_once(REMOVE.run(client, keys, version=version))
    return True


def store(
    name: str,
    version: str,
    manifest: Manifest,
    parts: Sequence[bytes],
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """
    Write the missing parts of a version, with *force* all of them, and make it current. Raises GeoTableDamaged,
    RedisUnavailable.
    """
    missing = list(range(len(parts))) if force else activate(name, version, manifest)
    for _ in range(_TRIES):
        if not missing:
            return
        for done, number in enumerate(missing, start=1):
            put(name, version, number, parts[number])
            if progress:
                progress(f"{done} of {len(missing)} parts stored")
        missing = activate(name, version, manifest)
    if not missing:
        return
    raise GeoTableDamaged(
        f"Redis has lost parts of the geo table {name!r} while others were written; the table is as it was. It seems "
        "to evict keys: give it more memory, and set maxmemory-policy to noeviction."
    )


def put(name: str, version: str, number: int, stored: bytes) -> None:
    """Write a part of a version."""
    at_once(PUT.run(get_client(), TableKeys(name), piece=f"{version}:{number}", bytes=stored))


def activate(name: str, version: str, manifest: Manifest) -> list[int]:
    """Make a version current. Return the numbers of its parts that are missing; if any are, nothing has changed."""
    count, text, call = len(manifest.digests), manifest.write(), new_call()
    request = {"version": version, "count": count, "json": text, "id": call}
    missing: list[int] = at_once(ACTIVATE.run(get_client(), TableKeys(name), **request))
    return missing


def _write(builder: Builder, source: str) -> tuple[str, Manifest, list[bytes]]:
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


def _read(paths: Sequence[Path], columns: Sequence[str], builder: Builder) -> str:
    if not paths:
        raise InvalidGeoSource("No file is given. Name a .mmdb, or CSV files of blocks and of locations.")
    if columns:
        return csvs.read_ranges(paths, columns, builder)
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
        raise InvalidGeoSource(f"{path} is a MaxMind DB. Import it alone, without other files.")
    known = "; ".join(", ".join(columns) for columns in csvs.KINDS.values())
    raise InvalidGeoSource(
        f"{path} is not a MaxMind DB, and none of its first lines has the columns of a known CSV file: {known}. "
        "Name the columns of another one with --columns."
    )
