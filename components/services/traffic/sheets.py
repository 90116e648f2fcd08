"""Reports as rows of cells, for CSV."""

from __future__ import annotations

from collections.abc import Iterator

from components.services.geo import place_name
from components.services.traffic.records import Report

#: What stands above the columns that are always there.
HEADINGS = ("place", "name", "lines", "share", "before", "growth")


def sheet(report: Report) -> Iterator[list[str]]:
    """A row of headings, then one for each place; a column for each day at the end."""
    yield [*HEADINGS, *(day.isoformat() for day in report.days)]
    for row in report.rows:
        growth = "" if row.growth is None else repr(row.growth)
        figures = [row.count, repr(row.share), row.before, growth, *row.by_day]
        yield [row.id, place_name(row.id), *map(str, figures)]
