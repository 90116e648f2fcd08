"""Lines by hour, country and status, which are counted together."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from components.exceptions import InvalidValue
from components.kit.translation import gettext

HOURS = tuple(f"{hour:02}" for hour in range(24))
#: Statuses that are told apart: those in use. Others are counted by their first digit. "" for lines without one.
_KNOWN = (*range(100, 104), *range(200, 209), 226, *range(300, 309), *range(400, 432), 444, 451)
_KNOWN += (*range(494, 500), *range(500, 512), *range(520, 528))
STATUSES = ("", *map(str, _KNOWN), *(f"{first}xx" for first in range(1, 6)))
_STATUS = re.compile(r"[1-5]([0-9]{2}|xx)")


@dataclass(frozen=True, slots=True)
class Slices:
    """
    Lines of a period that fit what was asked for. Each breakdown adds up to the total. The key "" of an hour or a
    status has the lines that do not contain it.
    """

    days: tuple[date, ...]
    total: int
    by_day: tuple[int, ...]
    by_hour: Mapping[str, int]
    by_country: Mapping[str, int]
    by_status: Mapping[str, int]
    #: Lines of these days that an earlier release has counted, by day only. They are in none of the sums.
    without_hours: int


class Wanted(NamedTuple):
    """What lines must have; "" is anything. The status may be "4xx"."""

    hour: str = ""
    country: str = ""
    status: str = ""

    @property
    def beginnings(self) -> tuple[str, ...]:
        """With what the parts of members begin."""
        return self.hour, self.country, self.status.removesuffix("xx")


def slices_of(
    days: Sequence[date], tables: Iterable[Mapping[bytes, int]], wanted: Wanted, counted: int | None
) -> Slices:
    """Return the sums of hourly tables. *counted* are all lines of these days; None if the tables have them all."""
    found = _Sums(tables, wanted)
    by_hour, by_country, by_status = found.by_part
    left = 0 if counted is None else max(0, counted - found.every)
    return Slices(tuple(days), found.total, tuple(found.by_table), by_hour, by_country, by_status, left)


def slices_of_sums(
    days: Sequence[date], answered: Iterable[Mapping[bytes, int]], places: Iterable[Mapping[bytes, int]]
) -> Slices:
    """Return the same of all lines, from tables by hour and status, and from tables by country."""
    found, (by_country,) = _Sums(answered, ("", "")), _Sums(places, ("",)).by_part
    by_hour, by_status = found.by_part
    return Slices(tuple(days), found.total, tuple(found.by_table), by_hour, by_country, by_status, 0)


class _Sums:
    """
    The lines of tables by each part of their members; a *wanted* part that is not "" leaves out all other lines. The
    last part is the status. Members with another number of parts are left out.
    """

    def __init__(self, tables: Iterable[Mapping[bytes, int]], wanted: Sequence[str]) -> None:
        #: Lines that fit, of each table, and lines of all tables, whether they fit or not.
        self.by_table, self.every = list[int](), 0
        sums: list[dict[bytes, int]] = [{} for _ in wanted]
        *sought, beginning = (each.removesuffix("xx").encode() for each in wanted)
        checks = [(number, each) for number, each in enumerate(sought) if each]
        for members in tables:
            total = 0
            for member, lines in members.items():
                parts = member.split(b"/")
                if len(parts) != len(sums):
                    continue
                self.every += lines
                if not parts[-1].startswith(beginning) or any(parts[at] != each for at, each in checks):
                    continue
                total += lines
                for by, part in zip(sums, parts):  # noqa: B905  (this runs for each member)
                    by[part] = by.get(part, 0) + lines
            self.by_table.append(total)
        self.total = sum(self.by_table)
        self.by_part = [_named(each) for each in sums]


def check_hour(hour: str) -> str:
    """Return the hour, from "00" to "23", or "" for all. Raises InvalidValue."""
    if hour and hour not in HOURS:
        words = gettext("The hour is %(hour)r; it must be two digits from 00 to 23.")
        raise InvalidValue(words % {"hour": hour})
    return hour


def check_status(status: str) -> str:
    """Return the status, such as "404" or "4xx", or "" for all. Raises InvalidValue."""
    if status and not _STATUS.fullmatch(status):
        words = gettext("The status is %(status)r; it must be a number such as 404, or 4xx.")
        raise InvalidValue(words % {"status": status})
    return status


def _named(sums: Mapping[bytes, int]) -> dict[str, int]:
    return {name.decode(errors="replace"): lines for name, lines in sums.items()}
