"""
Chart: the lines of a few counters, as shapes for an SVG of any width.

A slice is one unit wide and a chart is 1,000 units high, whatever it counts; the browser stretches it. So a window
may change its size without a script. A single counter is drawn in steps, since each count belongs to its whole slice;
several counters are lines from middle to middle. The current slice is drawn separately.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext

from components.formatting import duration
from components.services.counters import Histogram, Mark, Measured, Sample, Series
from components.services.counters.charts.scales import LogScale, Scale, brief, clock_ticks
from components.services.counters.series import Unit

#: The most lines that can be told apart.
MOST_LINES = 8
_HEIGHT = 1_000
_MINUTE = 60  # seconds
_GREEN, _RED, _ORANGE = 3, 5, 2  # lines (room.css)
#: Words in the names of counters that have a familiar colour.
_MEANT = {
    **dict.fromkeys(("successful", "succeeded", "success", "ok"), _GREEN),
    **dict.fromkeys(("failed", "failures", "errors", "error", "dropped", "lost", "5xx"), _RED),
    **dict.fromkeys(("retried", "retries", "refused", "4xx"), _ORANGE),
}
_MARK = 16  # characters of the name of a mark
#: The percentiles of charts and tables.
PERCENTS = (50, 95, 99)
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


class Percentiles(Series):
    """A percentile of a counter, slice by slice. A slice in which nothing was measured is a gap."""

    is_level = True

    @classmethod
    def of(cls, percent: int, like: Series, slices: Sequence[Measured]) -> Percentiles:
        """Return the percentile of histograms that were read in the slices of *like*. *total* is that of all."""
        values = {
            each.at: round(each.histogram.percentile(percent)) for each in slices if each.histogram.count
        }
        merged = sum((each.histogram for each in slices), Histogram())
        name = gettext("p%(percent)s") % {"percent": percent}
        counts = [values.get(each.at) for each in like]
        found = cls._like(like, name, counts, round(merged.percentile(percent)))
        found.unit = like.unit
        return found


class Gauge(Series):
    """How much there was of something in each slice, at most. *total* is the highest."""

    is_gauge = True

    @classmethod
    def of(cls, name: str, levels: Mapping[datetime, int]) -> Gauge:
        """Return what *name* was in each minute of *levels*. The last minute is not over yet."""
        return cls(
            [Sample(at, level) for at, level in levels.items()],
            name=name,
            precision=_MINUTE,
            since=min(levels),
            until=max(levels) + timedelta(seconds=_MINUTE - 1),
            total=max(levels.values()),
        )


@dataclass(frozen=True)
class Line:
    """A counter in a chart."""

    series: Series
    #: From 1 on; determines colour and dashes.
    number: int
    scale: Scale | LogScale
    is_alone: bool

    @property
    def has_open_slice(self) -> bool:
        """True if the last slice is not over yet."""
        series = self.series
        return bool(series) and series.until < series[-1].at + timedelta(seconds=series.precision)

    @property
    def path(self) -> str:
        """The path of the slices that are over."""
        return self._drawn(0, len(self.series) - self.has_open_slice)

    @property
    def open_path(self) -> str:
        """The path of the current slice; "" if all slices are over."""
        if not self.has_open_slice:
            return ""
        last = len(self.series) - 1
        return self._drawn(last if self.series.is_level or self.is_alone else max(last - 1, 0), last + 1)

    @property
    def area(self) -> str:
        """The area between a single counter and zero."""
        if not self.is_alone or self.series.is_level:
            return ""
        return _area(self._depths, round(self.scale.depth(0) * _HEIGHT))

    @property
    def peak(self) -> Sample | None:
        """The slice with the highest count, the first of several."""
        return max(
            (each for each in self.series if each.count), key=lambda each: each.count or 0, default=None
        )

    def _drawn(self, first: int, end: int) -> str:
        """Return the path of some slices. That of a percentile is interrupted where nothing was measured."""
        if not (self.series.is_level or self.is_alone):
            points = [f"{place + 0.5} {self._depths[place]}" for place in range(first, end)]
            return f"M{' '.join(points)}" if len(points) > 1 else ""
        path, was_counted = "", False
        for place in range(first, end):
            is_counted = not self.series.is_level or self.series[place].count is not None
            if is_counted:
                path += f"{'V' if was_counted else f'M{place} '}{self._depths[place]}H{place + 1}"
            was_counted = is_counted
        return path

    @cached_property
    def _depths(self) -> list[int]:
        return [round(self.scale.depth(each.count or 0) * _HEIGHT) for each in self.series]


@dataclass(frozen=True)
class Chart:
    """Some counters that were read together, with the same slices."""

    found: Sequence[Series]
    #: What is shown above it; "" for the title of its page.
    title: str = ""
    #: What is marked in it, such as deployments.
    marks: Sequence[Mark] = ()
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

    @property
    def is_of_levels(self) -> bool:
        """True if its lines are percentiles."""
        return all(series.is_level for series in self.found)

    @property
    def is_of_gauges(self) -> bool:
        """True if its lines are levels, at most of each slice."""
        return all(series.is_gauge for series in self.found)

    @property
    def unit(self) -> Unit:
        """The unit of the numbers beside it; "" if its lines have different ones."""
        units = {series.unit for series in self.found}
        return units.pop() if len(units) == 1 else ""

    @property
    def axis(self) -> str:
        """Say what the numbers beside the chart are."""
        if self.is_of_gauges:
            return gettext("At most, per %(slice)s") % {"slice": duration(self.precision)}
        if self.is_of_levels:
            return gettext("Duration") if self.unit == "us" else gettext("Size")
        words = {"us": gettext("Time per %(slice)s"), "bytes": gettext("Bytes per %(slice)s")}
        return words.get(self.unit, gettext("Count per %(slice)s")) % {"slice": duration(self.precision)}

    @cached_property
    def scale(self) -> Scale | LogScale:
        if self.is_of_levels:
            levels = [each.count for series in self.found for each in series if each.count is not None]
            return LogScale.around(min(levels, default=1), max(levels, default=1))
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
    def rows(self) -> Iterator[tuple[datetime, Iterator[tuple[Series, int | None]]]]:
        """The rows of the table, the latest slice first: when it began, and the count of each series in it."""
        for samples in zip(*(reversed(series) for series in self.found), strict=True):
            counts = (each.count for each in samples)
            yield timezone.localtime(samples[0].at), zip(self.found, counts, strict=True)

    @property
    def numbers(self) -> list[Tick]:
        return ticks_of(self.scale, self.unit)

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

    @property
    def annotations(self) -> Iterator[tuple[Mark, Tick]]:
        """The marks within the time of the chart, and where they are drawn."""
        since, length = self.found[0].since, self.slices * self.precision
        for each in self.marks:
            place = (each.at - since).total_seconds() / length * 100
            if 0 <= place <= 100:
                anchor = "end" if place > 100 - _EDGE else "start"
                yield each, Tick(Truncator(each.name).chars(_MARK), round(place, 2), anchor)


def ticks_of(scale: Scale | LogScale, unit: Unit = "") -> list[Tick]:
    """Return the numbers beside a chart, from below."""
    return [
        Tick(brief(each, unit), round(scale.depth(each) * 100, 2), is_zero=each == 0) for each in scale.ticks
    ]


def charts_of(found: Sequence[Series], marks: Sequence[Mark] = ()) -> list[Chart]:
    """Return a chart for each unit, since a count and a time have no scale in common."""
    by_unit: dict[Unit, list[Series]] = {}
    for series in found:
        by_unit.setdefault(series.unit, []).append(series)
    return [Chart(some, "", marks) for some in by_unit.values()]


def percentile_chart(
    title: str,
    like: Series,
    slices: Sequence[Measured],
    marks: Sequence[Mark] = (),
    percents: Sequence[int] = PERCENTS,
) -> Chart:
    """Return the chart of the percentiles of a counter, from its histograms in the slices of *like*."""
    return Chart([Percentiles.of(percent, like, slices) for percent in percents], title, marks)


def counted_line(name: str, like: Series, counts: Mapping[datetime, int | None]) -> Series:
    """Return a line of events with the slices of *like*."""
    return Series._like(
        like, name, [counts.get(each.at) for each in like], sum(filter(None, counts.values()))
    )


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


def _area(depths: Sequence[int], zero: int) -> str:
    steps = "".join(f"V{depth}H{place}" for place, depth in enumerate(depths, 1))
    return f"M0 {zero}{steps}V{zero}Z" if depths else ""
