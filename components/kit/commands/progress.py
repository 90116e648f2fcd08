"""
How far a command is: on a terminal a bar that is drawn anew, elsewhere a line now and then.

The rate is that of the last moments, and the time left is what remains at that rate.
"""

from __future__ import annotations

import time
from collections import deque

from django.core.management.base import OutputWrapper

_DRAWN, _SAID = 0.2, 10.0  # seconds between two drawings, and two lines
_SPAN = 15.0  # seconds of the rate
_WIDTH = 24  # characters of the bar


class Progress:
    """Tells on *out* how many of *total* bytes are done; a total of 0 is not known."""

    def __init__(self, out: OutputWrapper, total: int) -> None:
        self._out, self.total = out, total
        self._is_terminal = out.isatty()
        self._pause = _DRAWN if self._is_terminal else _SAID
        self._began_at = self._told_at = time.monotonic()
        self._samples = deque([(self._began_at, 0, 0)])

    def tell(self, done: int, lines: int) -> None:
        """So many bytes and lines are done. It is told if something was not told lately."""
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
        left = f"{duration((self.total - done) / speed)} left" if speed > 0 else "time left unknown"
        filled = round(part * _WIDTH)
        return f"{part:4.0%} [{'#' * filled}{'.' * (_WIDTH - filled)}] {said}, {left}"

    def end(self) -> None:
        """Leave the line of the bar."""
        if self._is_terminal:
            self._out.write("\r\x1b[K", ending="")
            self._out.flush()


def duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
