"""
Bars: sums of days or of other steps of time, stacked, as shapes for an SVG of any width.

A bar is a day, or as many days as needed for all bars to be visible. Layers are in the given order, the first at the
bottom; a template draws each with its own colour and pattern. Positions are in percent, so a window may change its
size without a script, and without distorting the patterns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from components.services.counters.charts.figures import Tick, ticks_of
from components.services.counters.charts.scales import Scale

#: The most layers that can be told apart, besides the one for all others.
MOST_LAYERS = 7
_MOST_BARS = 93  # three months of days
_STEPS = (1, 7, 14, 28, 91, 182, 364)  # days of a bar
_MOST_TICKS = 7  # times below a chart
_FILLED = 0.8  # part of its space that a bar fills
_EDGE, _EDGE_OF_YEARS = 2.5, 12  # percent: a word this close to an end begins or ends there


@dataclass(frozen=True)
class Shape:
    """A rectangle, in percent."""

    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class Layer:
    """One part of all bars."""

    #: Determines colour and pattern; 0 is the layer of all others.
    number: int
    name: str
    total: int
    #: Its sum in each bar.
    counts: Sequence[int]
    shapes: Sequence[Shape]


@dataclass(frozen=True)
class Bar:
    first: date | str
    last: date | str
    total: int
    #: The area in which the pointer selects it.
    shape: Shape
    #: The sums of the layers.
    counts: Sequence[int]

    @property
    def label(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Bars:
    """Sums of consecutive *days*; *parts* are named, and "others" is the rest. Steps of other lengths are texts."""

    days: Sequence[date] | Sequence[str]
    parts: Sequence[tuple[str, Sequence[int]]]
    others: tuple[str, Sequence[int]] | None = None

    @cached_property
    def step(self) -> int:
        """The number of days of a bar."""
        longest = -(-len(self.days) // _MOST_BARS)
        return next((each for each in _STEPS if each >= longest), longest)

    @cached_property
    def scale(self) -> Scale:
        return Scale.around(0, max(self._totals, default=0))

    @property
    def is_empty(self) -> bool:
        return not any(self._totals)

    @cached_property
    def layers(self) -> list[Layer]:
        """The layers, from below."""
        found = list[Layer]()
        below = [0] * len(self._totals)
        for number, name, counts in self._summed:
            above = [sum(each) for each in zip(below, counts, strict=True)]
            levels = enumerate(zip(below, above, strict=True))
            shapes = [self._shape(place, low, high) for place, (low, high) in levels if high > low]
            found.append(Layer(number, name, sum(counts), counts, shapes))
            below = above
        return found

    @property
    def bars(self) -> Iterator[Bar]:
        """The bars, from the left."""
        counts = zip(*(each.counts for each in self.layers), strict=True)
        for place, (total, each) in enumerate(zip(self._totals, counts, strict=True)):
            start = place * self.step
            last = self.days[min(start + self.step, len(self.days)) - 1]
            yield Bar(self.days[start], last, total, self._shape(place, 0, self.scale.high, filled=1), each)

    @property
    def numbers(self) -> list[Tick]:
        return ticks_of(self.scale)

    @property
    def times(self) -> Iterator[Tick]:
        """The times below the chart, from the left."""
        count = len(self._totals)
        every = max(1, -(-count // _MOST_TICKS))
        first, last = self.days[0], self.days[-1]
        has_years = isinstance(first, date) and isinstance(last, date) and first.year != last.year
        edge = _EDGE_OF_YEARS if has_years else _EDGE
        for number, place in enumerate(range(0, count, every)):
            day = self.days[place * self.step]
            at = round((place + 0.5) / count * 100, 2)
            anchor = "start" if at < edge else "end" if at > 100 - edge else "middle"
            text = f"{day}" if has_years or isinstance(day, str) else f"{day:%m-%d}"
            yield Tick(text, at, anchor, is_spare=number % 2 == 1)

    @cached_property
    def _summed(self) -> list[tuple[int, str, list[int]]]:
        numbered = [(number, *part) for number, part in enumerate(self.parts, 1)]
        if self.others:
            numbered.append((0, *self.others))
        starts = range(0, len(self.days), self.step)
        return [
            (number, name, [sum(counts[start : start + self.step]) for start in starts])
            for number, name, counts in numbered
        ]

    @cached_property
    def _totals(self) -> list[int]:
        return [sum(each) for each in zip(*(counts for _number, _name, counts in self._summed), strict=True)]

    def _shape(self, place: int, low: int, high: int, *, filled: float = _FILLED) -> Shape:
        room = 100 / len(self._totals)
        top, bottom = (self.scale.depth(each) * 100 for each in (high, low))
        return Shape(
            x=f"{room * (place + (1 - filled) / 2):.3f}%",
            y=f"{top:.3f}%",
            width=f"{room * filled:.3f}%",
            height=f"{bottom - top:.3f}%",
        )
