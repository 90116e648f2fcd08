"""
GeoTable: a version of a table in the memory of this process, for lookups by the million.

It never changes: newest() returns another one when another version is current. The parts of the old version stay for
an hour, so a process that is loading it finds all of them. One that is slower than that begins again.
"""

import logging
from collections.abc import Callable
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from socket import AF_INET, inet_pton
from typing import Self, TypeVar

from components.exceptions import GeoTableDamaged, GeoTableNotFound, InvalidValue
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.decoding import instant_of, number_of, text_of
from components.kit.errors import redis_errors
from components.kit.scripts import in_turn
from components.kit.sync_async import at_once
from components.services.geo.builder import Builder
from components.services.geo.facts import UNKNOWN, Place, TableInfo
from components.services.geo.keys import TableKeys
from components.services.geo.layout import PART, Manifest, decompress, read_table, write_table

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

DEFAULT = "default"
_TRIES = 3  # one import may come during a load; three in a row do not
_AGAIN = "Import it again, with --force."


class GeoTable:
    """
    Ranges of addresses, and the places where they live. *ipv4* and *ipv6* are columns that numpy.frombuffer() takes
    as they are. *places* has a Place for each number in them; the first is UNKNOWN.
    """

    def __init__(self, name: str, version: str, data: bytearray, manifest: Manifest) -> None:
        self.name, self.version = name, version
        self.ipv4, self.ipv6, self.places = read_table(data, manifest)

    @classmethod
    def load(cls, name: str = DEFAULT) -> Self:
        """
        Return the current version. Raises GeoTableNotFound, GeoTableDamaged, UnknownFormat, InvalidName,
        RedisUnavailable.
        """
        return load_version(
            name, lambda version, found: cls(name, version, read_data(name, version, found), found)
        )

    def newest(self) -> Self:
        """Return this table, or the current one if that is another. Takes one round trip. Raises as load() does."""
        is_current = at_once(current_version(get_client(), self.name)) == self.version
        return self if is_current else self.load(self.name)

    def find(self, ip: str | IPv4Address | IPv6Address) -> Place | None:
        """Return the place of an address, or None if it is unknown. Raises InvalidValue."""
        number, is_ipv6 = parse(ip)
        found = self.ipv6.find(number) if is_ipv6 else self.ipv4.find(number)
        return self.places[found] if found else None

    def place_of(self, ip: str | IPv4Address | IPv6Address) -> Place:
        """Return the place of an address, or UNKNOWN. Raises InvalidValue."""
        return self.find(ip) or UNKNOWN


class PerhapsTable(GeoTable):
    """A GeoTable that is empty while none is imported, so that nothing is found. The log says so, once."""

    @classmethod
    def load(cls, name: str = DEFAULT) -> Self:
        """Return the current version, or an empty one with the version "". Raises the other errors of GeoTable."""
        try:
            return super().load(name)
        except GeoTableNotFound as error:
            _warn(f"{error} Until then, all places are unknown.")
            data = write_table(Builder())
            return cls(name, "", data, Manifest(0, 0, len(data), PART, 0, [], ""))

    def newest(self) -> Self:
        if self.version:
            return super().newest()
        found = self.load(self.name)
        return found if found.version else self


@cache
def _warn(text: str) -> None:
    logger.warning("%s", text)


def load_version(name: str, load: Callable[[str, Manifest], _T]) -> _T:
    """Return the result of *load* for the current version. Raises as GeoTable.load() does."""
    client = get_client()
    for _ in range(_TRIES):
        version = at_once(current_version(client, name))
        if (found := at_once(_read_manifest(client, name, version))) is None:
            continue
        try:
            return _read(name, version, found, load)
        except GeoTableDamaged:
            if at_once(current_version(client, name)) == version:
                raise
    raise GeoTableDamaged(f"The geo table {name!r} has no manifest in Redis. {_AGAIN}")


