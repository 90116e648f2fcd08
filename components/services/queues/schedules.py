"""
Schedules of periodic tasks: cron(...) for times of day, every(...) for intervals.

A schedule is a fixed sequence of instants, its ticks, and has no state: all workers compute the same ticks, whenever
they were started. Intervals are counted from 1970-01-01 00:00 UTC. cronsim evaluates cron expressions. Changes to and
from daylight saving time are handled here in the same way as in Debian's cron: a job at fixed times runs once each
day, and a job whose minute or hour begins with * follows the local time.
"""

import math
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from cronsim.cronsim import RANGES, Field
from django.conf import settings

from components.exceptions import InvalidValue
from components.kit.decoding import EPOCH

SHORTEST, LONGEST = timedelta(seconds=1), timedelta(days=366)  # bounds of intervals
_DAY = timedelta(days=1)
_LONGEST_CHANGE = timedelta(hours=3)  # the most by which clocks are set back at once
_PATIENCE = 50  # years without a tick after which an expression counts as matching no date
_UNITS = {"day": _DAY, "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_FIELDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of the month": "1 to 31, L or LW",
    "month": "1 to 12, or JAN to DEC",
    "day of the week": "0 to 7, or SUN to SAT",
}
_LONG_NAMES = re.compile(
    r"\b(?:(?:SUN|MON|TUES|WEDNES|THURS|FRI|SATUR)DAY|JANUARY|FEBRUARY|MARCH|APRIL|JUNE|JULY|AUGUST|SEPTEMBER"
    r"|OCTOBER|NOVEMBER|DECEMBER)\b"
)
_LONGEST_STEPS = (60, 24, 31, 12, 7)
_NAMED = {
    **dict.fromkeys(("@YEARLY", "@ANNUALLY"), "0 0 1 1 *"),
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    **dict.fromkeys(("@DAILY", "@MIDNIGHT"), "0 0 * * *"),
    "@HOURLY": "0 * * * *",
}


