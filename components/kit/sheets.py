"""
Files of comma-separated values, which spreadsheets open without calculating them.

A spreadsheet takes a cell for a formula by its first character, whatever quotes are around it. Every such file is
written by write_csv().
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category, normalize

#: The first visible character of a formula, in full or narrow width, large or small.
_CALCULATED = "=+-@\N{MINUS SIGN}"


def write_csv(
    file: Any, rows: Iterable[Sequence[object]], *, names: int | None = None, line_end: str = "\r\n"
) -> None:
    """
    Write *rows* to *file*. Put an apostrophe before text that a spreadsheet would calculate.

    With *names* only the first so many columns are checked: the others are figures, even if they are text.
    """
    writer = csv.writer(file, lineterminator=line_end)
    writer.writerows([*map(_harmless, row[:names]), *row[len(row[:names]) :]] for row in rows)


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and _is_calculated(cell) else cell


def _is_calculated(text: str) -> bool:
    """Return True if *text* begins a formula, or with what may hide that: a tab, the end of a line, a blank."""
    if category(text[:1] or "x") in ("Cc", "Zl", "Zp"):
        return True
    visible = next((each for each in text if category(each) not in ("Zs", "Zl", "Zp", "Cf", "Cc")), "")
    return normalize("NFKC", visible) in tuple(_CALCULATED)
