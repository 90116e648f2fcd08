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
from components.services.logs.traffic.slices import HOURS, STATUSES
from components.services.logs.traffic.tables import member_of

EVERY_HOUR = ["", *HOURS]  # "" for lines without a time
#: The number of each status.
_NUMBERS = [0] * 100 + [STATUSES.index(f"{status // 100}xx") for status in range(100, 600)]
for _number, _status in enumerate(STATUSES):
    if _status.isdecimal():
        _NUMBERS[int(_status)] = _number
_OF_STATUS = np.array(_NUMBERS)


def status_numbers(statuses: NDArray[np.int16]) -> NDArray[np.int64]:
    """Return the number in STATUSES of each status."""
    return _OF_STATUS[statuses]


@dataclass(frozen=True)
class DayCounts:
    """What was counted of a day, by members of the tables of hours and of answers."""

    day: int
    by_hour: dict[str, int]
    answers: dict[str, int]


class HourCells:
    """Counts for *countries*, which are ids; *of_place* has the number of the country of each place."""

    def __init__(self, kernel: Kernel, countries: Sequence[str], of_place: NDArray[Any]) -> None:
        self._kernel, self._countries = kernel, countries
        step = len(countries)
        minutes = np.append(np.arange(1_440) // 60 + 1, 0)  # the last one is that of -1
        self._of_minute = (minutes * len(STATUSES) * step).astype(np.uint32)
        self._of_status = (_OF_STATUS * step).astype(np.uint32)
        self._of_place = of_place.astype(np.uint32)
        self._cells = Cells(len(EVERY_HOUR) * len(STATUSES) * step)

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
                found.by_hour[member_of(EVERY_HOUR[hour], country, status)] = count
                answer = member_of(EVERY_HOUR[hour], status)
                found.answers[answer] = found.answers.get(answer, 0) + count
            yield found
        self._cells.clear()
