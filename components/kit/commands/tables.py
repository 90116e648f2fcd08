"""Tables of plain text, for commands that show something: columns as wide as what is in them, two blanks between."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

NOTHING = "-"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table, an empty one at its end. A heading that begins with > is that of a column of numbers."""
    if not rows:
        return ["  none", ""]
    to_the_right = [heading.startswith(">") for heading in headings]
    lines = [[heading.lstrip(">") for heading in headings], *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    written = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_the_right, strict=True)
        )
        for line in lines
    ]
    return [*(f"  {line}".rstrip() for line in written), ""]


def instant(at: datetime | None) -> str:
    """In the current time zone, which is named."""
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S %Z") if at else NOTHING


def age(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{seconds:.0f} s"


def _cell(value: object) -> str:
    """A name may hold anything: what would break the table is written out."""
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]
