"""The progress of a command: on a terminal a bar that is redrawn, elsewhere a line now and then."""

import time
from collections import deque

from django.core.management.base import OutputWrapper

_DRAWN, _SAID = 0.2, 10.0  # seconds between two drawings, and between two lines
_SPAN = 15.0  # how many seconds the rate covers
_WIDTH = 24  # characters of the bar


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
        left = f"{duration((self.total - done) / speed)} left" if speed > 0 else "time left unknown"
        filled = round(part * _WIDTH)
        return f"{part:4.0%} [{'#' * filled}{'.' * (_WIDTH - filled)}] {said}, {left}"

    def end(self) -> None:
        """End the line of the bar."""
        if self._is_terminal:
            self._out.write("\r\x1b[K", ending="")
            self._out.flush()


def duration(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
