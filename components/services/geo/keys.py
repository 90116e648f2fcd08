"""Keys of where addresses live. The entity is a table: one script makes a version of it current. (services/geo)"""

from __future__ import annotations

from components.kit.keyspace import _key


def geo_current(name: str) -> str:
    """HASH version, how many parts it has, microsecond of its import. Goes when the table is removed."""
    return _key("geo", name, "current")


def geo_manifest(name: str, version: str) -> str:
    """
    STRING JSON: what a version is made of, and where it comes from (in scripts a prefix of the version). Goes an hour
    after another has become current.
    """
    return _key("geo", name, f"manifest:{version}")


def geo_part(name: str, part: str) -> str:
    """
    STRING compressed part of a version: version, ":", number from 0 on (in scripts a prefix of that). Goes an hour
    after another has become current, or after an import that ended before all its parts were there.
    """
    return _key("geo", name, f"part:{part}")


def geo_call(name: str, call: str) -> str:
    """STRING what a call was answered, if it asks again. Expires after a minute."""
    return _key("geo", name, f"call:{call}")
