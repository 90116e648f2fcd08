"""
The traffic page of a job: lines by day and by country, region and city, as bars and as a table.

The URL of the page holds the whole query. By default, it asks for the two weeks that end with the last day on which
something was counted, by country. Places link to the places in them. Errors are shown above the form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, get_args
from urllib.parse import unquote, urlencode

from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import Paging
from components.exceptions import InvalidName, InvalidValue
from components.formatting import legible
from components.services.counters.charts import MOST_LAYERS, Bars
from components.services.geo import UNKNOWN, Level, place_name
from components.services.logs.admin.world_map import WorldMap
from components.services.logs.traffic import Others, Report, Row, Traffic

LEVELS: tuple[Level, ...] = get_args(Level)
#: The id of addresses whose place is unknown.
NOWHERE = UNKNOWN.id
LISTED = 1_000  # places that the pages of a table reach
DAYS = 14  # by default
OFFERED = (7, 30, 90)  # days
MOST_CELLS = 300_000  # of a file
LIVELY = 31  # days: a longer report, or one of cities, is not refreshed every few seconds
_LONGEST_NUMBER = 5  # digits

_HEADINGS = {"country": _("Country"), "region": _("Region"), "city": _("City")}
_TABS = {"country": _("By country"), "region": _("By region"), "city": _("By city")}
_UNKNOWN = {"country": _("no country known"), "region": _("no region known"), "city": _("no city known")}
_TITLES = {
    "": _("Traffic"),
    "country": _("Traffic by country"),
    "region": _("Traffic by region"),
    "city": _("Traffic by city"),
}
_TITLES_FROM = {
    "": _("Traffic from %(place)s"),
    "region": _("Traffic from %(place)s by region"),
    "city": _("Traffic from %(place)s by city"),
}

WRONG = (InvalidValue, InvalidName)


@dataclass(frozen=True)
class Asked:
    """The query of a report, as it was typed."""

    job: str
    level: str = LEVELS[0]
    within: str = ""
    days: str = ""
    first: str = ""
    last: str = ""

    @classmethod
    def of(cls, request: HttpRequest, job: str) -> Asked:
        level, *others = (
            request.GET.get(each, "").strip() for each in ("level", "within", "days", "from", "to")
        )
        return cls(job, level or LEVELS[0], *others)

    @property
    def query(self) -> str:
        named = {"level": self.level, "within": self.within, "days": self.days}
        return query_of(self.job, **named, **{"from": self.first, "to": self.last})

    def at(self, level: Level, within: str) -> str:
        """Return the query for another place and the same time."""
        return replace(self, level=level, within=within).query

    def lately(self, days: int) -> str:
        """Return the query for the same place and the last *days* days."""
        return replace(self, days=str(days), first="", last="").query

    def period(self, latest: date) -> tuple[date, date]:
        """Return the first and last day. If no last day is given, they end with *latest*. Raises InvalidValue."""
        first, last = day_of(gettext("From"), self.first), day_of(gettext("To"), self.last)
        if last is None:
            last = max(latest, first) if first and not self.days else latest
        try:
            return first or last - timedelta(days=self._length - 1), last
        except OverflowError:
            about = {"days": f"{self._length:,}", "day": last}
            raise InvalidValue(gettext("There are no %(days)s days before %(day)s.") % about) from None

    @property
    def _length(self) -> int:
        if not self.days:
            return DAYS
        if not (self.days.isascii() and self.days.isdecimal() and len(self.days) <= _LONGEST_NUMBER):
            words = gettext("The days are %(days)r; they must be a whole number from 1 on.")
            raise InvalidValue(words % {"days": self.days})
        return max(1, int(self.days))


@dataclass(frozen=True)
class Place:
    """A row of a report, or all other places, as the table shows it."""

    row: Row | Others
    label: str
    #: The URL of the report on the places in it; "" if there are none.
    query: str = ""

    @property
    def share(self) -> str:
        return percent(self.row.share)

    @property
    def bar(self) -> str:
        return width(self.row.share)

    @property
    def growth(self) -> str:
        return growth(self.row.growth, self.row.count)


def shown(request: HttpRequest, asked: Asked, first: date, last: date) -> dict[str, Any]:
    """Return the context of the page of a report. Raises InvalidValue, InvalidName."""
    paging = Paging.of(request, total=LISTED)
    report = read(asked, first, last, paging.last)
    total = min(len(report.rows) + report.others.places, LISTED)
    if paging.offset >= max(total, 1):
        paging = Paging.of(request, total=total)
        report = read(asked, first, last, paging.last)
    paging = replace(paging, total=total)
    others = report.others.places
    return {
        "report": report,
        "level": report.level,
        "growth": growth(report.growth, report.total),
        "before": _before(report),
        "chart": (chart := _bars(report)),
        "map": world_map(report.countries, lambda code: asked.at(LEVELS[1], code))
        if report.level == LEVELS[0]
        else None,
        "places": [_place(row, report, asked) for row in report.rows[paging.offset : paging.last]],
        "others": Place(report.others, _others(others)) if others and paging.next is None else None,
        "paging": paging,
        "csv_query": asked.query,
        "country": report.within.partition("/")[0],
        "by_day": chart.step == 1,
        "heading": _HEADINGS[report.level],
        "levels": [
            (each, _TABS[each], asked.at(each, report.within)) for each in LEVELS[len(parts(report.within)) :]
        ],
    }


def title_of(level: str, place: str) -> str:
    """Return the title of the page of a report; *level* and *place* may be empty."""
    return str(_TITLES_FROM[level]) % {"place": place} if place else str(_TITLES[level])


def growth(part: float | None, count: int) -> str:
    """Return growth as text: "+50.0 %" for 0.5."""
    if part is None:
        return gettext("new") if count else "\N{EN DASH}"
    return f"{'+' if part > 0 else ''}{percent(part)}"


def percent(part: float) -> str:
    return f"{number_format(round(100 * part, 1), 1)}\N{NO-BREAK SPACE}%"


def width(part: float) -> str:
    """Return the width of a bar in CSS."""
    return f"{100 * part:.2f}%"


def query_of(job: str, **named: str) -> str:
    """Return the query of a page about *job*, with what was asked for."""
    return urlencode({"job": job, **{name: value for name, value in named.items() if value}})


def read(asked: Asked, first: date, last: date, top: int) -> Report:
    level = next((each for each in LEVELS if each == asked.level), None)
    if level is None:
        about = {"level": asked.level, "levels": ", ".join(LEVELS)}
        raise InvalidValue(gettext("The level is %(level)r; it must be one of %(levels)s.") % about)
    return Traffic(asked.job).report(level, first=first, last=last, within=asked.within, top=top)


def _place(row: Row, report: Report, asked: Asked) -> Place:
    level = closer(row.id, report.level)
    name = label(row.id, report.level, report.within)
    return Place(row, name, asked.at(level, row.id) if level else "")


def _bars(report: Report) -> Bars:
    best = report.rows[:MOST_LAYERS]
    shown = [sum(each) for each in zip(*(row.by_day for row in best), strict=True)] or [0] * len(report.days)
    left = [total - part for total, part in zip(report.by_day, shown, strict=True)]
    count = len(report.rows) - len(best) + report.others.places
    named = [(label(row.id, report.level, report.within), row.by_day) for row in best]
    return Bars(report.days, named, (_others(count), left) if any(left) else None)


def world_map(counts: Mapping[str, int], query: Callable[[str], str]) -> WorldMap:
    """Return the map of lines by country, each a link with the *query* of its id."""

    def title(code: str, count: int) -> str:
        shown = ngettext("%(place)s: %(lines)s line", "%(place)s: %(lines)s lines", count)
        return shown % {"place": label(code, LEVELS[0]), "lines": number_format(count, force_grouping=True)}

    return WorldMap.of(counts, title, query)


def _before(report: Report) -> tuple[date, date] | None:
    """Return the period with which the report is compared; None if there is none, before the year 1."""
    start, length = report.first.toordinal(), len(report.days)
    return (date.fromordinal(max(1, start - length)), date.fromordinal(start - 1)) if start > 1 else None


def _others(count: int) -> str:
    words = ngettext("%(count)s other", "%(count)s others", count)
    return words % {"count": number_format(count, force_grouping=True)}


def day_of(what: str, text: str) -> date | None:
    """Return the day; None if the text is empty. Raises InvalidValue."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        words = gettext("%(what)s is %(text)r; it must be a day such as 2026-01-31.")
        raise InvalidValue(words % {"what": what, "text": text}) from None


