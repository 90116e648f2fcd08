"""A report of traffic: the lines of a period by the places of a level, and the same as cells for a file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from components.services.geo import Level, place_name

#: The headings of the columns that are always there.
HEADINGS = ("place", "name", "lines", "share", "before", "growth")
#: The number of columns before the figures.
NAMES = 2


@dataclass(frozen=True, slots=True)
class DayTotal:
    """A day on which something was counted."""

    day: date
    lines: int


@dataclass(frozen=True, slots=True)
class Row:
    """A place, and its lines in a period."""

    #: As Place.id_at() returns it: "US", "US/CA", "US/CA/Mountain View", "unknown".
    id: str
    count: int
    #: Of the report's total, 0 to 1.
    share: float
    #: Lines in the period of the same length right before.
    before: int
    #: The growth, as a part of the lines before: 0.5 is half as much again. None if there were no lines before.
    growth: float | None
    #: Lines of each day of the report.
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
    """The places of a level in a period. Rows and others add up to the total, and so they do for each day."""

    level: Level
    #: The place in which all of them lie; empty for the whole world.
    within: str
    first: date
    last: date
    total: int
    #: The total of as many days right before.
    before: int
    #: Places with most lines first.
    rows: tuple[Row, ...]
    others: Others
    days: tuple[date, ...]
    #: The lines of every country, for a map; empty in reports of regions and cities.
    countries: Mapping[str, int]

    @property
    def growth(self) -> float | None:
        return growth(self.total, self.before)

    @property
    def by_day(self) -> tuple[int, ...]:
        """Return the total of each day of the report."""
        return tuple(map(sum, zip(self.others.by_day, *(row.by_day for row in self.rows), strict=True)))


def growth(count: int, before: int) -> float | None:
    """Return the growth from *before* to *count*, as a part of *before*; None if *before* is 0."""
    return (count - before) / before if before else None


def sheet(report: Report) -> Iterator[list[str]]:
    """Yield a row of headings, then one for each place, with a column for each day at the end."""
    yield [*HEADINGS, *(day.isoformat() for day in report.days)]
    for row in report.rows:
        growth = "" if row.growth is None else repr(row.growth)
        figures = [row.count, repr(row.share), row.before, growth, *row.by_day]
        yield [row.id, place_name(row.id), *map(str, figures)]
