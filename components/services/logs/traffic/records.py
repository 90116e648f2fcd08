"""What is told of traffic: lines of a day, of a place, and of a level of places in a period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from components.services.geo import Level


@dataclass(frozen=True, slots=True)
class DayTotal:
    """A day on which something was counted."""

    day: date
    lines: int


@dataclass(frozen=True, slots=True)
class Row:
    """A place, and its lines in a period."""

    #: As Place.id_at() gives it: "US", "US/CA", "US/CA/Mountain View", "unknown".
    id: str
    count: int
    #: Of the report's total, 0 to 1.
    share: float
    #: Lines in as many days right before.
    before: int
    #: How much more than before, as a part of it: 0.5 is half as much again. None if there were none.
    growth: float | None
    #: Of each day of the report.
    by_day: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Others:
    """All places that are in no row, together."""

    places: int
    count: int
    share: float
    before: int
    growth: float | None
    by_day: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The places of a level in a period: rows and others add up to the total, of each day too."""

    level: Level
    #: The place that all of them lie in; empty is anywhere.
    within: str
    first: date
    last: date
    total: int
    #: The total of as many days right before.
    before: int
    #: Those with most lines first.
    rows: tuple[Row, ...]
    others: Others
    days: tuple[date, ...]

    @property
    def growth(self) -> float | None:
        return growth(self.total, self.before)

    @property
    def by_day(self) -> tuple[int, ...]:
        """The total of each day."""
        return tuple(map(sum, zip(self.others.by_day, *(row.by_day for row in self.rows), strict=True)))


def growth(count: int, before: int) -> float | None:
    return (count - before) / before if before else None
