"""
The Overview page: what needs attention, a card for each service, and the health of Redis; and the search.

People see and find only what belongs to services whose pages they may view. The page, and a search, cost one round
trip to each node of Redis, however much is in it, and no listing grows with it. reports.py says what a service
contributes to both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, reverse
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.conf import conf
from components.control_room.pages import ControlRoomAdmin
from components.exceptions import RedisUnavailable
from components.formatting import duration, grouped, legible
from components.kit.readings import Gathered, Reading, gather
from components.models import Anchor
from components.overview.nodes import MOST_NODES, lines_of, nodes, read_nodes, state_of
from components.reports import MOST_FOUND, MOST_TEXT, Card, Line, Link, reports
from components.services.counters import Series, recent


@dataclass(frozen=True)
class Shown:
    """A link as the page shows it."""

    url: str
    label: str | Promise
    deletes: bool = False


@dataclass(frozen=True)
class Row:
    """A line about what needs attention, as the page shows it."""

    of: str
    line: Line
    page: Shown
    mend: Shown | None


@dataclass(frozen=True)
class Tile:
    """The card of a service as the page shows it, or the reason why it is missing."""

    title: str
    url: str
    card: Card | None
    error: Exception | None
    rows: Sequence[Row]
    #: Further pages of the service.
    links: Sequence[Shown | None]
    #: What the service did lately; None if that is not counted, or may not be seen.
    series: Series | None
    #: The same in words.
    past: str

    @property
    def state(self) -> str:
        """Return "missing", "serious", "warning" or "well"."""
        return "missing" if self.card is None else state_of([row.line for row in self.rows])


class Hit(NamedTuple):
    """Something that was found, as the page shows it."""

    kind: str
    name: str
    url: str


class OverviewAdmin(ControlRoomAdmin):
    """The page, and the search."""

    purpose = _("The state of everything that this site keeps in Redis.")
    looks = ("view",)
    further_pages = (("log", _("History")),)

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("find/", "find", self.find),
            self.page("log/", "log", self.log),
            *super().get_urls(),
        ]

    def overview(self, request: HttpRequest) -> HttpResponse:
        pages = self.services(request)
        may_see_counters = request.user.has_perm("components.view_counter")
        has_past = conf().count_services and may_see_counters
        readings: dict[str, Reading[Any]] = {"redis": read_nodes()}
        for model in pages:
            service = reports()[model]
            readings[model.__name__] = service.card()
            if has_past and hasattr(service, "PAST"):
                readings[_past(model)] = recent(service.PAST.counter)
        gathered = gather(readings)
        found = nodes(gathered.found.get("redis", {}), gathered.took)
        errors = (
            [gathered.missing["redis"]] if "redis" in gathered.missing else [node.error for node in found]
        )
        if all(isinstance(error, RedisUnavailable) for error in errors):
            raise next(filter(None, errors))
        tiles = [_tile(model, page, gathered, request) for model, page in pages.items()]
        health = Shown("#redis", gettext("Health of Redis"))
        rows = [*(row for tile in tiles for row in tile.rows)]
        rows += [Row("Redis", line, health, None) for line in lines_of(found)]
        context = {
            "tiles": tiles,
            "rows": sorted(rows, key=lambda row: not row.line.is_serious),
            "nodes": found[:MOST_NODES],
            "more_nodes": len(found[MOST_NODES:]),
            "has_past": has_past,
            "missing": [tile for tile in tiles if tile.card is None],
        }
        template, title = "admin/components/overview.html", gettext("Overview")
        cards = {name: card for name, card in gathered.found.items() if isinstance(card, Card)}
        return self.render(request, template, title, context, cards=cards)

    def find(self, request: HttpRequest) -> HttpResponse:
        """Search everything that the user may view; for finder.js, answer with JSON."""
        text = request.GET.get("q", "").strip()[:MOST_TEXT]
        hits, missing = self._search(request, text)
        said = _said(text, len(hits), missing)
        if request.headers.get("Accept") == "application/json":
            found = [{"kind": hit.kind, "name": hit.name, "url": hit.url} for hit in hits]
            return JsonResponse({"hits": found, "said": said})
        context = {"text": text, "hits": hits, "said": said, "most": MOST_TEXT}
        template = "admin/components/finding.html"
        return self.render(request, template, gettext("Find"), context, live=False)

    def _search(self, request: HttpRequest, text: str) -> tuple[list[Hit], list[str]]:
        """Return what *text* finds, or the pages of this app without a text; and what could not be searched."""
        hits, pages = [*self._indexed(request, text)], self.services(request)
        if not text:
            return hits, []
        gathered = gather({model.__name__: reports()[model].find(text) for model in pages})
        missing = list[str]()
        for model, page in pages.items():
            if model.__name__ in gathered.missing:
                missing.append(str(page.opts.verbose_name_plural))
            for found in gathered.found.get(model.__name__, ()):
                kind = found.kind or str(capfirst(page.opts.verbose_name))
                hits.append(Hit(kind, found.page.label, page.url(found.page.page, **found.page.query)))
        hits += _people(request, self.admin_site, text)
        return sorted(hits, key=lambda hit: hit.name != text), missing

    def _indexed(self, request: HttpRequest, text: str) -> Iterator[Hit]:
        """Yield the pages of the control room, and those of the admin's index, with the text in their names."""
        wanted, kind = text.casefold(), gettext("Page")
        own = {link.url: link.name for link in self._navigation(request, {})}
        others = {
            model["admin_url"]: str(model["name"])
            for app in self.admin_site.get_app_list(request)
            for model in app["models"]
            if text and model.get("admin_url")
        }
        for url, name in {**others, **own}.items():
            if wanted in name.casefold():
                yield Hit(kind, name, url)


