"""
PlaceCounter: lines by day and by the country, region and city of their address, as a callback of an aggregation; also
by hour and status.

Lines are counted in memory by the finest level that is asked for; the coarser levels are sums of it. Places are
known by their ids, so counts of two versions of the geo table add up. A new version is taken into use between two
blocks.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import chain
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from components.exceptions import InvalidValue
from components.services.geo import DEFAULT_TABLE, GeoTable, Kept, Level, PerhapsTable, Place
from components.services.logs.lines import Cells, Columns, Format, Kernel, PlaceTable, choose_kernel
from components.services.logs.traffic.tables import DAYS, daily
from components.services.logs.traffic.value_counter import HourCells, ValueCounter

logger = logging.getLogger(__name__)

_LEVELS: tuple[Level, ...] = get_args(Level)


class PlaceCounter:
    """
    It counts into tables "daily:country:2011-10-10", those of region and city down to *level*, and "days"; into
    "hourly:2011-10-10" by hour, country and status, and "answers:2011-10-10" by hour and status.

    If it knows the format *form* of the lines, it counts by path, referrer and agent as well, or only by those that
    *dimensions* names.

    While the table *geo* does not exist, all places are unknown. Raises InvalidValue, UnknownKernel, and what
    GeoTable.load() raises if the table cannot be loaded.
    """

    def __init__(
        self,
        geo: str = DEFAULT_TABLE,
        *,
        level: str = "city",
        kernel: str | Kernel | None = None,
        form: Format | None = None,
        dimensions: Sequence[str] | None = None,
    ) -> None:
        self._kernel = choose_kernel(kernel) if isinstance(kernel, str | None) else kernel
        self._levels = _down_to(level)
        self._form, self._dimensions = form, _dimensions(form, dimensions)
        self._tables: dict[str, Counter[str]] = {}
        self._kept = Kept(PerhapsTable, geo)
        self._use(self._kept.get())

    @property
    def is_full(self) -> bool:
        """Whether its counts take so much memory that they must be flushed."""
        return self._values is not None and self._values.is_full

    @property
    def version(self) -> str:
        """The version of the geo table."""
        return self._geo.version

    def block(self, columns: Columns) -> None:
        """Count these lines. Redis is asked only every few seconds, for another version of the geo table."""
        if (newest := self._kept.get()) is not self._geo:
            self._take()
            self._use(newest)
            logger.info("Lines are located by version %s of the geo table now.", self.version)
        places = self._kernel.places(columns, self._table)
        self._kernel.count(self._cells, columns.days, places)
        self._hours.count(columns, places)
        if self._values:
            self._values.count(columns, places)

    def flush(self) -> dict[str, Counter[str]]:
        """Return the counts since the last flush, and begin again."""
        self._take()
        tables, self._tables = self._tables, {}
        return tables

    def _use(self, geo: GeoTable) -> None:
        self._geo = geo
        finest = _Numbers([place.id_at(self._levels[-1]) for place in geo.places])
        self._table = PlaceTable(geo.ipv4, geo.ipv6, groups=finest.of_each)
        self._names = finest.names
        #: For each coarser level, how its places are sums of those of the finest level.
        self._above = {level: _Above(geo.places, level, finest) for level in self._levels[:-1]}
        self._cells = Cells(self._table.size)
        countries = _Above(geo.places, _LEVELS[0], finest)
        about = (countries.names.tolist(), countries.of_finer)
        self._hours = HourCells(self._kernel, *about)
        self._values = (
            ValueCounter(self._kernel, self._form, self._dimensions, *about)
            if self._form and self._dimensions
            else None
        )

    def _take(self) -> None:
        for ordinal, places, counts in self._cells.by_day():
            day = date.fromordinal(ordinal)
            self._add(daily(self._levels[-1], day), self._names[places], counts)
            for level, above in self._above.items():
                self._add(daily(level, day), *above.sums(places, counts))
            self._tables.setdefault(DAYS, Counter())[day.isoformat()] += int(counts.sum())
        self._cells.clear()
        for table, members in chain(self._hours.take(), self._values.take() if self._values else ()):
            self._sum(table, members)

    def _add(self, table: str, names: NDArray[Any], counts: NDArray[np.int64]) -> None:
        self._sum(table, dict(zip(names.tolist(), counts.tolist(), strict=True)))

    def _sum(self, table: str, found: dict[str, int]) -> None:
        self._tables.setdefault(table, Counter()).update(found)


def _down_to(level: str) -> tuple[Level, ...]:
    """Return this level and the coarser ones, the coarsest first. Raises InvalidValue."""
    for number, each in enumerate(_LEVELS, 1):
        if each == level:
            return _LEVELS[:number]
    raise InvalidValue(f"There is no level {level!r} of places; there are: {', '.join(_LEVELS)}.")


def _dimensions(form: Format | None, wanted: Sequence[str] | None) -> Sequence[str]:
    """Return the dimensions to count by. Raises InvalidValue."""
    there = getattr(form, "dimensions", ())
    if wanted is None:
        return list(there)
    if missing := [each for each in wanted if each not in there]:
        raise InvalidValue(
            f"Lines of this format have no {', '.join(missing)}; they have: {', '.join(there) or 'none of these'}."
        )
    return wanted


class _Numbers:
    """Numbers for names, from 0 on; *of_each* has the number of each name that was given."""

    def __init__(self, given: Sequence[str]) -> None:
        numbers: dict[str, int] = {}
        self.of_each = np.array([numbers.setdefault(name, len(numbers)) for name in given], np.uint32)
        self.names = np.array(list(numbers), np.object_)


class _Above:
    def __init__(self, places: Sequence[Place], level: Level, finer: _Numbers) -> None:
        own = _Numbers([place.id_at(level) for place in places])
        self.names = own.names
        #: The number of the place for each number of a finer one.
        self.of_finer = np.zeros(len(finer.names), np.int64)
        self.of_finer[finer.of_each] = own.of_each

    def sums(self, places: NDArray[Any], counts: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        sums = np.zeros(len(self.names), np.int64)
        np.add.at(sums, self.of_finer[places], counts)
        used = np.flatnonzero(sums)
        return self.names[used], sums[used]
