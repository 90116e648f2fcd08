"""
CSV files that spreadsheets open without calculating their cells.

A spreadsheet recognises a formula by the first character of a cell, whatever quotes surround it. write_csv() writes
all such files.
"""

import csv
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category, normalize

#: The first visible characters of a formula, in full or narrow width, large or small.
_CALCULATED = "=+-@\N{MINUS SIGN}"


def write_csv(
    file: Any, rows: Iterable[Sequence[object]], *, names: int | None = None, line_end: str = "\r\n"
) -> None:
    """
    Write *rows* to *file*. Put an apostrophe before text that a spreadsheet would calculate.

    If *names* is given, only that many columns are checked, from the left; the others contain figures, even if they
    are text.
    """
    writer = csv.writer(file, lineterminator=line_end)
    writer.writerows([*map(_harmless, row[:names]), *row[len(row[:names]) :]] for row in rows)


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and _is_calculated(cell) else cell


def _is_calculated(text: str) -> bool:
    """Return True if *text* begins a formula, or begins with a tab, a line end or a blank, which may hide one."""
    if category(text[:1] or "x") in ("Cc", "Zl", "Zp"):
        return True
    visible = next((each for each in text if category(each) not in ("Zs", "Zl", "Zp", "Cf", "Cc")), "")
    return normalize("NFKC", visible) in tuple(_CALCULATED)
