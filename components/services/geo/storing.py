"""
Storing a table: parts first, each by itself, and then one script that makes the version current if all are there.

Nobody reads a version before that, and everybody all of it after. An import that is killed leaves parts that expire
within an hour, and one that comes sooner writes only those that are missing. Of two at once the last one is current;
of the same source they write the same bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from components.exceptions import GeoTableDamaged
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.values import check_name
from components.services.geo import keys
from components.services.geo.building import Progress
from components.services.geo.layout import Manifest

_put = Script("geo/put")
_activate = Script("geo/activate")
_remove = Script("geo/remove")

_TRIES = 3


def put(name: str, version: str, number: int, stored: bytes) -> None:
    """Write a part."""
    _put(get_client(), keys=[keys.geo_part(name, f"{version}:{number}")], args=[stored])


def activate(name: str, version: str, manifest: Manifest) -> list[int]:
    """Make it current. The numbers of the parts that are missing; if any, nothing has changed."""
    names = [keys.geo_current(name), keys.geo_manifest(name, ""), keys.geo_part(name, "")]
    args = [version, len(manifest.digests), manifest.write()]
    answered = keys.geo_call(name, secrets.token_hex(8))
    missing: list[int] = _activate(get_client(), keys=[*names, answered], args=args)
    return missing


def remove(name: str) -> bool:
    """
    Remove a table from Redis; False if there is none. Parts of other versions expire as they would have.

    Processes that have it in memory keep it. Raises RedisUnavailable.
    """
    check_name("geo table", name)
    names = [keys.geo_current(name), keys.geo_manifest(name, ""), keys.geo_part(name, "")]
    with redis_errors():
        version = get_client().hget(names[0], "version")
    if version is None:
        return False
    _remove(get_client(), keys=names, args=[version])
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
    """Write what is missing, or with *force* all, and make it current. Raises GeoTableDamaged, RedisUnavailable."""
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
        f"Parts of the geo table {name!r} went from Redis while others were written; the table is as it was. Redis "
        "seems to evict keys: give it more memory, and maxmemory-policy noeviction."
    )