class Schedule(ABC):
    """The ticks of a task. str() is shown in the admin, and part of the name under which the last tick is stored."""

    @abstractmethod
    def next_after(self, instant: datetime) -> datetime:
        """Return the first tick later than *instant*, in UTC."""

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the ticks later than *after* and not later than *until*, oldest first."""
        tick = self.next_after(after)
        while tick <= until:
            yield tick
            tick = self.next_after(tick)

    def latest(self, after: datetime, until: datetime, count: int = 1) -> list[datetime]:
        """Return the last *count* ticks of between(), oldest first. The cost does not grow with their number."""
        back = timedelta(minutes=count)
        while True:
            start = max(after, until - back)
            found = deque(self.between(start, until), maxlen=count)
            if len(found) == count or start == after:
                return list(found)
            back *= 4


@dataclass(frozen=True)
class Every(Schedule):
    """A tick at every *interval* since 1970, made by every(). Raises InvalidValue."""

    interval: timedelta

    def __post_init__(self) -> None:
        if not SHORTEST <= self.interval <= LONGEST:
            raise InvalidValue(
                f"every() was given {self.interval!r}; it must be from one second to 366 days. "
                "For a date of each year use cron()."
            )

    def next_after(self, instant: datetime) -> datetime:
        return EPOCH + ((instant - EPOCH) // self.interval + 1) * self.interval

    def __str__(self) -> str:
        rest, parts = self.interval, []
        for unit, length in _UNITS.items():
            number, rest = divmod(rest, length)
            parts += [_count(number, unit)] if number else []
        parts += [_count(rest.total_seconds(), "second")] if rest else []
        return f"every {' '.join(parts)}"


@dataclass(frozen=True)
class Cron(Schedule):
    """A tick at each minute that matches a cron expression, made by cron(). Raises InvalidValue."""

    expression: str
    zone: str

    def __post_init__(self) -> None:
        expression = " ".join(str(self.expression).upper().split())
        expression = _LONG_NAMES.sub(lambda found: found[0][:3], expression)
        object.__setattr__(self, "expression", _NAMED.get(expression, expression))
        try:
            ZoneInfo(self.zone)
        except (LookupError, ValueError, OSError):  # OSError if the name is that of a folder of zones
            raise InvalidValue(
                f"There is no time zone {self.zone!r} here. Its name must be one such as 'Europe/Berlin'; "
                "where the system has no time zones, install the package tzdata."
            ) from None
        _check_expression(self.expression)
        self.next_after(datetime(2000, 1, 1, tzinfo=UTC))  # raises if there is no tick

    def next_after(self, instant: datetime) -> datetime:
        zone = ZoneInfo(self.zone)
        local = instant.astimezone(zone)
        start = local.replace(tzinfo=None, fold=0)
        # Clocks that are about to be set back will show the present time again.
        put_back = max(timedelta(), _offset(local) - _offset((instant + _LONGEST_CHANGE).astimezone(zone)))
        best: datetime | None = None
        for wall in CronSim(_as_cronsim_has_it(self.expression), start - put_back):
            ticks = self._ticks(wall, zone)
            if best is not None and ticks and ticks[0] >= best:
                return best
            best = min(
                (tick for tick in ticks if tick > instant and (best is None or tick < best)), default=best
            )
            if best is not None and not put_back:
                return best
            if wall.year > start.year + _PATIENCE:
                break
        if best is None:
            raise InvalidValue(
                f"cron({self.expression!r}) never ticks in {self.zone}: no time there fits all its fields."
            )
        return best

    def _ticks(self, wall: datetime, zone: ZoneInfo) -> list[datetime]:
        """Return the instants at which clocks show *wall*: one, two or none. A job at fixed times always has one."""
        first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if second < first:  # the clock skips this time
            return [_leap(second, first, zone)] if self._is_fixed else []
        return [first] if first == second or self._is_fixed else [first, second]

    @property
    def _is_fixed(self) -> bool:
        minute, hour, *_days = self.expression.split()
        return not minute.startswith("*") and not hour.startswith("*")

    def __str__(self) -> str:
        return f"{self.expression} ({self.zone})"


def every(*, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> Every:
    """
    Return a schedule that ticks at a fixed interval, counted from 1970-01-01 00:00 UTC.

    every(minutes=5) ticks at :00, :05 and so on, every(days=1) at midnight UTC. The interval is from one second to
    366 days. Raises InvalidValue.
    """
    numbers = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise InvalidValue(f"every() was given {name}={number!r}; it must be a number, 0 or more.")
    try:
        return Every(timedelta(**numbers))
    except OverflowError:
        raise InvalidValue(f"every() was given {numbers!r}; it must be at most 366 days.") from None


def cron(expression: str, *, tz: str | ZoneInfo | None = None) -> Cron:
    """
    Return a schedule that ticks at each minute that matches *expression* in the time zone *tz*.

    The fields are minute, hour, day of the month, month and day of the week; "@daily" and the like name them. *tz*
    defaults to settings.TIME_ZONE. Raises InvalidValue.
    """
    return Cron(expression, str(settings.TIME_ZONE if tz is None else tz))


def _check_expression(expression: str) -> None:
    fields = expression.split()
    if len(fields) != len(_FIELDS):
        more = (
            " For seconds use every(seconds=...), for a time zone tz=." if len(fields) > len(_FIELDS) else ""
        )
        raise InvalidValue(
            f"cron({expression!r}) has {_count(len(fields), 'field')}; it must have five: {', '.join(_FIELDS)}; or "
            f"be one of {', '.join(_NAMED).lower()}.{more}"
        )
    for place, (name, allowed) in enumerate(_FIELDS.items()):
        alone = ["*"] * len(_FIELDS)
        alone[place] = fields[place]
        for step in re.findall(r"/0*(\d+)", fields[place]):
            if len(step) > 2 or int(step) > _LONGEST_STEPS[place]:
                raise InvalidValue(
                    f"cron({expression!r}): its {name} has the step {step[:9]}, and there are only "
                    f"{_LONGEST_STEPS[place]}. For longer intervals use every(...)."
                )
        if not _is_readable(_as_cronsim_has_it(" ".join(alone))):
            raise InvalidValue(
                f"cron({expression!r}): its {name} is {fields[place]!r}; allowed are {allowed}, "
                "* for all, lists (1,2), ranges (1-5, 22-6) and steps (*/2)."
            )
    if not _is_readable(_as_cronsim_has_it(expression)):
        raise InvalidValue(f"cron({expression!r}) never ticks: its month has no such day.")


@cache
def _as_cronsim_has_it(expression: str) -> str:
    """
    Return *expression* as cronsim reads it: ranges over midnight such as 22-6 as lists, ? as *, and ranges such as
    5-5/2 as 5-5, which it takes for 5/2, which is 5-59/2.
    """
    fields = zip(list(Field)[1:], expression.split(), strict=True)
    return " ".join(",".join(_term(field, term) for term in text.split(",")) for field, text in fields)


def _term(field: Field, term: str) -> str:
    if term == "?" and field in (Field.DAY, Field.DOW):
        return "*"
    numbers, _slash, step = term.partition("/")
    first, _dash, last = numbers.partition("-")
    try:
        start, end = field.int(first), field.int(last)
        size = int(step or 1)
    except (CronSimError, ValueError):  # not a range, or not one that can be read
        return term
    if start > end and size > 0:
        lowest, count = RANGES[field][0], 7 if field == Field.DOW else len(RANGES[field])  # 7 is Sunday, too
        length = (end - start) % count + 1
        return ",".join(str(lowest + (start - lowest + each) % count) for each in range(0, length, size))
    return numbers if step and start == end and size else term


def _is_readable(expression: str) -> bool:
    try:
        CronSim(expression, datetime(2000, 1, 1))
    except (CronSimError, ValueError):  # ValueError for numbers of thousands of digits
        return False
    return True


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta()


def _leap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant between *before* and *after* at which the clocks of *zone* are set forward."""
    earlier = _offset(before.astimezone(zone))
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // 2
        if _offset(middle.astimezone(zone)) == earlier:
            before = middle
        else:
            after = middle
    return after.replace(microsecond=0)


def _count(number: float, unit: str) -> str:
    return f"{number:.15g} {unit}" + ("" if number == 1 else "s")
