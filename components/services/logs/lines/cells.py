"""
Counts by day and place in memory, between two flushes.

A log usually has a few days at a time, so each of the first days has a row with a cell for each place. The memory for
rows is limited; lines of further days, of which a log of junk may have thousands, are counted in a dict. What was
counted since the last flush is lost with the process, and another process counts its chunks.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines.place_table import Places

_ROWS = 64
_MEMORY = 64 << 20  # bytes for rows: eight days of a million places, 64 of 131,072


class Cells:
    """Rows in which kernels count, and a dict for days that have no row."""

    def __init__(self, size: int) -> None:
        rows = max(1, min(_ROWS, _MEMORY // (8 * size)))
        #: The day of each row; 0 if the row is free. Used rows come first.
        self.days = np.zeros(rows, np.int32)
        #: Its pages take memory only when they are first written to.
        self.counts = np.zeros((rows, size), np.int64)
        self._others: dict[tuple[int, int], int] = {}

    def add(self, day: int, place: int, count: int = 1) -> None:
        """Count lines of a day that has no row."""
        self._others[day, place] = self._others.get((day, place), 0) + count

    def add_each(self, days: NDArray[np.int32], places: Places) -> None:
        """Count lines of days that have no rows."""
        packed = days.astype(np.int64) << 32 | places
        for cell, count in zip(*(each.tolist() for each in np.unique_counts(packed)), strict=True):
            self.add(cell >> 32, cell & 0xFFFFFFFF, count)

    def clear(self) -> None:
        """Forget all counts."""
        self.counts[self.days != 0] = 0
        self.days[:] = 0
        self._others.clear()

    def by_day(self) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Yield days, each with its places and their counts that are not 0."""
        for day, counts in zip(self.days.tolist(), self.counts, strict=True):
            if day:
                used = np.flatnonzero(counts)
                yield day, used, counts[used]
        others: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for (day, place), count in self._others.items():
            others[day][place] = count
        for day, counted in others.items():
            yield day, np.array([*counted], np.int64), np.array([*counted.values()], np.int64)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield day, place and count of each cell that is not 0."""
        for day, places, counts in self.by_day():
            for place, count in zip(places.tolist(), counts.tolist(), strict=True):
                yield day, place, count
