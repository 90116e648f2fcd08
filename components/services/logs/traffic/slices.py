"""Lines by hour, country and status, which are counted together, and those of the last minutes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.utils.translation import gettext

from components.exceptions import InvalidRange

HOURS = tuple(f"{hour:02}" for hour in range(24))
_STATUS = re.compile(r"[1-5]([0-9]{2}|xx)")


@dataclass(frozen=True, slots=True)
class Slices:
    """
    Lines of a period that fit what was asked for. Each breakdown adds up to the total.

    The key "" of an hour or a status has the lines that do not contain it.
    """

    days: tuple[date, ...]
    total: int
    by_day: tuple[int, ...]
    by_hour: Mapping[str, int]
    by_country: Mapping[str, int]
    by_status: Mapping[str, int]
    #: Lines of these days that an earlier release has counted, by day only. They are in none of the sums.
    without_hours: int


@dataclass(frozen=True, slots=True)
class Live:
    """Lines that were counted in the last minutes. Each breakdown adds up to the total."""

    #: When each minute began; the last one is not over.
    minutes: tuple[datetime, ...]
    total: int
    by_minute: tuple[int, ...]
    by_country: Mapping[str, int]
    by_status: Mapping[str, int]


def slices_of(
    days: Sequence[date],
    tables: Iterable[Mapping[bytes, int]],
    country: str,
    hour: str,
    status: str,
    counted: int,
) -> Slices:
    """Return the sums of hourly tables. *counted* are all lines of these days."""
    by_day, at_hour, here, answered = [], Counter[bytes](), Counter[bytes](), Counter[bytes]()
    wanted_hour, wanted_country, wanted = hour.encode(), country.encode(), status.removesuffix("xx").encode()
    for members in tables:
        before = at_hour.total()
        for (at, place, answer), lines in _parts(members, 3):
            counted -= lines
            if wanted_hour in (b"", at) and wanted_country in (b"", place) and answer.startswith(wanted):
                at_hour[at] += lines
                here[place] += lines
                answered[answer] += lines
        by_day.append(at_hour.total() - before)
    return Slices(
        tuple(days),
        sum(by_day),
        tuple(by_day),
        _named(at_hour),
        _named(here),
        _named(answered),
        max(0, counted),
    )


def live_of(
    minutes: Sequence[datetime], tables: Iterable[Mapping[bytes, int]], country: str, status: str
) -> Live:
    """Return the sums of tables of minutes."""
    by_minute, here, answered = [], Counter[bytes](), Counter[bytes]()
    wanted_country, wanted = country.encode(), status.removesuffix("xx").encode()
    for members in tables:
        before = here.total()
        for (place, answer), lines in _parts(members, 2):
            if wanted_country in (b"", place) and answer.startswith(wanted):
                here[place] += lines
                answered[answer] += lines
        by_minute.append(here.total() - before)
    return Live(tuple(minutes), sum(by_minute), tuple(by_minute), _named(here), _named(answered))


def check_hour(hour: str) -> str:
    """Return the hour, from "00" to "23", or "" for all. Raises InvalidRange."""
    if hour and hour not in HOURS:
        words = gettext("The hour is %(hour)r; it must be two digits from 00 to 23.")
        raise InvalidRange(words % {"hour": hour})
    return hour


def check_status(status: str) -> str:
    """Return the status, such as "404" or "4xx", or "" for all. Raises InvalidRange."""
    if status and not _STATUS.fullmatch(status):
        words = gettext("The status is %(status)r; it must be a number such as 404, or 4xx.")
        raise InvalidRange(words % {"status": status})
    return status


def _parts(members: Mapping[bytes, int], count: int) -> Iterator[tuple[list[bytes], int]]:
    """Yield the parts of members, and their counts. Members of another form are left out."""
    for member, lines in members.items():
        parts = member.split(b"/")
        if len(parts) == count:
            yield parts, lines


def _named(sums: Mapping[bytes, int]) -> dict[str, int]:
    return {name.decode(errors="replace"): lines for name, lines in sums.items()}
