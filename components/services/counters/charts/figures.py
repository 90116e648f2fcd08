"""
Chart: the lines of a few counters, as shapes for an SVG of any width.

A slice is one unit wide and a chart is 1,000 units high, whatever it counts; the browser stretches it. So a window
may change its size without a script. A single counter is drawn in steps, since each count belongs to its whole slice;
several counters are lines from middle to middle. The current slice is drawn separately.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from django.utils import timezone

from components.services.counters import Sample, Series
from components.services.counters.charts.scales import Scale, clock_ticks, short, spent
from components.services.counters.charts.spans import FamilySeries
from components.services.counters.series import is_time

#: The most lines that can be told apart.
MOST_LINES = 8
_HEIGHT = 1_000
_GREEN, _RED, _ORANGE = 3, 5, 2  # lines (charts.css)
#: Words in the names of counters that have a familiar colour.
_MEANT = {
    **dict.fromkeys(("successful", "succeeded", "success", "ok"), _GREEN),
    **dict.fromkeys(("failed", "failures", "errors", "error", "dropped", "lost", "5xx"), _RED),
    **dict.fromkeys(("retried", "retries", "refused", "4xx"), _ORANGE),
}
_EDGE = 10  # percent: a word this close to an end begins or ends there


@dataclass(frozen=True)
class Tick:
    """A number beside a chart, or a time below it."""

    text: str
    #: Percent from the left or from the top.
    place: float
    #: The anchor of the word: "start", "middle" or "end".
    anchor: str = "middle"
    #: Whether it is left out if there is little room.
    is_spare: bool = False
    is_zero: bool = False


@dataclass(frozen=True)
class Line:
    """A counter in a chart."""

    series: Series
    #: From 1 on; determines colour and dashes.
    number: int
    scale: Scale
    is_alone: bool

    @property
    def name(self) -> str:
        return self.series.name

    @property
    def family(self) -> str | None:
        """The name of the family; None for a single counter."""
        return self.series.family if isinstance(self.series, FamilySeries) else None

    @property
    def has_open_slice(self) -> bool:
        """True if the last slice is not over yet."""
        series = self.series
        return bool(series) and series.until < series[-1].at + timedelta(seconds=series.precision)

    @property
    def path(self) -> str:
        """The path of the slices that are over."""
        over = len(self.series) - self.has_open_slice
        return _steps(self._depths[:over], 0) if self.is_alone else _joined(self._depths[:over], 0)

    @property
    def open_path(self) -> str:
        """The path of the current slice; "" if all slices are over."""
        if not self.has_open_slice:
            return ""
        last = len(self.series) - 1
        if self.is_alone:
            return _steps(self._depths[last:], last)
        first = max(last - 1, 0)
        return _joined(self._depths[first:], first)

    @property
    def area(self) -> str:
        """The area between a single counter and zero."""
        return _area(self._depths, round(self.scale.depth(0) * _HEIGHT)) if self.is_alone else ""

    @property
    def peak(self) -> Sample | None:
        """The slice with the highest count, the first of several."""
        return max(
            (each for each in self.series if each.count), key=lambda each: each.count or 0, default=None
        )

    @cached_property
    def _depths(self) -> list[int]:
        return [round(self.scale.depth(each.count or 0) * _HEIGHT) for each in self.series]


@dataclass(frozen=True)
class Row:
    """The counts of one slice, for the table."""

    at: datetime
    counts: Sequence[int | None]
    #: The counts, one for each line.
    names: Sequence[str]

    @property
    def key(self) -> int:
        return int(self.at.timestamp())

    @property
    def named(self) -> Iterator[tuple[str, int | None]]:
        return zip(self.names, self.counts, strict=True)


@dataclass(frozen=True)
class Chart:
    """Some counters that were read together, with the same slices."""

    found: Sequence[Series]
    height = _HEIGHT

    @property
    def precision(self) -> int:
        return self.found[0].precision

    @property
    def since(self) -> datetime:
        return timezone.localtime(self.found[0].since)

    @property
    def until(self) -> datetime:
        return timezone.localtime(self.found[0].until)

    @property
    def begins(self) -> int:
        """The second at which it begins."""
        return int(self.since.timestamp())

    @property
    def slices(self) -> int:
        return len(self.found[0])

    @property
    def is_empty(self) -> bool:
        """True if nothing was counted in this time."""
        return all(each.count is None for series in self.found for each in series)

    @cached_property
    def is_dated(self) -> bool:
        """True if times need dates to distinguish them."""
        today = timezone.localtime(datetime.now(UTC)).date()
        return {self.since.date(), self.until.date()} != {today}

    @cached_property
    def scale(self) -> Scale:
        counts = [each.count or 0 for series in self.found for each in series]
        return Scale.around(min(counts, default=0), max(counts, default=0))

    @cached_property
    def lines(self) -> list[Line]:
        is_alone = len(self.found) == 1
        numbers = _looks([series.name for series in self.found])
        return [
            Line(series, number, self.scale, is_alone)
            for number, series in zip(numbers, self.found, strict=True)
        ]

    @property
    def rows(self) -> Iterator[Row]:
        """The rows of the table, the latest slice first."""
        names = [series.name for series in self.found]
        for samples in zip(*(reversed(series) for series in self.found), strict=True):
            yield Row(timezone.localtime(samples[0].at), [each.count for each in samples], names)

    @property
    def is_of_times(self) -> bool:
        """True if all lines count microseconds."""
        return all(is_time(series.name) for series in self.found)

    @property
    def numbers(self) -> list[Tick]:
        """The numbers beside the chart, from below."""
        written = spent if self.is_of_times else short
        return [
            Tick(written(each), round(self.scale.depth(each) * 100, 2), is_zero=each == 0)
            for each in self.scale.ticks
        ]

    @property
    def times(self) -> Iterator[Tick]:
        """The times below the chart, from the left."""
        since, length = self.since, self.slices * self.precision
        zone = timezone.get_current_timezone()
        between = 0
        for at, text in clock_ticks(since, since + timedelta(seconds=length), zone):
            place = round((at - since).total_seconds() / length * 100, 2)
            anchor = "start" if place < _EDGE else "end" if place > 100 - _EDGE else "middle"
            between += anchor == "middle"
            yield Tick(text, place, anchor, is_spare=anchor != "middle" or between % 2 == 0)


def _looks(names: Sequence[str]) -> list[int]:
    """
    Return the number that determines the colour of each line: in order, except that success is green, failure red,
    and retries and refusals orange, unless another line has that colour.
    """
    meant: dict[int, int] = {}
    for place, name in enumerate(names):
        words = reversed(re.split("[-:_. ]", name.lower()))
        number = next((_MEANT[word] for word in words if word in _MEANT), None)
        if number and number not in meant.values():
            meant[place] = number
    free = [number for number in range(1, MOST_LINES + 1) if number not in meant.values()]
    if meant:  # other lines avoid the colours of success and failure while there are others
        free.sort(key=lambda number: number in _MEANT.values())
    rest = iter(free)
    return [meant.get(place) or next(rest) for place in range(len(names))]


def sparkline(series: Series) -> str:
    """Return the path of a small drawing of a counter, without numbers."""
    counts = [each.count or 0 for each in series]
    scale = Scale.around(min(counts, default=0), max(counts, default=0))
    return _area([round(scale.depth(count) * _HEIGHT) for count in counts], round(scale.depth(0) * _HEIGHT))


def _steps(depths: Sequence[int], first: int) -> str:
    path = [f"M{first} {depths[0]}H{first + 1}"] if depths else []
    for place, depth in enumerate(depths[1:], first + 2):
        path.append(f"V{depth}H{place}")
    return "".join(path)


def _joined(depths: Sequence[int], first: int) -> str:
    points = " ".join(f"{place + 0.5} {depth}" for place, depth in enumerate(depths, first))
    return f"M{points}" if len(depths) > 1 else ""


def _area(depths: Sequence[int], zero: int) -> str:
    steps = "".join(f"V{depth}H{place}" for place, depth in enumerate(depths, 1))
    return f"M0 {zero}{steps}V{zero}Z" if depths else ""
