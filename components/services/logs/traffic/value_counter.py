"""
HourCells and ValueCounter: lines by hour, and by path, referrer and agent, in memory between two flushes.

Sums by hour, country and status are few, since only some countries have most lines, and answers have few statuses. So
they are kept together, and can be asked for in any combination.

Values are counted by day, hour, country and status as well. Each flush adds the sums of all lines,
of each hour and of each country to tables, in which a value and a status stand together. Values are not limited here
but by the script of the flush, which keeps some of each day, and adds up the others.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.services.logs.lines import Cells, Columns, Format, Kernel, Parts
from components.services.logs.traffic.labels import LABELS
from components.services.logs.traffic.slices import HOURS, STATUSES
from components.services.logs.traffic.tables import (
    ALL,
    SERVED,
    UNSERVED,
    answers,
    at_country,
    hourly,
    member_of,
    valued,
)

#: Different values, and different cells, after which the counts must be flushed.
MOST_VALUES, MOST_CELLS = 10_000, 20_000
_DAYS = 1 << 22  # more than there are until the year 9999
_Numbers = NDArray[np.int64]
EVERY_HOUR = ["", *HOURS]  # "" for lines without a time
#: The number of each status.
_NUMBERS = [0] * 100 + [STATUSES.index(f"{status // 100}xx") for status in range(100, 600)]
for _number, _status in enumerate(STATUSES):
    if _status.isdecimal():
        _NUMBERS[int(_status)] = _number
_OF_STATUS = np.array(_NUMBERS)
_SERVED = np.array([each == "" or each == "304" or each[:1] == "2" for each in STATUSES])


class HourCells:
    """Counts for *countries*, which are ids; *of_place* has the number of the country of each place."""

    def __init__(self, kernel: Kernel, countries: Sequence[str], of_place: NDArray[Any]) -> None:
        self._kernel, self._countries = kernel, countries
        step, self._sizes = len(countries), (len(EVERY_HOUR), len(STATUSES), len(countries))
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

    def take(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield tables and their counts, and begin again."""
        for ordinal, numbers, counts in self._cells.by_day():
            by_hour, by_answer = dict[str, int](), Counter[str]()
            columns = (*np.unravel_index(numbers, self._sizes), counts)
            for hour, number, place, count in zip(*(each.tolist() for each in columns), strict=True):
                status = STATUSES[number]
                by_hour[member_of(EVERY_HOUR[hour], self._countries[place], status)] = count
                by_answer[member_of(EVERY_HOUR[hour], status)] += count
            day = date.fromordinal(ordinal)
            yield hourly(day), by_hour
            yield answers(day), by_answer
        self._cells.clear()


class ValueCounter:
    """Counts for *countries*, which are ids, by *dimensions*, which *form* has."""

    def __init__(
        self,
        kernel: Kernel,
        form: Format,
        dimensions: Sequence[str],
        countries: Sequence[str],
        of_place: NDArray[np.int64],
    ) -> None:
        self._kernel, self._form, self._countries, self._of_place = kernel, form, countries, of_place
        self._dimensions = [(each, Parts._fields.index(each)) for each in dimensions]
        self._sizes = (_DAYS, len(EVERY_HOUR), len(STATUSES), len(countries))
        self._cells_of_a_value = math.prod(self._sizes)
        self._begin()

    def _begin(self) -> None:
        self._values = {name: self._kernel.values() for name, _row in self._dimensions}
        self._cells = {name: _Cells() for name, _row in self._dimensions}

    @property
    def is_full(self) -> bool:
        return any(len(each) > MOST_VALUES for each in self._values.values()) or any(
            each.size > MOST_CELLS for each in self._cells.values()
        )

    def count(self, columns: Columns, places: NDArray[np.uint32]) -> None:
        if not self._dimensions:
            return
        spans = self._kernel.spans(columns, self._form)
        at: _Numbers = columns.days.astype(np.int64)
        numbers: tuple[NDArray[Any], ...] = (
            columns.minutes // 60 + 1,
            _OF_STATUS[columns.statuses],
            self._of_place[places],
        )
        for size, each in zip(self._sizes[1:], numbers, strict=True):
            at = at * size + each
        for name, row in self._dimensions:
            found = self._values[name].numbers(spans.data, spans.starts[row], spans.ends[row])
            self._cells[name].add(found * self._cells_of_a_value + at)

    def take(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield tables and their counts, and begin again."""
        for name, _row in self._dimensions:
            cells, counts = self._cells[name].sums()
            value, rest = np.divmod(cells, self._cells_of_a_value)
            day, hour, status, country = np.unravel_index(rest, self._sizes)
            labels, of_value = _labels(name, self._values[name].texts())
            label = of_value[value]
            is_served = _SERVED[status]
            for each in np.unique(day).tolist():
                for outcome, is_of in ((SERVED, is_served), (UNSERVED, ~is_served)):
                    of = np.flatnonzero((day == each) & is_of)
                    if not len(of):
                        continue
                    columns = counts[of], status[of], label[of]
                    found = dict(_members([ALL], np.zeros(len(of), np.int64), *columns, labels))
                    found |= dict(_members(EVERY_HOUR, hour[of], *columns, labels))
                    found |= dict(_members(self._countries_at, country[of], *columns, labels))
                    yield valued(name, outcome, date.fromordinal(each).isoformat()), found
        self._begin()

    @property
    def _countries_at(self) -> list[str]:
        return [at_country(each) for each in self._countries]


class _Cells:
    """Numbers of cells, and how many lines each has."""

    def __init__(self) -> None:
        self._found: list[tuple[_Numbers, _Numbers]] = []
        self.size = 0

    def add(self, cells: _Numbers) -> None:
        found, counts = np.unique(cells, return_counts=True)
        self._found.append((found, counts))
        self.size += len(found)
        if self.size > MOST_CELLS:
            self._found = [self.sums()]
            self.size = len(self._found[0][0])

    def sums(self) -> tuple[_Numbers, _Numbers]:
        if not self._found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return _add_up(*(np.concatenate(each) for each in zip(*self._found, strict=True)))


def _add_up(cells: _Numbers, counts: _Numbers) -> tuple[_Numbers, _Numbers]:
    found, which = np.unique(cells, return_inverse=True)
    sums = np.zeros(len(found), np.int64)
    np.add.at(sums, which, counts)
    return found, sums


def _labels(name: str, texts: Sequence[bytes]) -> tuple[list[str], _Numbers]:
    numbers: dict[str, int] = {}
    of_text = [numbers.setdefault(LABELS[name](text), len(numbers)) for text in texts]
    return list(numbers), np.array(of_text, np.int64)


def _members(
    slices: Sequence[str],
    which: _Numbers,
    counts: _Numbers,
    status: _Numbers,
    label: _Numbers,
    labels: Sequence[str],
) -> Iterator[tuple[str, int]]:
    """Yield members for slices, statuses and labels, most lines first: these are kept if there is little room."""
    cells, sums = _add_up((which * len(STATUSES) + status) * len(labels) + label, counts)
    order = np.argsort(-sums)
    rest, of_label = np.divmod(cells[order], len(labels))
    of_slice, of_status = np.divmod(rest, len(STATUSES))
    columns = (each.tolist() for each in (of_slice, of_status, of_label, sums[order]))
    for at, answer, value, count in zip(*columns, strict=True):
        yield f"{slices[at]}/{STATUSES[answer]}/{labels[value]}", count
