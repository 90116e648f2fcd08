"""
Reports of paths, referrers and agents, from tables that keep a limited number of values.

What a table has of a value is all of its lines; the lines of all values that it does not have are under the value "".
So the count of a value is exact unless it is missing in a table that has such lines: then it is the least that it can
be. Each value was counted by status with its hour, and by status with its country, but not with both.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from components.exceptions import InvalidName, InvalidValue
from components.kit.translation import gettext
from components.services.logs.traffic.slices import HOURS, STATUSES, Slices, Wanted
from components.services.logs.traffic.tables import (
    ALL,
    DIMENSIONS,
    OUTCOMES,
    add_up,
    at_country,
    daily,
    read,
    scan,
    scores,
    slice_of,
    valued,
)

_OTHERS = b""


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A path, a host of referrers, or a browser with its system; "-" are lines without one."""

    value: str
    count: int
    #: False if it may have more lines, which are among the others.
    is_exact: bool


@dataclass(frozen=True, slots=True)
class ValueReport:
    """Lines by value. Rows, *rest* and *others* add up to the total."""

    total: int
    #: Values with most lines first.
    rows: tuple[ValueRow, ...]
    #: Values that are in no row, and their lines.
    more: int
    rest: int
    #: Lines of values that were not kept, since there were too many.
    others: int
    #: Lines of these days that were not counted by this dimension. They are in none of the sums.
    without: int


def values_of_days(
    job: str, dimension: str, days: Sequence[date], wanted: Wanted, counted: int, top: int
) -> ValueReport:
    """Return the *top* values of these days. *counted* are all lines of them. Raises InvalidName, InvalidValue."""
    where = _where(dimension, wanted)
    tables = [valued(dimension, each, day.isoformat()) for day in days for each in OUTCOMES]
    kept = list(scan(job, tables))
    every = sum(sum(members.values()) for members in kept)
    if not any(wanted):
        return _report(kept, kept, max(0, counted - every), top)
    found = scan(job, [slice_of(table, where) for table in tables], wanted.status.removesuffix("xx"))
    return _report([_by_value(members) for members in found], kept, max(0, counted - every), top)


def slices_of_value(job: str, dimension: str, value: str, days: Sequence[date], wanted: Wanted) -> Slices:
    """
    Return the lines of a value that fit. With an hour there are none by country, and with a country none by hour.
    """
    (hour, country, status), where = wanted, _where(dimension, wanted)
    by_day, by_hour, by_country, by_status = [], dict[str, int](), dict[str, int](), dict[str, int]()
    statuses = [each for each in STATUSES if each.startswith(status.removesuffix("xx"))]
    places = read(job, [daily("country", day) for day in days])
    for day, countries in zip(days, places, strict=True):
        before = sum(by_status.values())
        for table in (valued(dimension, each, day.isoformat()) for each in OUTCOMES):
            (lines,) = scores(job, [slice_of(table, where)], [f"{each}/{value}" for each in statuses])
            there = {each: count for each, count in zip(statuses, lines, strict=True) if count}
            add_up(by_status, there)
            members = [f"{each}/{value}" for each in there]
            if members and not country:
                hours = [hour] if hour else HOURS
                add_up(by_hour, _sums(job, table, {each: each for each in hours}, members))
            if members and not hour:
                names = [country] if country else [each.decode(errors="replace") for each in countries]
                add_up(by_country, _sums(job, table, {each: at_country(each) for each in names}, members))
        by_day.append(sum(by_status.values()) - before)
    return Slices(tuple(days), sum(by_day), tuple(by_day), by_hour, by_country, by_status, 0)


def _sums(job: str, table: str, slices: Mapping[str, str], members: Sequence[str]) -> dict[str, int]:
    found = scores(job, [slice_of(table, each) for each in slices.values()], members)
    return {name: count for name, counts in zip(slices, found, strict=True) if (count := sum(counts))}


def _by_value(members: Mapping[bytes, int]) -> dict[bytes, int]:
    sums = dict[bytes, int]()
    for member, lines in members.items():
        value = member.partition(b"/")[2]
        sums[value] = sums.get(value, 0) + lines
    return sums


def _report(
    found: Iterable[Mapping[bytes, int]], kept: Sequence[Mapping[bytes, int]], without: int, top: int
) -> ValueReport:
    sums, unsure = dict[bytes, int](), []
    for members, known in zip(found, kept, strict=True):
        add_up(sums, members)
        if members.get(_OTHERS):
            unsure.append(known)
    others, total = sums.pop(_OTHERS, 0), sum(sums.values())
    order = sorted((value for value in sums if sums[value]), key=lambda value: (-sums[value], value))
    rows = tuple(
        ValueRow(value.decode(errors="replace"), sums[value], all(value in each for each in unsure))
        for value in order[:top]
    )
    rest = total - sum(row.count for row in rows)
    return ValueReport(total + others, rows, len(order) - len(rows), rest, others, without)


def _where(dimension: str, wanted: Wanted) -> str:
    """Return the slice that has what is wanted. Raises InvalidName, InvalidValue."""
    if dimension not in DIMENSIONS:
        raise InvalidName(f"Lines are not counted by {dimension!r}, but by: {', '.join(DIMENSIONS)}.")
    if wanted.hour and wanted.country:
        words = gettext(
            "Paths, referrers and browsers are counted by hour and by country, but not by both together. Leave out "
            "the hour or the country."
        )
        raise InvalidValue(words)
    return wanted.hour or (at_country(wanted.country) if wanted.country else ALL)
