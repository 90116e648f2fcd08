"""
The pages of hours and of the last minutes: lines by time, by country and by status, in any combination of these.

The URL holds the whole query. By default, the page of hours asks for the newest day that has lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext

from components.services.counters.charts import Bars
from components.services.geo import Level
from components.services.logs.admin.traffic import day_of, label
from components.services.logs.admin.world_map import WorldMap
from components.services.logs.traffic import HOURS, Live, Slices

MINUTES = 30
LISTED = 50  # countries of a table
_LEVEL: Level = "country"


@dataclass(frozen=True)
class Filters:
    """The query of a page, as it was typed."""

    job: str
    first: str = ""
    last: str = ""
    country: str = ""
    hour: str = ""
    status: str = ""

    @classmethod
    def of(cls, request: HttpRequest, job: str) -> Filters:
        names = ("from", "to", "country", "hour", "status")
        return cls(job, *(request.GET.get(each, "").strip() for each in names))

    @property
    def query(self) -> str:
        named = {"from": self.first, "to": self.last, "country": self.country}
        named |= {"hour": self.hour, "status": self.status}
        return urlencode({"job": self.job, **{name: value for name, value in named.items() if value}})

    def but(self, **changed: str) -> str:
        """Return the query for another value of some filters."""
        return replace(self, **changed).query

    def period(self, latest: date) -> tuple[date, date]:
        """Return the first and the last day: *latest*, if none is given. Raises InvalidRange."""
        first, last = day_of(gettext("From"), self.first), day_of(gettext("To"), self.last)
        return first or last or latest, last or first or latest

    @property
    def in_force(self) -> Iterator[tuple[str, str]]:
        """What is filtered by, in words, each with the query without it."""
        if self.country:
            place = label(self.country, _LEVEL)
            yield gettext("Only %(place)s") % {"place": place}, self.but(country="")
        if self.hour:
            yield gettext("Only from %(hour)s:00 to %(hour)s:59") % {"hour": self.hour}, self.but(hour="")
        if self.status:
            yield gettext("Only status %(status)s") % {"status": self.status}, self.but(status="")


@dataclass(frozen=True)
class Part:
    """A row of a table: a country or a status."""

    id: str
    label: str
    count: int
    share: float
    #: The query that filters by it; "" if it cannot be filtered by.
    query: str

    @property
    def percent(self) -> str:
        return f"{number_format(round(100 * self.share, 1), 1)}\N{NO-BREAK SPACE}%"

    @property
    def bar(self) -> str:
        return f"{100 * self.share:.2f}%"


def shown(filters: Filters, found: Slices | Live) -> dict[str, Any]:
    """Return what both pages show: chart, map, and tables of countries and statuses."""
    countries = _parts(found.by_country, found.total, lambda each: label(each, _LEVEL), filters, "country")
    statuses = _parts(found.by_status, found.total, _status, filters, "status")
    return {
        "filters": filters,
        "found": found,
        "chart": _bars(found) if found.total else None,
        "map": WorldMap.of(found.by_country, _title, lambda code: filters.but(country=code)),
        "countries": countries[:LISTED],
        "others": len(countries) - LISTED,
        "statuses": statuses,
        "has_statuses": any(found.by_status),
        "hours": HOURS,
        "without_time": found.by_hour.get("", 0) if isinstance(found, Slices) else 0,
        "offered": _offered(found.by_status, filters.status),
    }


def _bars(found: Slices | Live) -> Bars:
    name = gettext("Lines")
    if isinstance(found, Live):
        return Bars([f"{localtime(each):%H:%M}" for each in found.minutes], [(name, found.by_minute)])
    counts = [found.by_hour.get(hour, 0) for hour in HOURS]
    return Bars([f"{hour}:00" for hour in HOURS], [(name, counts)])


def _parts(counts: Mapping[str, int], total: int, named: Any, filters: Filters, name: str) -> Sequence[Part]:
    best = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [
        Part(each, named(each), count, count / total, filters.but(**{name: each}) if each else "")
        for each, count in best
        if count
    ]


def _status(status: str) -> str:
    if not status:
        return gettext("no status in the line")
    return gettext("%(status)s (another)") % {"status": status} if status.endswith("xx") else status


def _offered(by_status: Mapping[str, int], chosen: str) -> Sequence[str]:
    """Return the statuses of the form: those that were found, and their classes."""
    found = {each for each in [*by_status, chosen] if each}
    return sorted(found | {f"{each[0]}xx" for each in found})


def _title(code: str, count: int) -> str:
    lines = number_format(count, force_grouping=True)
    words = ngettext("%(place)s: %(lines)s line", "%(place)s: %(lines)s lines", count)
    return words % {"place": label(code, _LEVEL), "lines": lines}
