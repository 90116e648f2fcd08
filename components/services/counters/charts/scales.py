"""
Scales: round numbers beside a chart, round times below it, and the text of totals and rates.

Counts are whole numbers, and stay exact up to 2^53. Times are round in the viewer's time zone, so a tick of six hours
is at the viewer's midnight, also on a day with 23 hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from math import ceil, floor, gcd, log10

from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.formatting import amount, duration, measured
from components.services.counters import Series
from components.services.counters.series import Unit, is_time, unit_of

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400  # seconds
_QUARTER = 900  # seconds: the clocks of time zones differ by multiples of it
_INTERVALS = 4  # steps between the numbers beside a chart, approximately
_FEW = 2  # powers of ten, between which there is room for a number
_MOST_TICKS = 7  # steps between the times below a chart
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(each * _MINUTE for each in (1, 2, 5, 10, 15, 30)),
    *(each * _HOUR for each in (1, 2, 3, 6, 12)),
    *(each * _DAY for each in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)),
)
_PER = (
    (1, _("%(number)s a second")),
    (_MINUTE, _("%(number)s a minute")),
    (_HOUR, _("%(number)s an hour")),
    (_DAY, _("%(number)s a day")),
)
_UNITS = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
_LARGE = 100_000  # from this number on, numbers beside a chart are written with a unit
_CENTURY = 36_525  # days: the step for longer times


@dataclass(frozen=True)
class Scale:
    """From *low* to *high*, which are multiples of *step*."""

    low: int
    high: int
    step: int

    @classmethod
    def around(cls, least: int, most: int) -> Scale:
        """Return the scale that contains both, and zero."""
        least, most = min(least, 0), max(most, 0)
        if least == most:
            most = 1
        step = _round_up(-((least - most) // _INTERVALS))
        return cls(least // step * step, -(-most // step) * step, step)

    @property
    def ticks(self) -> range:
        return range(self.low, self.high + 1, self.step)

    def depth(self, count: int) -> float:
        """Return how far below the top a value is, as a fraction of the height."""
        return (self.high - count) / (self.high - self.low)


@dataclass(frozen=True)
class LogScale:
    """From *low* to *high*, which are powers of ten, each as far from the next. For durations, which differ much."""

    low: int
    high: int

    @classmethod
    def around(cls, least: int, most: int) -> LogScale:
        """Return the scale that contains both; what is less than 1 is drawn as 1."""
        low = 10 ** floor(log10(max(least, 1)))
        return cls(low, max(10 ** ceil(log10(max(most, 1))), low * 10))

    @property
    def ticks(self) -> Sequence[int]:
        decades = round(log10(self.high / self.low))
        powers = range(0, decades + 1, -(-decades // _INTERVALS))
        found = [self.low * 10**power for power in powers]
        return (
            found if decades > _FEW else sorted({*found, *(5 * each for each in found if each < self.high)})
        )

    def depth(self, count: int) -> float:
        """Return how far below the top a value is, as a fraction of the height."""
        at_least = max(count, self.low)
        return (log10(self.high) - log10(at_least)) / (log10(self.high) - log10(self.low))


def _round_up(number: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 25, 50, 100, …"""
    power: int = 10 ** (len(str(number)) - 1)
    return next(each for each in (power, 2 * power, 5 * power // 2, 5 * power, 10 * power) if each >= number)


def short(count: int) -> str:
    """Write a number briefly: 1234 as "1,234", 1500000 as "1.5 M"."""
    if abs(count) < _LARGE:
        return number_format(count, force_grouping=True)
    size, unit = next(each for each in _UNITS if abs(count) >= each[0])
    return f"{amount(count / size)} {unit}"


def spent(microseconds: int) -> str:
    """Write a sum of microseconds with its unit: 1500000 as "1.5 s", 90000000 as "1 min 30 s"."""
    size = abs(microseconds)
    sign = "-" if microseconds < 0 else ""
    if size >= _MINUTE * 10**6:
        return sign + duration(size // 10**6)
    if not size:
        return measured(0, "s")
    unit_size, unit = next(each for each in ((10**6, "s"), (10**3, "ms"), (1, "µs")) if size >= each[0])
    return sign + measured(round(_rounded(size / unit_size, 3), 2), unit)


def about(value: float, unit: Unit = "us") -> str:
    """Write a percentile with two digits, as many as it has: 1234567 microseconds as "1.2 s"."""
    if not value:
        return "\N{EN DASH}"
    digits = max(0, len(str(round(value))) - 2)
    return brief(round(value / 10**digits) * 10**digits, unit)


def size(count: int) -> str:
    """Write a number of bytes: 1500000 as "1.5 MB"."""
    return f"{short(count)}B" if abs(count) >= _LARGE else f"{short(count)} B"


def brief(count: int, unit: Unit) -> str:
    """Write a number beside a chart, with its unit."""
    return spent(count) if unit == "us" else size(count) if unit == "bytes" else short(count)


def total(count: int, of: str | Series) -> str:
    """Write a total of a counter, which may be named: a number, or a time or a size with its unit."""
    unit = unit_of(of) if isinstance(of, str) else of.unit
    return brief(count, unit) if unit else number_format(count, force_grouping=True)


def rate(series: Series) -> str:
    """
    Write how fast a counter counts: "30 a minute", in the shortest time in which it is one; "1 in 2 h" if it is below
    one in the whole period. The rate has no more digits than the count.
    """
    if not series.total:
        return "\N{EN DASH}"
    seconds = (series.until - series.since).total_seconds()
    least = 1_000 if is_time(series.name) else 1
    for length, text in _PER:
        if length <= seconds and abs(number := series.rate * length) >= least:
            rounded = _rounded(number, len(str(abs(series.total))))
            written = spent(round(rounded)) if is_time(series.name) else amount(rounded)
            return str(text) % {"number": written}
    return gettext("%(total)s in %(time)s") % {
        "total": total(series.total, series.name),
        "time": spent(round(seconds) * 10**6),
    }


def _rounded(number: float, digits: int) -> float:
    return round(number, digits - 1 - floor(log10(abs(number))))


def clock_ticks(since: datetime, until: datetime, zone: tzinfo) -> Iterator[tuple[datetime, str]]:
    """Return round times from *since* to *until*, few enough for the space below a chart, and their texts."""
    seconds = (until - since).total_seconds()
    step = next((each for each in _STEPS if seconds / each <= _MOST_TICKS), _CENTURY * _DAY)
    for at in _round_times(since, until, zone, step):
        yield at, _written(at, step)


def _round_times(since: datetime, until: datetime, zone: tzinfo, step: int) -> Iterator[datetime]:
    if step >= _DAY:
        days = range(since.astimezone(zone).toordinal(), until.astimezone(zone).toordinal() + 1)
        midnights = (date.fromordinal(day) for day in days if day % (step // _DAY) == 0)
        found = (datetime.combine(day, time(), zone) for day in midnights)
        yield from (at for at in found if since <= at.astimezone(UTC) <= until)
        return
    least = gcd(step, _QUARTER)
    first, last = ceil(since.timestamp() / least), floor(until.timestamp() / least)
    for number in range(first, last + 1):
        at = datetime.fromtimestamp(number * least, zone)
        if (at.hour * _HOUR + at.minute * _MINUTE + at.second) % step == 0:
            yield at


def _written(at: datetime, step: int) -> str:
    is_midnight = at.time() == time()
    if step >= _DAY or is_midnight:
        return f"{at:%m-%d}" if step < 100 * _DAY else f"{at:%Y-%m}"
    return f"{at:%H:%M:%S}" if step < _MINUTE else f"{at:%H:%M}"