def parts(place: str) -> list[str]:
    """Return the known parts of an id: country, region, city."""
    return [unquote(part) for part in place.split("/")] if place else []


def label(place: str, level: Level, within: str = "") -> str:
    """Return the name of a place for a list of its level, without the name of *within*, in which it lies."""
    if place == NOWHERE:
        return gettext("unknown")
    name = "" if place == within else full_name(place)
    if within:
        name = name.removesuffix(f", {full_name(within)}")
    if len(parts(place)) > LEVELS.index(level):
        return name
    unknown = str(_UNKNOWN[level])
    return gettext("%(place)s (%(unknown)s)") % {"place": name, "unknown": unknown} if name else unknown


def full_name(place: str) -> str:
    """Return the whole name of a place, the smallest part first: "California, United States", or "CA, US"."""
    name = place_name(place)
    if name == place:  # its country has no name
        name = ", ".join(reversed([part for part in parts(place) if part]))
    return legible(name)


def closer(place: str, level: Level) -> Level | None:
    """Return the level by which a place of *level* can be divided, or None if it cannot."""
    number = LEVELS.index(level)
    if place == NOWHERE or level == LEVELS[-1] or len(parts(place)) <= number:
        return None
    return LEVELS[number + 1]


def around(place: str) -> Sequence[str]:
    """Return the place and those in which it lies, the largest first: "US", "US/CA"."""
    pieces = place.split("/") if place else []
    return ["/".join(pieces[: length + 1]) for length in range(len(pieces))]
