"""
PlaceCounter: lines by day and by the country, region and city of their address, as a callback of an aggregation.

Lines are counted by the finest level that is asked for, in memory; the coarser ones are sums of it. Places are known
by their ids, so counts of two versions of the geo table add up. Every few seconds it looks for another version
between two blocks; where Redis is away, or what is there cannot be read, it goes on with the one at hand.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from components.exceptions import ComponentsError, InvalidLevel
from components.kit.leases import clock
from components.services.geo import DEFAULT_TABLE, GeoTable, Level, Place
from components.services.logs.lines import Cells, Columns, Kernel, PlaceTable, choose_kernel
from components.services.logs.traffic.names import DAYS, daily

logger = logging.getLogger(__name__)

INTERVAL = 5.0  # seconds between two looks for another version
_LEVELS: tuple[Level, ...] = get_args(Level)


class PlaceCounter:
    """
    Counts into tables "daily:country:2011-10-10", those of region and city down to *level*, and "days".

    Raises InvalidLevel; what GeoTable.load() raises, where no table *geo* can be loaded; UnknownKernel.
    """

    def __init__(
        self, geo: str = DEFAULT_TABLE, *, level: str = "city", kernel: str | Kernel | None = None
    ) -> None:
        self._kernel = choose_kernel(kernel) if isinstance(kernel, str | None) else kernel
        self._levels = _down_to(level)
        self._tables: dict[str, Counter[str]] = {}
        self._has_failed = False
        self._use(GeoTable.load(geo))

    @property
    def version(self) -> str:
        """That of the geo table."""
        return self._geo.version

    def block(self, columns: Columns) -> None:
        """Count these lines. While no other version of the geo table is to be looked for, Redis is not asked."""
        if clock() >= self._look_at:
            self._look()
        self._kernel.count(self._cells, columns.days, self._kernel.places(columns, self._table))

    def flush(self) -> dict[str, Counter[str]]:
        self._take()
        tables, self._tables = self._tables, {}
        return tables

    def _look(self) -> None:
        self._look_at = clock() + INTERVAL
        try:
            newest = self._geo.newest()
        except ComponentsError as error:
            if not self._has_failed:
                logger.warning("Lines are located by the table of before (%s): %s", self.version, error)
            self._has_failed = True
            return
        self._has_failed = False
        if newest is not self._geo:
            self._take()
            self._use(newest)
            logger.info("Lines are located by another table now (%s).", self.version)

    def _use(self, geo: GeoTable) -> None:
        self._geo, self._look_at = geo, clock() + INTERVAL
        finest = _Numbers([place.id_at(self._levels[-1]) for place in geo.places])
        self._table = PlaceTable(geo.ipv4, geo.ipv6, groups=finest.of_each)
        self._names = finest.names
        #: Of each coarser level the numbers of its places, by those of the finest level.
        self._above = {level: _Above(geo.places, level, finest) for level in self._levels[:-1]}
        self._cells = Cells(self._table.size)

    def _take(self) -> None:
        """Take what was counted into tables, by names."""
        for ordinal, places, counts in self._cells.by_day():
            day = date.fromordinal(ordinal)
            self._add(daily(self._levels[-1], day), self._names[places], counts)
            for level, above in self._above.items():
                self._add(daily(level, day), *above.sums(places, counts))
            self._tables.setdefault(DAYS, Counter())[day.isoformat()] += int(counts.sum())
        self._cells.clear()

    def _add(self, table: str, names: NDArray[Any], counts: NDArray[np.int64]) -> None:
        found = dict(zip(names.tolist(), counts.tolist(), strict=True))
        if table in self._tables:
            self._tables[table].update(found)
        else:
            self._tables[table] = Counter(found)


def _down_to(level: str) -> tuple[Level, ...]:
    """It and the coarser ones, the coarsest first."""
    for number, each in enumerate(_LEVELS, 1):
        if each == level:
            return _LEVELS[:number]
    raise InvalidLevel(f"There is no level {level!r} of places; there are: {', '.join(_LEVELS)}.")


class _Numbers:
    """Names as numbers, which begin with 0 for the first: *of_each* has one for each name that was given."""

    def __init__(self, given: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        self.of_each = np.array([numbers.setdefault(name, len(numbers)) for name in given], np.uint32)
        self.names = np.array(list(numbers), np.object_)


class _Above:
    """The places of a level, as sums of those of a finer one."""

    def __init__(self, places: Sequence[Place], level: Level, finer: _Numbers) -> None:
        own = _Numbers([place.id_at(level) for place in places])
        self._names = own.names
        self._of_finer = np.zeros(len(finer.names), np.int64)
        self._of_finer[finer.of_each] = own.of_each

    def sums(self, places: NDArray[Any], counts: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        sums = np.zeros(len(self._names), np.int64)
        np.add.at(sums, self._of_finer[places], counts)
        used = np.flatnonzero(sums)
        return self._names[used], sums[used]
