"""
locate(): where an address lives, from a table that this process keeps in memory.

It is loaded when it is first asked for. Every few seconds one of those who ask looks for another version and loads
it, while the others get answers from the one before; in coroutines that is done in a thread. Where Redis is away, or
what is there cannot be read, the table at hand goes on being used, which the log tells once. A forked child has its
parent's.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from contextlib import AsyncExitStack
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Generic, Protocol, Self, TypeVar

from components.exceptions import ComponentsError
from components.kit.client import kept_by_the_loop
from components.kit.leases import clock
from components.services.geo.facts import Place
from components.services.geo.keys import TableKeys
from components.services.geo.table import DEFAULT, GeoTable

logger = logging.getLogger(__name__)

INTERVAL = 5.0  # seconds between two looks for another version


class Versioned(Protocol):
    """What is loaded of a table, and gives another one when another version is current."""

    version: str

    @classmethod
    def load(cls, name: str) -> Self: ...

    def newest(self) -> Self: ...


_T = TypeVar("_T", bound=Versioned)


class Kept(Generic[_T]):
    """A table, or part of one, that is kept in memory, and up to date."""

    def __init__(self, kind: type[_T], name: str) -> None:
        self._kind, self._name = kind, name
        self.renew_guard()
        self._table: _T | None = None
        self._look_at = 0.0
        self._has_failed = False
        self._error: ComponentsError | None = None
        #: How often there was no table, and none could be loaded.
        self.failures = 0

    def renew_guard(self) -> None:
        self._guard = threading.Lock()

    def ready(self) -> _T | None:
        """The table, if nobody need look now."""
        return self._table if clock() < self._look_at else None

    def get(self, failures: int | None = None) -> _T:
        """
        The table; may load it first. Raises as load() does.

        If loading has failed since there were so many *failures*, it raises the same: those who waited for it do not
        each wait for a server that does not answer.
        """
        if table := self.ready():
            return table
        before = self.failures if failures is None else failures
        if not self._guard.acquire(blocking=self._table is None) and self._table:
            return self._table  # another one looks
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
                logger.warning("Addresses are located by the table of before (%s): %s", before.version, error)
            self._has_failed = True
        else:
            self._has_failed, self._error = False, None
        self._look_at = clock() + INTERVAL
        assert self._table is not None
        return self._table


class _Turns(dict[str, asyncio.Lock]):
    """Who loads a table in an event loop: one at a time, so that the others take no threads."""


_kept: dict[tuple[type, str], Kept[Any]] = {}


def kept(kind: type[_T], name: str) -> Kept[_T]:
    """By its key: where the prefix is another, so is the table."""
    key = (kind, TableKeys(name).current)
    if key not in _kept:
        _kept.setdefault(key, Kept(kind, name))
    return _kept[key]


def _table(name: str) -> Kept[GeoTable]:
    return kept(GeoTable, name)


def locate(ip: str | IPv4Address | IPv6Address, *, table: str = DEFAULT) -> Place | None:
    """
    Where an address lives; None if nobody knows, because it is private, not in use, or not in the table.

    Raises InvalidAddress; and where no table is in memory yet GeoTableNotFound, GeoTableDamaged, UnknownFormat,
    RedisUnavailable.
    """
    return _table(table).get().find(ip)


async def alocate(ip: str | IPv4Address | IPv6Address, *, table: str = DEFAULT) -> Place | None:
    """locate(), awaited: what loads a table lets other coroutines run."""
    there = _table(table)
    if found := there.ready():
        return found.find(ip)
    turn, failures = kept_by_the_loop(_Turns, _no_turns).setdefault(table, asyncio.Lock()), there.failures
    async with turn:
        current = await asyncio.to_thread(there.get, failures)
    return current.find(ip)


def _no_turns(closing: AsyncExitStack) -> _Turns:
    return _Turns()


def forget() -> None:
    """Keep no table in memory: the next who asks loads it."""
    _kept.clear()


def _begin_anew() -> None:
    for each in _kept.values():
        each.renew_guard()


os.register_at_fork(after_in_child=_begin_anew)
