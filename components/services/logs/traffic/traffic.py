"""
Traffic: the number of lines of logs from each place on each day.

Each day has a table for each level of places. A report adds up the tables of its days in this process, since Redis
would serve nobody else meanwhile. Then the rows are read again for each day, and for as many days before; the earlier
total is in the tables of the level above. Nothing is written. If lines are counted meanwhile, a report has some of
them, and its rows and others still add up to its total.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import product
from typing import get_args

from components.exceptions import InvalidValue
from components.kit.translation import gettext
from components.kit.validation import check_int, check_name
from components.services.geo import Level
from components.services.logs import DEFAULT_JOB, totals_of
from components.services.logs.traffic.report import DayTotal, Others, Report, Row, growth
from components.services.logs.traffic.slices import (
    HOURS,
    Slices,
    Wanted,
    check_hour,
    check_status,
    slices_of,
    slices_of_sums,
)
from components.services.logs.traffic.tables import (
    ALL,
    DAYS,
    DIMENSIONS,
    OUTCOMES,
    add_up,
    answers,
    at_country,
    daily,
    drop,
    hourly,
    present,
    read,
    scan,
    scores,
    slice_of,
    valued,
)
from components.services.logs.traffic.values import ValueReport, slices_of_value, values_of_days

#: The longest period of a report. Ten years of countries are a million members to read; so is a year of 3,000 cities.
MOST_DAYS: dict[str, int] = {"country": 3_660, "region": 1_830, "city": 366, "hour": 92}
#: The most rows of a report.
MOST_ROWS = 10_000
_LEVELS: tuple[Level, ...] = get_args(Level)


class Traffic:
    """The counts of a job's logs. Every method raises RedisUnavailable."""

    def __init__(self, job: str = DEFAULT_JOB) -> None:
        self.job = check_name("log job", job)

    def days(self, first: date | None = None, last: date | None = None) -> tuple[DayTotal, ...]:
        """
        Return the days from *first* to *last* on which lines were counted, with the number of lines. Members that are
        not days, which a callback may have counted in that table, are left out.
        """
        (found,) = scan(self.job, [DAYS])
        days = (DayTotal(day, lines) for name, lines in found.items() if (day := _day(name)))
        inside = (each for each in days if (first or date.min) <= each.day <= (last or date.max))
        return tuple(sorted(inside, key=lambda each: each.day))

    def latest(self, days: int = 7) -> tuple[date, date] | None:
        """
        Return the first and last of so many *days* that end with the newest that has lines; None if there is none.
        Raises InvalidValue.
        """
        check_int("number of days", days, 1)
        if not (found := self.days()):
            return None
        last = found[-1].day
        return date.fromordinal(max(1, last.toordinal() - days + 1)), last

    def forget(self, before: date) -> int:
        """
        Remove the tables of all days *before* this one. Return how many days there were. Lines of such a day that are
        counted later create its tables again, unless workers reject them as late. Raises InvalidValue.
        """
        if not isinstance(before, date) or isinstance(before, datetime):
            raise InvalidValue(f"The day is {before!r}; it must be a date.")
        days = [each.day for each in self.days(last=before) if each.day < before]
        for day in days:
            self._forget_values(day)
        tables = [daily(level, day) for day in days for level in _LEVELS]
        tables += [table(day) for day in days for table in (hourly, answers)]
        drop(self.job, tables, DAYS, [day.isoformat() for day in days])
        return len(days)

    def _forget_values(self, day: date) -> None:
        """Remove the tables of paths, referrers and agents of a day, for which its countries must still be known."""
        (places,) = read(self.job, [daily("country", day)])
        countries = (at_country(each.decode(errors="replace")) for each in places)
        slices = [ALL, "", *HOURS, *countries]
        tables = [valued(*each, day.isoformat()) for each in product(DIMENSIONS, OUTCOMES)]
        every = [slice_of(*each) for each in product(tables, slices)]
        drop(self.job, [*every, *tables], DAYS, [])

    def totals(self, aggregation: str = "places") -> dict[str, int]:
        """Return how many lines an aggregation has read ("lines"), "counted", and rejected, by the reason."""
        (found,) = scan(self.job, [totals_of(check_name("aggregation of logs", aggregation))])
        return {name.decode("utf-8", "backslashreplace"): count for name, count in found.items()}

    def slices(
        self, first: date, last: date, *, country: str = "", hour: str = "", status: str = ""
    ) -> Slices:
        """
        Return the lines from *first* to *last*, both included, by hour, by country and by status.

        The three are counted together, so they can be combined: *country* "US", *hour* "13" and *status* "404", or
        "4xx" for all that begin with a 4, leave out all other lines. The hour is the one that is written in the line.
        Raises InvalidValue.
        """
        days, _ = _check_period("hour", first, last)
        wanted = _wanted(hour, country, status)
        lines = {each.day: each.lines for each in self.days(first, last)}
        counted = [lines.get(day, 0) for day in days]
        answered = list(read(self.job, [answers(day) for day in days]))
        # The sums of lines by hour and status are of use if they have all lines: not those of an earlier release.
        is_whole = list(map(_total, answered)) == counted
        if is_whole and not any(wanted):
            places = list(read(self.job, [daily("country", day) for day in days]))
            if list(map(_total, places)) == counted:  # nothing was counted in between
                return slices_of_sums(days, answered, places)
        found = scan(self.job, [hourly(day) for day in days], *(wanted.beginnings if is_whole else ()))
        return slices_of(days, found, wanted, None if is_whole else sum(counted))

    def values(
        self,
        dimension: str,
        first: date,
        last: date,
        *,
        country: str = "",
        hour: str = "",
        status: str = "",
        top: int = 10,
    ) -> ValueReport:
        """
        Return the *top* values of a dimension from *first* to *last*: "path", "referrer" or "agent". A status can be
        combined with a country or with an hour, but not with both. Raises InvalidValue, InvalidName.
        """
        days, _ = _check_period("hour", first, last)
        check_int("top", top, 1, MOST_ROWS)
        counted = sum(total.lines for total in self.days(first, last))
        return values_of_days(self.job, dimension, days, _wanted(hour, country, status), counted, top)

    def value(
        self,
        dimension: str,
        value: str,
        first: date,
        last: date,
        *,
        country: str = "",
        hour: str = "",
        status: str = "",
    ) -> Slices:
        """
        Return the lines of one value by hour, by country and by status. Raises InvalidName, InvalidValue. With an
        hour there are no sums by country, and with a country none by hour. For days on which the value was not kept,
        there are no lines: values() tells which counts are exact.
        """
        days, _ = _check_period("hour", first, last)
        return slices_of_value(self.job, dimension, value, days, _wanted(hour, country, status))

    def report(
        self, level: Level = "country", *, first: date, last: date, within: str = "", top: int = 10
    ) -> Report:
        """
        Return the *top* places of a level from *first* to *last*, both included. *within* "US" asks for regions or
        cities of the United States, "US/CA" for cities of California. Lines of which nothing finer is known are a row
        "US". Raises InvalidValue, InvalidName.
        """
        if level not in _LEVELS:
            raise InvalidValue(f"The level is {level!r}; it must be one of {', '.join(_LEVELS)}.")
        asked = _Asked(level, within, *_check_period(level, first, last))
        _check_place(level, within)
        check_int("top", top, 1, MOST_ROWS)
        sums, by_day = self._sum(asked)
        best = heapq.nsmallest(top, sums, key=lambda member: (-sums[member], member))
        return _report(asked, self._read(asked, best), sums, by_day, self._before(asked))

    def _sum(self, asked: _Asked) -> tuple[dict[bytes, int], list[int]]:
        sums, by_day = dict[bytes, int](), []
        for members in scan(self.job, asked.tables(asked.days), asked.within):
            inside = asked.inside(members)
            add_up(sums, inside)
            by_day.append(_total(inside))
        return sums, by_day

    def _read(self, asked: _Asked, members: Sequence[bytes]) -> list[_Counts]:
        """Return the counts of some places on each day, and the sum before."""
        by_day = scores(self.job, asked.tables(asked.days), members)
        days = zip(*by_day, strict=True) if members else ()
        before = [0] * len(members)
        for counts in scores(self.job, asked.tables(asked.days_before), members):
            before = [sum(each) for each in zip(before, counts, strict=True)]
        named = [member.decode(errors="replace") for member in members]
        return [_Counts(*each) for each in zip(named, days, before, strict=True)]

    def _before(self, asked: _Asked) -> int:
        """
        Return the total of the previous days that were counted at this level. All tables of a day are written
        together, so the level above has the sum of this level.
        """
        days = asked.days_before
        if asked.within:
            above = [daily(_LEVELS[asked.within.count("/")], day) for day in days]
            totals = [count for (count,) in scores(self.job, above, [asked.within])]
        else:
            (totals,) = scores(self.job, [DAYS], [day.isoformat() for day in days]) if days else ([],)
        there = present(self.job, asked.tables(days))
        return sum(total for total, is_there in zip(totals, there, strict=True) if is_there)


