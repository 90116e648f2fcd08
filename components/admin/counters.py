"""
The Counters page: which there are, charts of a few, the first of a family, and all of it as CSV.

It looks through CounterReader, and nothing can be changed: counters end by themselves. The list costs four round
trips and a chart one or two, however many counters there are; a family costs its size, as the service says. A search
for a part of a name looks at those that were seen last.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern

from components.admin.base import PAGE_SIZE, Page, Paging
from components.admin.names import NamedPages, searched, shortened
from components.admin.spans import Picked
from components.charts import MOST_LINES, Chart, Span
from components.exceptions import InvalidLimit, InvalidName, InvalidPrecision, InvalidRange
from components.services.counters import CounterInfo, CounterReader, Ranked, Series
from components.services.counters.buffers import DROPPED, OUTAGES
from components.services.counters.precisions import plan
from components.services.counters.records import family_of
from components.templatetags.control_room import legible

FAMILIES = 100  # that the first page lists
SEARCHED = 2_000  # counters, those seen last, in which a part of a name is looked for
LISTED = 10_000  # that the pages of a list reach
FIRST = 5  # of a family that its chart shows, if nobody asks for another number

_WRONG = (InvalidLimit, InvalidName, InvalidPrecision, InvalidRange)
_ALL = 1_000_000  # slices: a file has room


@dataclass(frozen=True)
class Row:
    """A counter in a list."""

    name: str
    series: Series
    info: CounterInfo | None = None
    #: In the chart above it.
    is_drawn: bool = False

    @property
    def short_name(self) -> str:
        return shortened(legible(self.name))


class CounterAdmin(NamedPages):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("family/", "family", self.family),
            self.page("chart/", "chart", self.chart),
            self.page("csv/", "csv", self.download),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("chart", counter=name)

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader, texts = CounterReader(), searched(request)
        families = reader.families()
        for text in texts:
            if address := self._find(text, families):
                return HttpResponseRedirect(address)
        text = texts[-1] if texts else ""
        paging = Paging.of(request, total=min(reader.count(), LISTED))
        if text:
            infos = list(islice(_holding(text, reader.page(limit=SEARCHED)), PAGE_SIZE))
        else:
            infos = reader.page(offset=paging.offset, limit=paging.size)
        picked = Picked()
        found = picked.asked().read([info.name for info in infos]) if infos else {}
        context = {
            "text": text,
            "searched": SEARCHED,
            "paging": paging,
            "rows": [Row(info.name, found[info.name], info) for info in infos],
            "span": picked.seconds,
            "families": [] if text or paging.offset else reader.sizes(families[:FAMILIES]).items(),
            "more_families": max(len(families) - FAMILIES, 0),
            "trouble": [] if text else _trouble(reader),
        }
        return self.render(request, "admin/components/counters/list.html", "Counters", context, live=not text)

    def family(self, request: HttpRequest) -> HttpResponse:
        family, picked = request.GET.get("family", ""), Picked.of(request)
        first = request.GET.get("top", "").strip() or str(FIRST)
        context: dict[str, Any] = {"family": family, "first": first, "choices": range(1, MOST_LINES + 1)}
        try:
            context |= self._ranking(request, family, picked.asked(), _number(first))
        except _WRONG as error:
            context["problem"] = str(error)
        return self._answer(request, "family", f"Family {legible(family)}", picked, context)

    def _ranking(self, request: HttpRequest, family: str, span: Span, first: int) -> dict[str, Any]:
        total = min(CounterReader().count(family), LISTED)
        paging = Paging.of(request, total=total)
        ranked = span.top(family, min(paging.offset + PAGE_SIZE, LISTED))
        best, shown = ranked[:first], ranked[paging.offset :]
        names = dict.fromkeys(each.name for each in [*best, *shown])
        found = span.read(list(names)) if names else {}
        drawn = [found[each.name] for each in best]
        return {
            "paging": paging,
            "rows": _rows(shown, found, drawn),
            "chart": Chart(drawn) if drawn else None,
            "csv_query": urlencode([("counter", each.name) for each in best]),
        }

    def chart(self, request: HttpRequest) -> HttpResponse:
        names, picked = _names(request), Picked.of(request)
        context: dict[str, Any] = {"names": names, "most": MOST_LINES}
        try:
            if names:
                _check_number(names)
                context["chart"] = chart = Chart(list(picked.asked().read(names).values()))
                context["is_empty"] = not any(each.count is not None for line in chart.found for each in line)
        except _WRONG as error:
            context["problem"] = str(error)
        context["csv_query"] = urlencode([("counter", name) for name in names])
        context["families"] = list(dict.fromkeys(filter(None, map(family_of, names))))
        return self._answer(request, "chart", _title(names), picked, context)

    def download(self, request: HttpRequest) -> HttpResponse:
        names = _names(request)
        try:
            if not names:
                raise InvalidName("No counter is named; say which, as ?counter=hits.")
            found = Picked.of(request).asked(_ALL).read(names)
        except _WRONG as error:
            return HttpResponse(f"{error}\n", status=400, content_type="text/plain; charset=utf-8")
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{_filename(names)}"'
        table = csv.writer(response)
        table.writerow(["from", *map(_harmless, found)])
        for samples in zip(*found.values(), strict=True):
            at = samples[0].at.astimezone(UTC)
            table.writerow([f"{at:%Y-%m-%dT%H:%M:%SZ}", *(each.count for each in samples)])
        return response

    def _answer(
        self, request: HttpRequest, template: str, title: str, picked: Picked, context: dict[str, Any]
    ) -> Page:
        """A page with a form that picks the time; what cannot be asked is said above it."""
        problem = context.get("problem")
        return self.render(
            request,
            f"admin/components/counters/{template}.html",
            title,
            {**context, "picked": picked, "time_query": picked.query, "link": self.url("chart")},
            live=not problem and not picked.until,
            status=400 if problem else 200,
        )

    def _find(self, text: str, families: Sequence[str]) -> str:
        """Where what is called so is; "" if there is nothing."""
        coarsest = plan().precisions[-1]
        try:
            if CounterReader().read([text], coarsest, fill="skip")[text]:
                return self.find_url(text)
        except InvalidName:  # no counter can be called so
            return ""
        family = text.removesuffix("*").removesuffix(":")
        return self.url("family", family=family) if family in families else ""


def _holding(text: str, infos: Iterable[CounterInfo]) -> Iterable[CounterInfo]:
    return (info for info in infos if text.casefold() in info.name.casefold())


def _rows(ranked: Sequence[Ranked], found: dict[str, Series], drawn: Sequence[Series]) -> list[Row]:
    names = {series.name for series in drawn}
    return [Row(each.name, found[each.name], is_drawn=each.name in names) for each in ranked]


def _trouble(reader: CounterReader) -> list[Series]:
    """What processes could not send, and how often Redis was away for them, lately."""
    found = reader.read([DROPPED, OUTAGES], plan().coarsest, fill="skip").values()
    return [series for series in found if series.total]


def _names(request: HttpRequest) -> list[str]:
    """Those that the address names, and one that was typed in addition, each once."""
    typed = request.GET.get("add", "").strip()
    return list(dict.fromkeys(name for name in [*request.GET.getlist("counter"), typed] if name))


def _check_number(names: Sequence[str]) -> None:
    if len(names) > MOST_LINES:
        raise InvalidLimit(f"These are {len(names):,} counters; a chart has room for {MOST_LINES}.")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_LINES:
        raise InvalidLimit(f"The chart is to show the first {text!r}; it has room for 1 to {MOST_LINES}.")
    return int(text)


def _title(names: Sequence[str]) -> str:
    if not names:
        return "Compare counters"
    return f"Counter {legible(names[0])}" if len(names) == 1 else f"{len(names):,} counters"


def _filename(names: Sequence[str]) -> str:
    return f"counters-{re.sub(r'[^A-Za-z0-9]+', '-', names[0]).strip('-')[:60] or 'of-this-time'}.csv"


def _harmless(name: str) -> str:
    """A spreadsheet calculates what begins so."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name
