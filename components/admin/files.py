"""Tables as files of comma-separated values, which spreadsheets open without calculating what a name says."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence

from django.http import HttpResponse

_CALCULATED = ("=", "+", "-", "@", "\t", "\r")


def as_csv(filename: str, rows: Iterable[Sequence[object]], *, names: int | None = None) -> HttpResponse:
    """
    A download of *rows*. Text that a spreadsheet would calculate begins with an apostrophe.

    Where *names* is given, only in so many columns: the others are figures, though they be text.
    """
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    csv.writer(response).writerows([*map(_harmless, row[:names]), *row[len(row[:names]) :]] for row in rows)
    return response


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_CALCULATED) else cell
