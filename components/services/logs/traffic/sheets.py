"""
Reports as rows of cells; and all files of comma-separated values, which spreadsheets open without calculating them.

A spreadsheet takes a cell for a formula by its first character, whatever quotes are around it. write_csv() is the
only writer of such files.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from unicodedata import category, normalize

from components.services.geo import place_name
from components.services.logs.traffic.records import Report

#: The first visible character of a formula, in full or narrow width, large or small.
_CALCULATED = "=+-@\N{MINUS SIGN}"
#: What stands above the columns that are always there.
HEADINGS = ("place", "name", "lines", "share", "before", "growth")
#: Columns, the first, that are no figures.
NAMES = 2


def sheet(report: Report) -> Iterator[list[str]]:
    """A row of headings, then one for each place; a column for each day at the end."""
    yield [*HEADINGS, *(day.isoformat() for day in report.days)]
    for row in report.rows:
        growth = "" if row.growth is None else repr(row.growth)
        figures = [row.count, repr(row.share), row.before, growth, *row.by_day]
        yield [row.id, place_name(row.id), *map(str, figures)]


def write_csv(
    file: Any, rows: Iterable[Sequence[object]], *, names: int | None = None, line_end: str = "\r\n"
) -> None:
    """
    Write *rows* to *file*. Text that a spreadsheet would calculate begins with an apostrophe.

    Where *names* is given, only in so many columns: the others are figures, though they be text.
    """
    writer = csv.writer(file, lineterminator=line_end)
    writer.writerows([*map(_harmless, row[:names]), *row[len(row[:names]) :]] for row in rows)


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and _is_calculated(cell) else cell


def _is_calculated(text: str) -> bool:
    """Return whether *text* begins a formula, or with what may hide that: a tab, the end of a line, a blank."""
    if category(text[:1] or "x") in ("Cc", "Zl", "Zp"):
        return True
    visible = next((each for each in text if category(each) not in ("Zs", "Zl", "Zp", "Cf", "Cc")), "")
    return normalize("NFKC", visible) in tuple(_CALCULATED)
