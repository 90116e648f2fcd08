"""
The Cached rows page: the scheduled rows, when each is due and how late it is, its age and size, and the rows that
fail.

A page of the list costs eight round trips, however many rows there are. A list of one model's rows, or of those that
fail, searches for them and says where it ends. Values are not shown, because people who look after a cache need not
see its content. The actions are in row_verbs.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.conf import conf
from components.control_room.pages import ControlRoomAdmin, Paging, searched
from components.exceptions import InvalidName
from components.formatting import legible, shortened
from components.services.counters import beside
from components.services.counters.charts import Span
from components.services.rows import LEASE, REACH, CacheInfo, Listed, RowInfo, RowReader, member
from components.services.rows.admin.row_verbs import (
    VERBS,
    find_row,
    known_caches,
    no_cache,
    no_row,
    title_of_row,
    title_of_rows,
)
from components.services.rows.models import CachedRows, cached_rows

_HOUR = 3_600  # seconds


@dataclass(frozen=True)
class HitRate:
    """The share of the rows read that were in the cache, as counted in the last hour."""

    hits: int
    misses: int

    @property
    def reads(self) -> int:
        return self.hits + self.misses

    @property
    def percent(self) -> float | None:
        """Return the hit rate in percent; None if nothing was read."""
        return 100 * self.hits / self.reads if self.reads else None


@dataclass(frozen=True)
class Row:
    """A row as the pages show it."""

    info: RowInfo

    @property
    def id(self) -> str:
        return member(self.info.name, self.info.key)

    @property
    def name(self) -> str:
        return shortened(legible(self.id))


@dataclass(frozen=True)
class Cache:
    """The rows of one name as the pages show them."""

    id: str
    info: CacheInfo
    hits: HitRate
    #: None if this release has no model of that name.
    declared: CachedRows[Any] | None

    @property
    def name(self) -> str:
        return shortened(legible(self.id))

    @property
    def model(self) -> str:
        return self.declared.model._meta.label if self.declared else ""


class CachedRowAdmin(ControlRoomAdmin):
    purpose = _("A cached row is a copy of a database row in Redis, which is read without a query.")

    verbs = VERBS
    looks = ("view", "change", "refresh")

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("model/", "model", self.cache),
            self.page("failing/", "failing", self.failing),
            self.page("row/", "row", self.row),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        """Return the URL of a row or, for a name without a colon, of all rows of that name."""
        return self.url("row", row=name) if ":" in name else self.url("model", model=name)

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader, texts = RowReader(), searched(request)
        known = known_caches(reader)
        for text in texts:
            if text in known or find_row(text):
                return HttpResponseRedirect(self.find_url(text))
        text = texts[-1] if texts else ""
        shown = [info for name, info in known.items() if text.casefold() in name.casefold()]
        total = sum(info.count for info in known.values())
        paging = Paging.of(request, total=min(total, REACH))
        rates = hit_rates(info.name for info in shown)
        context = {
            "text": text,
            "caches": [_cache(info, rates) for info in shown],
            "all": rates[""],
            "total": total,
            "failing": sum(info.failing for info in known.values()),
            "rows": [] if text else [*map(Row, reader.page(offset=paging.offset, limit=paging.size))],
            "paging": paging,
            "reach": REACH if total > REACH else 0,
            **_shared(known.values()),
        }
        template = "admin/components/rows/list.html"
        return self.render(request, template, gettext("Cached rows"), context, live=not text)

    def cache(self, request: HttpRequest) -> HttpResponse:
        reader, name = RowReader(), request.GET.get("model", "")
        info = known_caches(reader).get(name)
        if info is None:
            raise Http404(no_cache(name))
        cache = _cache(info, hit_rates([name]))
        context = {
            "cache": cache,
            "info": info,
            "subject": self.subject(name),
            **self._listed(request, reader, reader.of(name)),
            **_shared([info]),
        }
        template = "admin/components/rows/model.html"
        return self.render(request, template, title_of_rows(cache.name), context)

    def failing(self, request: HttpRequest) -> HttpResponse:
        reader, name = RowReader(), request.GET.get("model", "")
        try:
            listed = reader.failures(name)
        except InvalidName:
            raise Http404(no_row(name)) from None
        shown = shortened(legible(name))
        trail = [(title_of_rows(shown), self.find_url(name))] if name else []
        context = {
            "model": name,
            "purpose": gettext(
                "These rows could not be loaded from the database. Daemons try them again by themselves."
            ),
            **self._listed(request, reader, listed),
            **_shared([]),
        }
        template = "admin/components/rows/failing.html"
        title = gettext("Rows that could not be loaded")
        if name:
            title = gettext("Rows of %(name)s that could not be loaded") % {"name": shown}
        return self.render(request, template, title, context, trail=trail)

    def row(self, request: HttpRequest) -> HttpResponse:
        wanted = request.GET.get("row", "")
        info = find_row(wanted)
        if info is None:
            raise Http404(gettext("There is no cached row %(name)r.") % {"name": wanted})
        row = Row(info)
        context = {
            "row": row,
            "info": info,
            "subject": self.subject(row.id),
            "declared": cached_rows().get(info.name),
            **_shared([]),
        }
        trail = [(title_of_rows(shortened(legible(info.name))), self.find_url(info.name))]
        is_listed = info.delay is not None or info.name in cached_rows()
        template, title = "admin/components/rows/row.html", title_of_row(row.name)
        return self.render(request, template, title, context, trail=trail if is_listed else ())

    def _listed(self, request: HttpRequest, reader: RowReader, listed: Listed) -> dict[str, object]:
        paging = Paging.of(request, total=len(listed.members))
        rows = reader.look(listed.members[paging.offset : paging.last])
        return {"rows": [*map(Row, rows)], "paging": paging, "is_cut": listed.is_cut}


def _shared(infos: Iterable[CacheInfo]) -> dict[str, object]:
    late = max((info.late for info in infos), default=0.0)
    return {"late": late if late > LEASE else None, "lease": LEASE, "is_counted": conf().count_services}


def _cache(info: CacheInfo, rates: dict[str, HitRate]) -> Cache:
    return Cache(info.name, info, rates[info.name], cached_rows().get(info.name))


def hit_rates(names: Iterable[str]) -> dict[str, HitRate]:
    """Return the hit rates of each name, and of all rows under "", in one or two round trips to each node."""
    pairs = {"": ("rows:hit", "rows:missed")}
    pairs |= {name: (beside(f"rows:{name}", "hit"), beside(f"rows:{name}", "missed")) for name in names}
    found = Span(_HOUR).read([counter for pair in pairs.values() for counter in pair])
    return {name: HitRate(found[hit].total, found[missed].total) for name, (hit, missed) in pairs.items()}