def _tile(
    model: type[Anchor], pages: ControlRoomAdmin, gathered: Gathered[Any], request: HttpRequest
) -> Tile:
    title, url = str(capfirst(pages.opts.verbose_name_plural)), pages.url("changelist")
    card: Card | None = gathered.found.get(model.__name__)
    rows = [
        Row(title, line, _shown(line.page, pages) or Shown(url, title), _mending(line, pages, request))
        for line in (card.lines if card else ())
    ]
    links = [_shown(each, pages) for each in (card.links if card else ())]
    series, past = gathered.found.get(_past(model)), ""
    if series:
        span = duration(len(series) * series.precision)
        figures = {"number": series.total, "count": grouped(series.total), "span": span}
        past = reports()[model].PAST.said % figures
    return Tile(title, url, card, gathered.missing.get(model.__name__), rows, links, series, past)


def _past(model: type[Anchor]) -> str:
    return f"the past of {model.__name__}"


def _shown(link: Link | None, pages: ControlRoomAdmin) -> Shown | None:
    return Shown(pages.url(link.page, **link.query), link.label) if link else None


def _mending(line: Line, pages: ControlRoomAdmin, request: HttpRequest) -> Shown | None:
    """Return the link to the verb that mends it; None if there is none, or if the user may not do it."""
    for verb in pages.verbs:
        if line.mend and verb.name == line.mend.page and pages.may(request, verb.needs):
            return Shown(pages.url(verb.name, **line.mend.query), line.mend.label, verb.deletes)
    return None


def _said(text: str, count: int, missing: Sequence[str]) -> str:
    sentences = []
    if text:
        found = ngettext("%(count)s thing was found.", "%(count)s things were found.", count)
        nothing = gettext("Nothing that you may view contains this text.")
        sentences.append(found % {"count": grouped(count)} if count else nothing)
    if missing:
        told = gettext("Redis does not answer, so these were not searched: %(names)s.")
        sentences.append(told % {"names": ", ".join(missing)})
    return " ".join(sentences)


def _people(request: HttpRequest, site: Any, text: str) -> Iterator[Hit]:
    model = get_user_model()
    may_view = site.is_registered(model) and site.get_model_admin(model).has_view_permission(request)
    if not may_view or "\0" in text:  # PostgreSQL does not accept it
        return
    kind = str(capfirst(model._meta.verbose_name))
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
    users = model._default_manager.filter(**{f"{model.USERNAME_FIELD}__startswith": text})
    for user in users.order_by(model.USERNAME_FIELD)[:MOST_FOUND]:
        yield Hit(kind, legible(user.get_username()), reverse(name, args=[user.pk], current_app=site.name))