@dataclass(frozen=True)
class _Asked:
    level: Level
    within: str
    days: tuple[date, ...]
    days_before: tuple[date, ...]

    def tables(self, days: Sequence[date]) -> list[str]:
        return [daily(self.level, day) for day in days]

    def inside(self, members: dict[bytes, int]) -> dict[bytes, int]:
        """Return the members that lie in *within*, out of members whose ids begin with it."""
        if not (place := self.within.encode()):
            return members
        below = place + b"/"
        return {
            member: count for member, count in members.items() if member == place or member.startswith(below)
        }


@dataclass(frozen=True)
class _Counts:
    id: str
    by_day: tuple[int, ...]
    before: int


def _report(
    asked: _Asked, found: Sequence[_Counts], sums: Mapping[bytes, int], by_day: Sequence[int], before: int
) -> Report:
    """Return the report. "Others" is the rest of the totals, or 0 if rows grew after the totals were read."""
    shown = [sum(each) for each in zip(*(each.by_day for each in found), strict=True)] or [0] * len(by_day)
    left = tuple(max(0, total - part) for total, part in zip(by_day, shown, strict=True))
    left_before = max(0, before - sum(each.before for each in found))
    total = sum(left) + sum(shown)

    def figures(
        counts: tuple[int, ...], before: int
    ) -> tuple[int, float, int, float | None, tuple[int, ...]]:
        count = sum(counts)
        return count, count / total if total else 0.0, before, growth(count, before), counts

    return Report(
        level=asked.level,
        within=asked.within,
        first=asked.days[0],
        last=asked.days[-1],
        total=total,
        before=left_before + sum(each.before for each in found),
        rows=tuple(
            Row(each.id, *figures(each.by_day, each.before))
            for each in sorted(found, key=lambda each: (-sum(each.by_day), each.id))
        ),
        others=Others(len(sums) - len(found), *figures(left, left_before)),
        days=asked.days,
        countries={
            each.decode(errors="replace"): lines for each, lines in sums.items() if asked.level == _LEVELS[0]
        },
    )


