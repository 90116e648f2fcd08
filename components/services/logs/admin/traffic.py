"""
The traffic of a job: lines of days by country, region and city, as bars, as a table and as CSV.

All of what is asked for is in the address. Without it, it is the last two weeks that end with the last day on which
something was counted, by country; a place leads to what lies in it. What cannot be asked is said above the form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.formats import number_format

from components.control_room.base import Page, Paging, Trail
from components.control_room.files import as_csv
from components.control_room.names import NamedPages
from components.exceptions import InvalidLevel, InvalidLimit, InvalidName, InvalidRange
from components.services.counters.charts import MOST_LAYERS, Bars
from components.services.geo import Level
from components.services.logs.admin.log_jobs import Job
from components.services.logs.admin.places import LEVELS, around, closer, full_name, label, parts
from components.services.logs.traffic import MOST_ROWS, NAMES, Others, Report, Row, Traffic, sheet

LISTED = 1_000  # places that the pages of a table reach
DAYS = 14  # if nobody asks for others
OFFERED = (7, 30, 90)  # days
_MOST_CELLS = 300_000  # of a file
_LIVELY = 31  # days: a longer report, or one of cities, is not made anew every few seconds
_LONGEST_NUMBER = 5  # digits

_WRONG = (InvalidLevel, InvalidLimit, InvalidName, InvalidRange)


@dataclass(frozen=True)
class Asked:
    """What the address of a report says, as it was typed."""

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
        named |= {"from": self.first, "to": self.last}
        return urlencode({"job": self.job, **{name: value for name, value in named.items() if value}})

    def at(self, level: Level, within: str) -> str:
        """The query of another place, for the same time."""
        return replace(self, level=level, within=within).query

    def lately(self, days: int) -> str:
        """The query of the same place, for the last so many days."""
        return replace(self, days=str(days), first="", last="").query

    def period(self, latest: date) -> tuple[date, date]:
        """First and last day; without any the last ones that end with *latest*. Raises InvalidRange."""
        first, last = _day("From", self.first), _day("To", self.last)
        if last is None:
            last = max(latest, first) if first and not self.days else latest
        try:
            return first or last - timedelta(days=self._length - 1), last
        except OverflowError:
            raise InvalidRange(f"There are no {self._length:,} days before {last}.") from None

    @property
    def _length(self) -> int:
        if not self.days:
            return DAYS
        if not (self.days.isascii() and self.days.isdecimal() and len(self.days) <= _LONGEST_NUMBER):
            raise InvalidRange(f"The days are {self.days!r}; they must be a whole number from 1 on.")
        return max(1, int(self.days))


@dataclass(frozen=True)
class Place:
    """A row of a report, or all others, as the table shows it."""

    row: Row | Others
    label: str
    #: Where one can look closer; "" if one cannot.
    query: str = ""

    @property
    def share(self) -> str:
        return _percent(self.row.share)

    @property
    def bar(self) -> str:
        return f"{100 * self.row.share:.2f}%"

    @property
    def growth(self) -> str:
        return growth(self.row.growth, self.row.count)


class TrafficPages(NamedPages):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("traffic/", "traffic", self.traffic),
            self.page("csv/", "csv", self.download),
            *super().get_urls(),
        ]

    def traffic(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        asked, days = Asked.of(request, job.id), Traffic(job.id).days()
        offered = [(each, asked.lately(each)) for each in OFFERED]
        context: dict[str, Any] = {"job": job, "asked": asked, "offered": offered}
        if not days:
            return self._answer(request, asked, {**context, "is_new": True})
        context |= {"earliest": days[0].day, "latest": days[-1].day}
        try:
            first, last = asked.period(days[-1].day)
            context |= {"first": first, "last": last}
            context |= self._report(request, asked, first, last)
        except _WRONG as error:
            context["problem"] = str(error)
        return self._answer(request, asked, context)

    def download(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        asked, days = Asked.of(request, job.id), Traffic(job.id).days()
        try:
            if not days:
                raise InvalidRange("Nothing was counted yet.")
            first, last = asked.period(days[-1].day)
            top = max(1, min(MOST_ROWS, _MOST_CELLS // (abs((last - first).days) + 1)))
            report = _read(asked, first, last, top)
        except _WRONG as error:
            return HttpResponse(f"{error}\n", status=400, content_type="text/plain; charset=utf-8")
        named = "-".join([job.id, *parts(report.within), report.level])
        slug = re.sub(r"[^A-Za-z0-9]+", "-", named).strip("-")[:80]
        return as_csv(f"traffic-{slug}-{first}-{last}.csv", sheet(report), names=NAMES)

    def _report(self, request: HttpRequest, asked: Asked, first: date, last: date) -> dict[str, Any]:
        paging = Paging.of(request, total=LISTED)
        report = _read(asked, first, last, paging.last)
        total = min(len(report.rows) + report.others.places, LISTED)
        if paging.offset >= max(total, 1):
            paging = Paging.of(request, total=total)
            report = _read(asked, first, last, paging.last)
        paging = replace(paging, total=total)
        others = report.others.places
        return {
            "report": report,
            "level": report.level,
            "growth": growth(report.growth, report.total),
            "before": _before(report),
            "chart": _bars(report),
            "places": [_place(row, report, asked) for row in report.rows[paging.offset : paging.last]],
            "others": Place(report.others, _others(others)) if others and paging.next is None else None,
            "paging": paging,
            "csv_query": asked.query,
            "levels": [(each, asked.at(each, report.within)) for each in LEVELS[len(parts(report.within)) :]],
        }

    def _answer(self, request: HttpRequest, asked: Asked, context: dict[str, Any]) -> Page:
        """A page with a form that picks the time; what cannot be asked is said above it."""
        problem, report = context.get("problem"), context.get("report")
        where = f" from {full_name(asked.within)}" if asked.within else ""
        is_lively = report is None or (len(report.days) <= _LIVELY and report.level != LEVELS[-1])
        return self.render(
            request,
            "admin/components/logs/traffic.html",
            f"Traffic{where}{f' by {report.level}' if report else ''}",
            context,
            trail=self._trail_of(context["job"], asked),
            live=not problem and is_lively,
            status=400 if problem else 200,
        )

    def _trail_of(self, job: Job, asked: Asked) -> Trail:
        page = self.url("traffic")
        trail = [(f"Job {job.name}", self.find_url(job.id))]
        if not asked.within:
            return trail
        trail.append(("Traffic", f"{page}?{asked.at(LEVELS[0], '')}"))
        for number, place in enumerate(around(asked.within)[:-1][: len(LEVELS) - 1], 1):
            trail.append((full_name(place), f"{page}?{asked.at(LEVELS[number], place)}"))
        return trail


def growth(part: float | None, count: int) -> str:
    """0.5 as "+50.0 %"."""
    if part is None:
        return "new" if count else "\N{EN DASH}"
    return f"{'+' if part > 0 else ''}{_percent(part)}"


def _percent(part: float) -> str:
    return f"{number_format(round(100 * part, 1), 1)}\N{NO-BREAK SPACE}%"


def _read(asked: Asked, first: date, last: date, top: int) -> Report:
    level = next((each for each in LEVELS if each == asked.level), None)
    if level is None:
        raise InvalidLevel(f"The level is {asked.level!r}; it must be one of {', '.join(LEVELS)}.")
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


def _before(report: Report) -> tuple[date, date] | None:
    """The period against which growth is; there was none before the year 1."""
    start, length = report.first.toordinal(), len(report.days)
    return (date.fromordinal(max(1, start - length)), date.fromordinal(start - 1)) if start > 1 else None


def _others(count: int) -> str:
    return f"{number_format(count, force_grouping=True)} other{'' if count == 1 else 's'}"


def _day(what: str, text: str) -> date | None:
    """Raises InvalidRange."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidRange(f"{what} is {text!r}; it must be a day, as 2026-01-31.") from None
