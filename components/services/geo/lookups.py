"""
locate(): the place of an address, from a table that this process keeps in memory; and place_name(): the name of a
place for people, by its id.

The table is loaded when it is first needed. Every few seconds, one caller checks for another version and loads it,
while the others get answers from the old one; for coroutines, this happens in a thread. While Redis is unavailable,
or if the new version cannot be read, the old one stays in use, and a warning is logged once. A forked child has the
table of its parent.

The names of countries and regions are in the last parts of the table. Only these parts are read, and some thousand
names are kept in memory. Names never fail: if there is no table, or it cannot be read, places are shown by their ids,
and that is logged.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Generic, Protocol, Self, TypeVar

from components.exceptions import (
    ComponentsError,
    GeoTableDamaged,
    GeoTableNotFound,
    RedisUnavailable,
    UnknownFormat,
)
from components.kit.aclient import kept_by_the_loop
from components.kit.client import get_client
from components.kit.forking import in_child
from components.kit.leases import clock
from components.kit.sync_async import at_once
from components.kit.validation import check_name
from components.services.geo.facts import Place
from components.services.geo.keys import TableKeys
from components.services.geo.layout import Manifest, names_start, read_regions
from components.services.geo.table import DEFAULT, GeoTable, current_version, load_version, read_data

logger = logging.getLogger(__name__)

INTERVAL = 5.0  # seconds between two looks for another version


class Versioned(Protocol):
    """A version of a table, or a part of one. newest() returns another one when another version is current."""

    version: str

    @classmethod
    def load(cls, name: str) -> Self: ...

    def newest(self) -> Self: ...


_T = TypeVar("_T", bound=Versioned)


class Kept(Generic[_T]):
    """A table, or a part of one, that is kept in memory and up to date."""

    def __init__(self, kind: type[_T], name: str) -> None:
        self._kind, self._name = kind, name
        self.renew_guard()
        self._table: _T | None = None
        self._look_at = 0.0
        self._has_failed = False
        self._error: ComponentsError | None = None
        #: The number of times that there was no table in memory and none could be loaded.
        self.failures = 0

    def renew_guard(self) -> None:
        self._guard = threading.Lock()

    def ready(self) -> _T | None:
        """Return the table, or None if it is time to look for another version."""
        return self._table if clock() < self._look_at else None

    def get(self, failures: int | None = None) -> _T:
        """
        Return the table, after looking for another version if it is time to. Raises as load() does. If loading has
        failed since the count of failures was *failures*, raise the same error, so that waiting callers do not each
        wait again for a server that does not answer.
        """
        if table := self.ready():
            return table
        before = self.failures if failures is None else failures
        if not self._guard.acquire(blocking=self._table is None) and self._table:
            return self._table  # another thread looks
        try:
            if self._error and self.failures != before:
                raise type(self._error)(*self._error.args)
            return self.ready() or self._look()
        finally:
            self._guard.release()

    def _look(self) -> _T:
        before = self._table
        try:
            self._table = before.newest() if before else self._kind.load(self._name)
        except ComponentsError as error:
            if before is None:
                self._error, self.failures = error, self.failures + 1
                raise
            if not self._has_failed:
                logger.warning("Addresses are still located by version %s: %s", before.version, error)
            self._has_failed = True
        else:
            self._has_failed, self._error = False, None
        self._look_at = clock() + INTERVAL
        assert self._table is not None
        return self._table


class _Turns(dict[str, asyncio.Lock]):
    """Locks by table: in an event loop one coroutine loads it, so that the others take no threads."""


_kept: dict[tuple[type, str], Kept[Any]] = {}


def kept(kind: type[_T], name: str) -> Kept[_T]:
    """Return the object that this process keeps for a table. Tables go by their keys, since the prefix may change."""
    key = (kind, TableKeys(name).current)
    if key not in _kept:
        _kept.setdefault(key, Kept(kind, name))
    return _kept[key]


def locate(ip: str | IPv4Address | IPv6Address, *, table: str = DEFAULT) -> Place | None:
    """
    Return the place of an address, or None if it is unknown: private, not in use, or not in the table. Raises
    InvalidValue; and if no table is in memory yet GeoTableNotFound, GeoTableDamaged, UnknownFormat, RedisUnavailable.
    """
    return kept(GeoTable, table).get().find(ip)


async def alocate(ip: str | IPv4Address | IPv6Address, *, table: str = DEFAULT) -> Place | None:
    """Return the place of an address, as locate() does. Other coroutines run while a table is loaded."""
    there = kept(GeoTable, table)
    if found := there.ready():
        return found.find(ip)
    turns = kept_by_the_loop(_Turns, lambda closing: _Turns())
    turn, failures = turns.setdefault(table, asyncio.Lock()), there.failures
    async with turn:
        current = await asyncio.to_thread(there.get, failures)
    return current.find(ip)


class PlaceNames:
    """The names of a version of a table; empty if there is no table."""

    def __init__(
        self, name: str, version: str = "", names: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self.name, self.version = name, version
        self._names = names or {}

    @classmethod
    def load(cls, name: str) -> PlaceNames:
        try:
            return cls._load(name)
        except GeoTableNotFound:
            pass  # counting by address needs a table, showing what was counted does not
        except (GeoTableDamaged, UnknownFormat, RedisUnavailable) as error:
            logger.warning("Places are shown by their ids: %s", error)
        return cls(name)

    @classmethod
    def _load(cls, name: str) -> PlaceNames:
        def read(version: str, manifest: Manifest) -> PlaceNames:
            first, start = divmod(names_start(manifest), manifest.part)
            return cls(name, version, read_regions(read_data(name, version, manifest, first)[start:]))

        return load_version(name, read)

    def newest(self) -> PlaceNames:
        if not self.version:
            return self.load(self.name)
        is_current = at_once(current_version(get_client(), self.name)) == self.version
        return self if is_current else self._load(self.name)

    def find(self, place: str) -> str:
        parts = place.split("/", 2)
        if parts[0] not in self._names:
            return place
        country, _ = self._names[parts[0]]
        _, region = self._names.get("/".join(parts[:2]), ("", ""))
        codes = [part.replace("%2F", "/").replace("%25", "%") for part in parts[1:]]
        shown = [country, *([region or codes[0]] if codes else []), *codes[1:]]
        return ", ".join(filter(None, reversed(shown)))


def place_name(place: str, *, table: str = DEFAULT) -> str:
    """
    Return the name of the place with this id of Place.id_at(): "California, United States" for "US/CA". Return the id
    itself if *table* does not have its country, or cannot be read. Raises InvalidName for *table*.
    """
    check_name("geo table", table)
    return kept(PlaceNames, table).get().find(place)


def forget() -> None:
    """Drop all tables from memory. The next caller loads its table again."""
    _kept.clear()


def _begin_anew() -> None:
    for each in _kept.values():
        each.renew_guard()


in_child(_begin_anew)