def _wanted(hour: str, country: str, status: str) -> Wanted:
    return Wanted(check_hour(hour), country, check_status(status))


def _total(members: Mapping[bytes, int]) -> int:
    return sum(members.values())


def _day(name: bytes) -> date | None:
    try:
        return date.fromisoformat(name.decode("ascii"))
    except ValueError:
        return None


def _check_period(level: str, first: date, last: date) -> tuple[tuple[date, ...], tuple[date, ...]]:
    """Return the days of a period, and as many before; in the year 1 there may be fewer. Raises InvalidValue."""
    for each in (first, last):
        if not isinstance(each, date) or isinstance(each, datetime):
            raise InvalidValue(f"A report begins and ends with a date, and {each!r} is not one.")
    if first > last:
        words = gettext("The period from %(first)s to %(last)s ends before it begins.")
        raise InvalidValue(words % {"first": first, "last": last})
    start, end, most = first.toordinal(), last.toordinal() + 1, MOST_DAYS[level]
    if end - start > most:
        words = gettext(
            "The period from %(first)s to %(last)s has %(days)s days; by %(level)s it may have %(most)s."
        )
        about = {"first": first, "last": last, "days": f"{end - start:,}"}
        raise InvalidValue(words % {**about, "level": level, "most": f"{most:,}"})
    days = [date.fromordinal(number) for number in range(max(1, 2 * start - end), end)]
    return tuple(days[start - end :]), tuple(days[: start - end])


def _check_place(level: Level, within: str) -> None:
    if within == "":
        return
    check_name("place", within)
    if within.count("/") >= _LEVELS.index(level):
        words = gettext(
            "%(place)r cannot be divided by %(level)s: regions lie in a country such as 'US', cities also in a "
            "region such as 'US/CA'."
        )
        raise InvalidValue(words % {"place": within, "level": level})
