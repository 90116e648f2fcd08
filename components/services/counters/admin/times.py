"""
The pages of times: where tasks, views and locks spend their time, and the charts of one of them.

A ranking costs five round trips to Redis, however many tasks there are: the hundred that took the most time in all,
and of these the histograms and failures. It is ordered by any column, and shared by its address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from components.formatting import legible
from components.services.counters import CounterReader, Histogram, Series
from components.services.counters.charts import Chart, Span
from components.services.counters.charts.figures import counted_line, percentile_chart
from components.services.counters.charts.scales import about, spent

LONGEST = 480  # characters of a name, behind the name of a family
RANKED = 100  # tasks that took the most time in all, which are put into the chosen order
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400  # seconds
PERIODS = {_HOUR: _("last hour"), _DAY: _("last day"), 7 * _DAY: _("last week")}


@dataclass(frozen=True)
class Kind:
    """What has times: the families of its counters, and its words."""

    key: str
    title: str | Promise
    one: str | Promise
    #: What is counted, above the column and in a chart.
    counted: str | Promise
    #: The families of the times, of failures and of waiting; "" for none.
    took: str
    failed: str = ""
    waited: str = ""
    #: What is said of the slowest.
    slowest: str = ""
    nothing: str | Promise = ""


KINDS = {
    each.key: each
    for each in (
        Kind(
            "tasks",
            _("Tasks by time"),
            _("Task"),
            _("Runs"),
            took="runs-us",
            failed="runs-dead",
            waited="runs-waited-us",
            slowest=gettext_noop("The slowest task is %(name)s: 95%% of its runs took %(time)s or less."),
            nothing=_("No task has run in this time, or workers do not count."),
        ),
        Kind(
            "views",
            _("Views by time"),
            _("View"),
            _("Requests"),
            took="requests-us",
            failed="requests-5xx",
            slowest=gettext_noop("The slowest view is %(name)s: 95%% of its requests took %(time)s or less."),
            nothing=_("No view was requested in this time, or requests are not counted."),
        ),
        Kind(
            "locks",
            _("Locks by time"),
            _("Lock"),
            _("Times held"),
            took="locks-held-us",
            waited="locks-waited-us",
            slowest=gettext_noop(
                "The lock that is held longest is %(name)s: 95%% of the times for %(time)s or less."
            ),
            nothing=_("No lock was held in this time, or services do not count."),
        ),
    )
}


@dataclass(frozen=True)
class Row:
    """A task, a view or a lock, and its times in microseconds."""

    name: str
    times: Histogram
    waits: Histogram
    failed: int
    minutes: float

    @property
    def count(self) -> int:
        return self.times.count

    @property
    def a_minute(self) -> float:
        """How often in a minute, with three digits at most."""
        return float(f"{self.count / self.minutes:.2g}") if self.minutes else 0.0

    @property
    def total(self) -> str:
        return spent(self.times.total)

    @property
    def mean(self) -> str:
        return spent(round(self.times.mean))

    @property
    def percentiles(self) -> list[str]:
        return [about(self.times.percentile(each)) for each in (50, 95, 99, 100)]

    @property
    def waited(self) -> str:
        return about(self.waits.percentile(95))


#: The orders of a ranking, the largest first.
ORDERS: dict[str, tuple[str | Promise, Callable[[Row], float]]] = {
    "total": (_("Total time"), lambda row: row.times.total),
    "count": (_("Count"), lambda row: row.count),
    "failed": (_("Failed"), lambda row: row.failed),
    "mean": (_("Mean"), lambda row: row.times.mean),
    "p50": (_("Median (p50)"), lambda row: row.times.percentile(50)),
    "p95": (_("p95"), lambda row: row.times.percentile(95)),
    "p99": (_("p99"), lambda row: row.times.percentile(99)),
    "longest": (_("Longest"), lambda row: row.times.percentile(100)),
    "waited": (_("p95 of waiting"), lambda row: row.waits.percentile(95)),
}


@dataclass(frozen=True)
class Asked:
    """What the address of a page of times asks for."""

    kind: Kind
    seconds: int = _HOUR
    order: str = "total"
    name: str = ""

    @classmethod
    def by(cls, request: HttpRequest) -> Asked:
        """Return what was asked for; the default for what is not offered. Raises Http404 for an unknown kind."""
        given = request.GET
        kind = KINDS.get(given.get("of") or "tasks")
        if kind is None:
            raise Http404(gettext("There are times of tasks, of views and of locks."))
        span, order = given.get("span", ""), given.get("order", "")
        known = next((each for each in PERIODS if str(each) == span), _HOUR)
        return cls(kind, known, order if order in ORDERS else "total", given.get("name", ""))

    @property
    def query(self) -> str:
        named = {"of": self.kind.key, "span": self.seconds, "order": self.order, "name": self.name}
        return urlencode({name: value for name, value in named.items() if value})

    @property
    def kinds(self) -> list[tuple[Kind, str, bool]]:
        """The kinds, the query of each, and whether it is this one."""
        return [(each, replace(self, kind=each, name="").query, each is self.kind) for each in KINDS.values()]

    @property
    def periods(self) -> list[tuple[str | Promise, str, bool]]:
        """The periods, the query of each, and whether it is this one."""
        return [
            (words, replace(self, seconds=each).query, each == self.seconds)
            for each, words in PERIODS.items()
        ]

    @property
    def orders(self) -> list[tuple[str, str | Promise, bool]]:
        """The orders that there are of this kind, their words, and whether it is this one."""
        missing = {"failed": not self.kind.failed, "waited": not self.kind.waited}
        return [
            (key, words, key == self.order)
            for key, (words, _value) in ORDERS.items()
            if not missing.get(key, False)
        ]

    def one(self, name: str = "") -> str:
        """Return the query of the page of one of them; without a name, of the ranking."""
        return replace(self, name=name).query


def rank(asked: Asked) -> list[Row]:
    """Return the tasks, views or locks that took the most time, in the chosen order. Raises RedisUnavailable."""
    kind, reader = asked.kind, CounterReader()
    precision, between = Span(asked.seconds).asked()
    ranked = reader.top(kind.took, RANKED, precision=precision, **between)
    names = [each.name.partition(":")[2] for each in ranked]
    if not names:
        return []
    wanted = [f"{family}:{each}" for family in (kind.took, kind.waited) if family for each in names]
    times = reader.histograms(wanted, precision, **between)
    failed: Mapping[str, Series] = {}
    if kind.failed:
        failed = reader.read([f"{kind.failed}:{each}" for each in names], precision, **between)
    rows = [
        Row(
            each,
            times[f"{kind.took}:{each}"],
            times.get(f"{kind.waited}:{each}", Histogram()),
            failed[f"{kind.failed}:{each}"].total if kind.failed else 0,
            asked.seconds / _MINUTE,
        )
        for each in names
    ]
    _words, value = ORDERS[asked.order]
    return sorted((row for row in rows if row.count), key=lambda row: (-value(row), row.name))


def slowest(kind: Kind, rows: Sequence[Row]) -> str:
    """Say which is the slowest, by its p95; "" of none."""
    if not rows:
        return ""
    row = max(rows, key=lambda row: row.times.percentile(95))
    words = {"name": legible(row.name), "time": about(row.times.percentile(95))}
    return gettext(kind.slowest) % words


def charts(asked: Asked) -> dict[str, Any]:
    """Return the charts of one of them, and its row. Raises RedisUnavailable."""
    kind, reader = asked.kind, CounterReader()
    precision, between = Span(asked.seconds).asked()
    took, waited = f"{kind.took}:{asked.name}", f"{kind.waited}:{asked.name}"
    failed = f"{kind.failed}:{asked.name}"
    found, marks = reader.read_marked([took, failed if kind.failed else took], precision, **between)
    like = found[took]
    slices = reader.histogram_slices([took, waited] if kind.waited else [took], precision, **between)
    counts = {each.at: each.histogram.count for each in slices[took] if each.histogram.count}
    events = [counted_line(str(kind.counted), like, counts)]
    if kind.failed:
        events.append(counted_line(gettext("Failed"), like, {each.at: each.count for each in found[failed]}))
    drawn = [
        percentile_chart(gettext("How long it took"), like, slices[took], marks),
        Chart(events, str(kind.counted), marks),
    ]
    if kind.waited:
        drawn.append(percentile_chart(gettext("How long it waited"), like, slices[waited], marks))
    merged = sum((each.histogram for each in slices[took]), Histogram())
    waits = sum((each.histogram for each in slices.get(waited, ())), Histogram())
    failures = found[failed].total if kind.failed else 0
    return {"charts": drawn, "row": Row(asked.name, merged, waits, failures, asked.seconds / _MINUTE)}


def as_rows(asked: Asked, rows: Sequence[Row]) -> list[Sequence[object]]:
    """Return the ranking as a table with its heads, times in microseconds."""
    percents = (50, 95, 99, 100)
    heads = ["name", "count", "failed", "total (us)", "mean (us)", *(f"p{each} (us)" for each in percents)]
    found: list[Sequence[object]] = [[*heads, "waited p95 (us)"]]
    for row in rows:
        failed = row.failed if asked.kind.failed else ""
        waited = round(row.waits.percentile(95)) if asked.kind.waited else ""
        times = [round(row.times.percentile(each)) for each in percents]
        found.append([row.name, row.count, failed, row.times.total, round(row.times.mean), *times, waited])
    return found
