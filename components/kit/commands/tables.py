"""Plain-text tables for commands. Each column is as wide as its widest cell, and two spaces separate columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

NOTHING = "-"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """
    Return the lines of a table, with an empty line at the end. A heading that begins with > aligns its column right.
    """
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
    """Return an instant in the current time zone, with the zone's name."""
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M:%S %Z") if at else NOTHING


def age(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{seconds:.0f} s"


def _cell(value: object) -> str:
    """Return a cell as text. A name may contain anything, so characters that would break the table are escaped."""
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]
