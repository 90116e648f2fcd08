"""
What commands print: plain-text tables, JSON, and their progress.

Columns are as wide as their widest cells, and two spaces apart. Progress is on a terminal a bar that is redrawn,
elsewhere a line now and then.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import OutputWrapper
from django.utils import timezone

NOTHING = "-"
_DRAWN, _SAID = 0.2, 10.0  # seconds between two drawings, and between two lines
_SPAN = 15.0  # how many seconds the rate covers
_WIDTH = 24  # characters of the bar


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


class Progress:
    """Writes to *out* how many of *total* bytes are done; a *total* of 0 means unknown."""

    def __init__(self, out: OutputWrapper, total: int) -> None:
        self._out, self.total = out, total
        self._is_terminal = out.isatty()
        self._pause = _DRAWN if self._is_terminal else _SAID
        self._began_at = self._told_at = time.monotonic()
        self._samples = deque([(self._began_at, 0, 0)])

    def tell(self, done: int, lines: int) -> None:
        """Report how many bytes and lines are done, unless the last report was a moment ago."""
        now = time.monotonic()
        if now - self._told_at < self._pause:
            return
        self._told_at = now
        self._samples.append((now, done, lines))
        while len(self._samples) > 2 and now - self._samples[0][0] > _SPAN:
            self._samples.popleft()
        line = self.line(done, lines)
        self._out.write(
            f"\r{line}\x1b[K" if self._is_terminal else line, ending="" if self._is_terminal else "\n"
        )
        self._out.flush()

    def line(self, done: int, lines: int) -> str:
        then, done_then, lines_then = self._samples[0]
        seconds = max(1e-6, self._told_at - then)
        rate, speed = (lines - lines_then) / seconds, (done - done_then) / seconds
        said = f"{lines:,} lines, {rate:,.0f} lines/s, {speed / 1e6:,.1f} MB/s"
        if not self.total:
            return said
        part = min(1.0, done / self.total)
        left = f"{_duration((self.total - done) / speed)} left" if speed > 0 else "time left unknown"
        filled = round(part * _WIDTH)
        return f"{part:4.0%} [{'#' * filled}{'.' * (_WIDTH - filled)}] {said}, {left}"

    def end(self) -> None:
        """End the line of the bar."""
        if self._is_terminal:
            self._out.write("\r\x1b[K", ending="")
            self._out.flush()


def _duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
