"""A callback as users write them: what visitors did, by day, and a sum of their addresses."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import date

from components.services.logs.lines import Columns

_TIME = len("13:55:36 ")


class Events:
    """Counts by the last word of a line."""

    def __init__(self) -> None:
        self._begin()

    def block(self, columns: Columns) -> None:
        data = columns.data
        rests, ends = (columns.rests + _TIME).tolist(), columns.ends.tolist()
        kinds = [data[start:end] for start, end in zip(rests, ends, strict=True)]
        for (day, kind), number in Counter(zip(columns.days.tolist(), kinds, strict=True)).items():
            self._tables[f"events:{date.fromordinal(day)}"][kind.decode()] += number
        self._tables["checks"]["addresses"] += int((columns.addresses & 0xFFFF).sum())

    def flush(self) -> Mapping[str, Mapping[str, int]]:
        tables = self._tables
        self._begin()
        return tables

    def _begin(self) -> None:
        self._tables: defaultdict[str, Counter[str]] = defaultdict(Counter)
