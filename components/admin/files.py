"""Tables as files of comma-separated values, which spreadsheets open without calculating what a name says."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence

from django.http import HttpResponse

_CALCULATED = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"-[0-9.]+(e-?[0-9]+)?", re.ASCII)


def as_csv(filename: str, rows: Iterable[Sequence[object]]) -> HttpResponse:
    """A download of *rows*. Text that a spreadsheet would calculate begins with an apostrophe."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    csv.writer(response).writerows([_harmless(each) for each in row] for row in rows)
    return response


def _harmless(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(_CALCULATED) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"
