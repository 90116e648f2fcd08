"""Plain-text tables and JSON for commands. Columns are as wide as their widest cells, and two spaces apart."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

NOTHING = "-"


def table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """
    Return the lines of a table, with an empty line at the end. Each row has the same headings, and a cell for each. A
    heading that begins with > aligns its column right.
    """
    if not rows:
        return ["  none", ""]
    to_the_right = [heading.startswith(">") for heading in rows[0]]
    headings = [heading.lstrip(">") for heading in rows[0]]
    lines = [headings, *([_cell(cell) for cell in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
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


def document(of: object, *names: str) -> dict[str, Any]:
    """Return the named attributes of an object for JSON, which has texts for instants and lists for tuples."""
    found = {name: getattr(of, name) for name in names}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()
    }


def age(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{seconds:.0f} s"


def _cell(value: object) -> str:
    """Return a cell as text. A name may contain anything, so characters that would break the table are escaped."""
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]
