"""
The page of hours: lines by hour, by country and by status, in any combination of these, and by path, referring site
or browser.

The URL holds the whole query. By default, the page asks for the newest day that has lines. What was not
counted together is not offered together: see Traffic.values().
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any
from urllib.parse import quote_plus

from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.exceptions import InvalidValue
from components.formatting import legible
from components.services.counters.charts import Bars
from components.services.geo import Level
from components.services.logs.admin.traffic import day_of, label, percent, query_of, width, world_map
from components.services.logs.traffic import DIMENSIONS, HOURS, Slices, Traffic, ValueReport

LISTED = 50  # countries, paths, … of a table
_LEVEL: Level = "country"
_BY = {"path": _("Paths"), "referrer": _("Referring sites"), "agent": _("Browsers and systems")}
_HEADS = {"path": _("Path"), "referrer": _("Referring site"), "agent": _("Browser and system")}
_NONE = {
    "path": _("no path in the line"),
    "referrer": _("no referring site in the line"),
    "agent": _("no browser in the line"),
}
_ONLY = {
    "path": _("Only the path %(value)s"),
    "referrer": _("Only visitors from %(value)s"),
    "agent": _("Only the browser and system %(value)s"),
}


@dataclass(frozen=True)
class Filters:
    """The query of a page, as it was typed."""

    job: str
    first: str = ""
    last: str = ""
    country: str = ""
    hour: str = ""
    status: str = ""
    path: str = ""
    referrer: str = ""
    agent: str = ""
    #: What is listed besides countries and statuses.
    by: str = ""

    @classmethod
    def of(cls, request: HttpRequest, job: str) -> Filters:
        names = ("from", "to", "country", "hour", "status", *DIMENSIONS, "by")
        return cls(job, *(request.GET.get(each, "").strip() for each in names))

    @property
    def query(self) -> str:
        named = {"from": self.first, "to": self.last, **self.asked, **self.values}
        return query_of(self.job, **named, by=self.by)

    @property
    def asked(self) -> dict[str, str]:
        return {"country": self.country, "hour": self.hour, "status": self.status}

    @property
    def values(self) -> dict[str, str]:
        """Return the path, referring site or browser that is asked for, by its dimension."""
        return {each: value for each in DIMENSIONS if (value := getattr(self, each))}

    @property
    def dimension(self) -> str:
        """Return what is listed, the first one by default."""
        return self.by if self.by in DIMENSIONS else DIMENSIONS[0]

    @property
    def lists(self) -> Iterator[tuple[str, Any, str]]:
        """What can be listed, in words, each with its query."""
        return ((each, _BY[each], self.but(by=each)) for each in DIMENSIONS)

    def find(self, first: date, last: date) -> Slices:
        """Return the lines that fit. Raises InvalidValue."""
        if len(self.values) > 1:
            words = gettext("Choose one of path, referring site and browser: they are not counted together.")
            raise InvalidValue(words)
        for dimension, value in self.values.items():
            return Traffic(self.job).value(dimension, value, first, last, **self.asked)
        return Traffic(self.job).slices(first, last, **self.asked)

    def find_values(self, first: date, last: date) -> ValueReport | None:
        """Return what is listed, or None if it was not counted together with what is asked for."""
        if self.values or (self.hour and self.country):
            return None
        return Traffic(self.job).values(self.dimension, first, last, top=LISTED, **self.asked)

    def but(self, **changed: str) -> str:
        """Return the query for another value of some filters."""
        return replace(self, **changed).query

    def with_each(self, name: str) -> Callable[[str], str]:
        """Return a function from a value of the filter *name* to the query, for the many links of a page."""
        # What people type has no bare "&".
        before, found, after = self.but(**{name: "-"}).partition(f"&{name}=")
        return lambda value: f"{before}{found}{quote_plus(value)}{after[1:]}"

    def period(self, latest: date) -> tuple[date, date]:
        """Return the first and the last day: *latest*, if none is given. Raises InvalidValue."""
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
        for dimension, value in self.values.items():
            shown = str(_ONLY[dimension]) % {"value": value_label(dimension, value)}
            yield shown, self.but(**{dimension: ""})


@dataclass(frozen=True)
class Part:
    """A row of a table: a country, a status or a value."""

    id: str
    label: str
    count: int
    share: float
    #: The query that filters by it; "" if it cannot be filtered by.
    query: str
    #: False if there may be more lines.
    is_exact: bool = True

    @property
    def percent(self) -> str:
        return percent(self.share)

    @property
    def bar(self) -> str:
        return width(self.share)


def shown(filters: Filters, found: Slices, listed: ValueReport | None) -> dict[str, Any]:
    """Return what the page shows: chart, map, and tables of countries, statuses and values."""
    countries = _parts(found.by_country, found.total, lambda code: label(code, _LEVEL), filters, "country")
    statuses = _parts(found.by_status, found.total, _status, filters, "status")
    return {
        "filters": filters,
        "found": found,
        "chart": _bars(found) if found.total else None,
        "map": world_map(found.by_country, filters.with_each("country")),
        "countries": countries[:LISTED],
        "others": len(countries) - LISTED,
        "statuses": statuses,
        "has_statuses": any(found.by_status),
        "hours": HOURS,
        "without_time": found.by_hour.get("", 0),
        "offered": _offered(found.by_status, filters.status),
        "listed": listed,
        "values": [*_rows(listed, filters)] if listed else (),
        "caption": gettext("%(what)s, most lines first") % {"what": _BY[filters.dimension]},
        "head": _HEADS[filters.dimension],
        "is_by_day": not found.by_hour,
    }


def _bars(found: Slices) -> Bars:
    name = gettext("Lines")
    if not found.by_hour:  # of a value in a country
        return Bars(found.days, [(name, found.by_day)])
    counts = [found.by_hour.get(hour, 0) for hour in HOURS]
    return Bars([f"{hour}:00" for hour in HOURS], [(name, counts)])


def _parts(counts: Mapping[str, int], total: int, named: Any, filters: Filters, name: str) -> Sequence[Part]:
    best, query = sorted(counts.items(), key=lambda each: (-each[1], each[0])), filters.with_each(name)
    return [
        Part(each, named(each), count, count / total, query(each) if each else "")
        for each, count in best
        if count
    ]


def _rows(listed: ValueReport, filters: Filters) -> Iterator[Part]:
    dimension = filters.dimension
    query = filters.with_each(dimension)
    for row in listed.rows:
        share, name = row.count / listed.total, value_label(dimension, row.value)
        yield Part(row.value, name, row.count, share, query(row.value), row.is_exact)


def value_label(dimension: str, value: str) -> str:
    """Return the name of a path, a referring site or a browser for people."""
    return str(_NONE[dimension]) if value == "-" else legible(value)


def _status(status: str) -> str:
    if not status:
        return gettext("no status in the line")
    return gettext("%(status)s (another)") % {"status": status} if status.endswith("xx") else status


def _offered(by_status: Mapping[str, int], chosen: str) -> Sequence[str]:
    """Return the statuses of the form: those that were found, and their classes."""
    found = {each for each in [*by_status, chosen] if each}
    return sorted(found | {f"{each[0]}xx" for each in found})
