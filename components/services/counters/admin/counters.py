"""
The Counters page: a list of counters, charts of a few, the highest of a family, and all of it as CSV.

Nothing can be changed: counters expire by themselves. The list costs six round trips and a chart one or two, however
many counters there are; the cost of a family grows with its size. A search for a part of a name looks at the counters
that were seen last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import (
    PAGE_SIZE,
    ControlRoomAdmin,
    Page,
    Paging,
    as_csv,
    number_in,
    searched,
)
from components.exceptions import InvalidName, InvalidValue
from components.formatting import legible, shortened
from components.kit.validation import is_name
from components.services.counters import CounterInfo, CounterReader, Series
from components.services.counters.admin import times
from components.services.counters.admin.picking import Choice, Picked
from components.services.counters.buffer import DROPPED, DROPPED_TIME, OUTAGES
from components.services.counters.charts import Span
from components.services.counters.charts.figures import MOST_LINES, charts_of
from components.services.counters.precisions import plan
from components.services.counters.series import family_of

FAMILIES = 100  # entries of the first page
SEARCHED = 2_000  # the most recently seen counters, which are searched for a part of a name
LISTED = 10_000  # entries that the pages of a list reach
MOST_IN_FILE = 100_000  # slices
FIRST = 5  # counters of a family that its chart shows by default

_WRONG = (InvalidValue, InvalidName)


@dataclass(frozen=True)
class Row:
    """A counter in a list."""

    name: str
    series: Series
    info: CounterInfo | None = None

    @property
    def short_name(self) -> str:
        return shortened(legible(self.name))

    @property
    def is_recent(self) -> bool:
        """Return whether anything was counted in the time that is shown."""
        return any(each.count is not None for each in self.series)


class CounterAdmin(ControlRoomAdmin):
    purpose = _("A counter adds up what happens by second, minute, hour and day.")

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("family/", "family", self.family),
            self.page("chart/", "chart", self.chart),
            self.page("csv/", "csv", self.download),
            self.page("times/", "times", self.times),
            self.page("times/one/", "time", self.time),
            self.page("times/csv/", "times_csv", self.download_times),
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
            seen = reader.page(limit=SEARCHED)
            infos = [info for info in seen if text.casefold() in info.name.casefold()][:PAGE_SIZE]
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
            "families_in_all": len(families),
            "trouble": [] if text else _trouble(reader),
            "kinds": [(kind.title, kind.key) for kind in times.KINDS.values()],
            "trouble_span": plan().coarsest * plan().samples,
        }
        return self.render(
            request, "admin/components/counters/list.html", gettext("Counters"), context, live=not text
        )

    def family(self, request: HttpRequest) -> HttpResponse:
        family, picked = request.GET.get("family", ""), Picked.of(request)
        first = request.GET.get("top", "").strip() or str(FIRST)
        context: dict[str, Any] = {"family": family, "first": first, "choices": range(1, MOST_LINES + 1)}
        try:
            context |= self._ranking(request, family, picked.asked(), _number(first))
        except _WRONG as error:
            context["problem"] = str(error)
        title = gettext("Family %(family)s") % {"family": legible(family)}
        return self._answer(request, "family", title, picked, context)

    def _ranking(self, request: HttpRequest, family: str, span: Span, first: int) -> dict[str, Any]:
        paging = Paging.of(request, total=min(CounterReader().count(family), LISTED))
        wanted = min(paging.offset + paging.size, LISTED)
        ranked = [each.name for each in span.top(family, wanted)]
        if len(ranked) < wanted:  # the others counted nothing in this time
            paging = Paging.of(request, total=len(ranked))
        best, shown = ranked[:first], ranked[paging.offset : paging.offset + paging.size]
        found, marks = span.read_marked([*best, *shown]) if shown else ({}, [])
        return {
            "paging": paging,
            "rows": [Row(name, found[name]) for name in shown],
            "charts": charts_of([found[name] for name in best], marks),
            "csv_query": Choice(best, []).query,
        }

    def chart(self, request: HttpRequest) -> HttpResponse:
        choice, picked = Choice.of(request), Picked.of(request)
        context: dict[str, Any] = {"choice": choice, "most": MOST_LINES, "csv_query": choice.query}
        context["theirs"] = list(dict.fromkeys(filter(None, map(family_of, choice.names))))
        try:
            if choice.size:
                context["charts"] = charts_of(*choice.lines(picked.asked(), MOST_LINES))
                context["is_empty"] = all(chart.is_empty for chart in context["charts"])
        except _WRONG as error:
            context["problem"] = str(error)
        return self._answer(request, "chart", choice.title, picked, context)

    def download(self, request: HttpRequest) -> HttpResponse:
        choice, picked = Choice.of(request), Picked.of(request)
        try:
            if not choice.size:
                raise InvalidName(gettext("No counter is named; say which, as ?counter=hits."))
            found, _marks = choice.lines(picked.asked(MOST_IN_FILE), PAGE_SIZE)
        except _WRONG as error:
            return HttpResponse(f"{error}\n", status=400, content_type="text/plain; charset=utf-8")
        heads = (f"{series.name} ({series.unit})" if series.unit else series.name for series in found)
        rows: list[Sequence[object]] = [["from", *heads]]
        for samples in zip(*found, strict=True):
            at = samples[0].at.astimezone(UTC)
            rows.append([f"{at:%Y-%m-%dT%H:%M:%SZ}", *(each.count for each in samples)])
        return as_csv(choice.filename, rows)

    def times(self, request: HttpRequest) -> HttpResponse:
        asked = times.Asked.by(request)
        rows = times.rank(asked)
        context = {
            "asked": asked,
            "rows": [(row, asked.one(row.name)) for row in rows],
            "slowest": times.slowest(asked.kind, rows),
            "failed_head": gettext("Failed") if asked.kind.failed else "",
            "waited_head": gettext("p95 of waiting") if asked.kind.waited else "",
            "most": times.RANKED,
        }
        return self.render(request, "admin/components/counters/times.html", str(asked.kind.title), context)

    def time(self, request: HttpRequest) -> HttpResponse:
        asked = times.Asked.by(request)
        if not is_name(asked.name) or len(asked.name) > times.LONGEST:
            raise Http404(gettext("Nothing is named. Choose something in a list of times."))
        found = times.charts(asked)
        words = (gettext("Median (p50)"), gettext("p95"), gettext("p99"), gettext("Longest"))
        return self.render(
            request,
            "admin/components/counters/one.html",
            legible(asked.name),
            {**found, "asked": asked, "percentiles": zip(words, found["row"].percentiles, strict=True)},
            trail=[(str(asked.kind.title), f"{self.url('times')}?{asked.one()}")],
        )

    def download_times(self, request: HttpRequest) -> HttpResponse:
        asked = times.Asked.by(request)
        return as_csv(f"{asked.kind.key}-by-time.csv", times.as_rows(asked, times.rank(asked)))

    def _answer(
        self, request: HttpRequest, template: str, title: str, picked: Picked, context: dict[str, Any]
    ) -> Page:
        problem = context.get("problem")
        return self.render(
            request,
            f"admin/components/counters/{template}.html",
            title,
            {
                **context,
                "picked": picked,
                "time_query": picked.query,
                "link": self.url("chart"),
                "family_link": self.url("family"),
            },
            live=not problem and not picked.until,
            status=400 if problem else 200,
        )

    def _find(self, text: str, families: Sequence[str]) -> str:
        """Return the address of the counter or family with this name; "" if there is none."""
        coarsest = plan().precisions[-1]
        try:
            if CounterReader().read([text], coarsest, fill="skip")[text]:
                return self.find_url(text)
        except InvalidName:  # not a possible name of a counter
            return ""
        family = text.removesuffix("*").removesuffix(":")
        return self.url("family", family=family) if family in families else ""


def _trouble(reader: CounterReader) -> list[Series]:
    """Return the counters of recently lost counts, and of outages of Redis."""
    found = reader.read([DROPPED, DROPPED_TIME, OUTAGES], plan().coarsest, fill="skip").values()
    return [series for series in found if series.total]


def _number(text: str) -> int:
    found = number_in(text)
    if found is None or not 1 <= found <= MOST_LINES:
        wrong = gettext("The chart is to show the first %(number)r; it has room for 1 to %(most)s.")
        raise InvalidValue(wrong % {"number": text, "most": MOST_LINES})
    return found
