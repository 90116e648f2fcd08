"""
HourCells: lines by day, hour, country and status in memory, between two flushes.

The sums of these three together are few, since only some countries have most lines, and answers have few statuses. So
they are kept together, and can be asked for in any combination.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines import Cells, Columns, Kernel
from components.services.logs.traffic.tables import member_of

_HOURS = ["", *(f"{hour:02}" for hour in range(24))]  # "" for lines without a time
#: Statuses that are told apart: those in use, as numbers. Others are counted by their first digit.
_KNOWN = (*range(100, 104), *range(200, 209), 226, *range(300, 309), *range(400, 432), 444, 451)
_KNOWN += (*range(494, 500), *range(500, 512), *range(520, 528))
STATUSES = ["", *map(str, _KNOWN), *(f"{first}xx" for first in range(1, 6))]
#: The number of each status.
_NUMBERS = [0] * 100 + [STATUSES.index(f"{status // 100}xx") for status in range(100, 600)]
for _number, _status in enumerate(_KNOWN, 1):
    _NUMBERS[_status] = _number


@dataclass(frozen=True)
class DayCounts:
    """What was counted of a day, by members of hourly and live tables."""

    day: int
    by_hour: dict[str, int]
    live: dict[str, int]


class HourCells:
    """Counts for *countries*, which are ids; *of_place* has the number of the country of each place."""

    def __init__(self, kernel: Kernel, countries: Sequence[str], of_place: NDArray[Any]) -> None:
        self._kernel, self._countries = kernel, countries
        step = len(countries)
        minutes = np.append(np.arange(1_440) // 60 + 1, 0)  # the last one is that of -1
        self._of_minute = (minutes * len(STATUSES) * step).astype(np.uint32)
        self._of_status = (np.array(_NUMBERS) * step).astype(np.uint32)
        self._of_place = of_place.astype(np.uint32)
        self._cells = Cells(len(_HOURS) * len(STATUSES) * step)

    def count(self, columns: Columns, places: NDArray[np.uint32]) -> None:
        numbers = (
            self._of_minute[columns.minutes] + self._of_status[columns.statuses] + self._of_place[places]
        )
        self._kernel.count(self._cells, columns.days, numbers)

    def take(self) -> Iterator[DayCounts]:
        """Yield what was counted of each day, and begin again."""
        for day, numbers, counts in self._cells.by_day():
            found = DayCounts(day, {}, {})
            rest, countries = np.divmod(numbers, len(self._countries))
            hours, statuses = np.divmod(rest, len(STATUSES))
            columns = (each.tolist() for each in (hours, statuses, countries, counts))
            for hour, number, place, count in zip(*columns, strict=True):
                country, status = self._countries[place], STATUSES[number]
                found.by_hour[member_of(_HOURS[hour], country, status)] = count
                here = member_of(country, status)
                found.live[here] = found.live.get(here, 0) + count
            yield found
        self._cells.clear()