def _read(name: str, version: str, manifest: Manifest, load: Callable[[str, Manifest], _T]) -> _T:
    """Return the result of *load* for a version. Raises GeoTableDamaged if its bytes do not fit its manifest."""
    try:
        return load(version, manifest)
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise GeoTableDamaged(f"The geo table {name!r} in Redis cannot be read: {error}. {_AGAIN}") from error


def parse(ip: str | IPv4Address | IPv6Address) -> tuple[int, bool]:
    """Return an address as a number, and whether it is IPv6. An IPv4 address inside of IPv6 is IPv4."""
    try:
        if isinstance(ip, str):  # most are IPv4, which the C library reads ten times as fast
            return int.from_bytes(inet_pton(AF_INET, ip), "big"), False
    except (OSError, ValueError):
        pass
    try:
        address = ip_address(ip) if isinstance(ip, str) else ip
        if isinstance(address, IPv6Address):
            inner = address.ipv4_mapped
            return (int(inner), False) if inner is not None else (int(address), True)
        if isinstance(address, IPv4Address):
            return int(address), False
    except ValueError:
        pass
    shown = repr(ip)
    raise InvalidValue(
        f"{shown if len(shown) <= 60 else shown[:60] + '…'} is not an address. It must be IPv4 without leading "
        "zeros, or IPv6."
    )


def look(name: str = DEFAULT) -> TableInfo | None:
    """
    Return the facts about a table, or None if it was never imported. Raises InvalidName, GeoTableDamaged,
    UnknownFormat, RedisUnavailable.
    """
    return at_once(_look(get_client(), name))


async def alook(name: str = DEFAULT) -> TableInfo | None:
    """Return the facts about a table, as look() does."""
    return await _look(get_async_client(), name)


async def _look(client: AnyRedis, name: str) -> TableInfo | None:
    keys = TableKeys(name)
    with redis_errors():
        version, micros = await in_turn(client.hmget(keys.current, "version", "imported_at"))
    if version is None:
        return None
    manifest = await _read_manifest(client, name, text_of(version))
    if manifest is None:
        raise GeoTableDamaged(f"The geo table {name!r} has no manifest in Redis. {_AGAIN}")
    return TableInfo(
        name=name,
        version=text_of(version),
        source=manifest.source,
        imported_at=instant_of(number_of(micros) / 1000),
        ipv4=manifest.ipv4,
        ipv6=manifest.ipv6,
        stored_size=manifest.stored_size,
        size=manifest.size,
    )


async def current_version(client: AnyRedis, name: str) -> str:
    """Return the current version of a table. Raises GeoTableNotFound, InvalidName."""
    with redis_errors():
        version: bytes | None = await in_turn(client.hget(TableKeys(name).current, "version"))
    if version is None:
        raise GeoTableNotFound(f"There is no geo table {name!r}. Import one with `manage.py importgeoip`.")
    return text_of(version)


async def _read_manifest(client: AnyRedis, name: str, version: str) -> Manifest | None:
    with redis_errors():
        text: bytes | None = await in_turn(client.get(TableKeys(name).manifest(version)))
    try:
        return Manifest.read(text) if text is not None else None
    except GeoTableDamaged as error:
        raise GeoTableDamaged(f"The geo table {name!r} in Redis: {error}. {_AGAIN}") from None


def read_data(name: str, version: str, manifest: Manifest, first: int = 0) -> bytearray:
    """Return all bytes from the part *first* on. Raises GeoTableDamaged, RedisUnavailable."""
    client, keys, data = get_client(), TableKeys(name), bytearray()
    size = manifest.size - first * manifest.part
    for number, expected in enumerate(manifest.digests[first:], first):
        with redis_errors():
            stored: bytes | None = client.get(keys.part(f"{version}:{number}"))  # type: ignore[assignment]
        try:
            if stored is None:
                raise GeoTableDamaged("it is not there")
            data += decompress(stored, min(manifest.part, size - len(data)), expected)
        except GeoTableDamaged as error:
            part = f"part {number} of {len(manifest.digests)}"
            raise GeoTableDamaged(f"The geo table {name!r}, {part}, in Redis: {error}. {_AGAIN}") from None
    return data
