"""
The parts that all pages of the control room share: permissions, rendering, confirmation, paging.

A page is a plain view that get_urls() lists through page(). That wrapper checks the permission (Django's admin_view
only checks that the user is staff). If something does not exist or Redis is away, it answers with a page that says
so. live.js fetches only the [data-live] part of a page to refresh it, which does not consume messages. Changes are
made by Verbs: a Verb asks on GET, acts on POST, and is logged once. Nothing is cached or stored here.

Names of things may contain anything: line feeds, markup, two dots, hundreds of characters. In an address, a name is
part of the query. In log entries, whose names Django puts into paths, it is percent-quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, unquote, urlencode

import django
from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote as unquoted_by_admin
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.i18n import JavaScriptCatalog

from components.control_room.live import send_changes
from components.control_room.verbs import Done, Trail, Verb
from components.exceptions import RedisRefused, RedisUnavailable, RedisUnsuitable
from components.formatting import legible
from components.kit.csv_files import write_csv
from components.kit.leases import Holder
from components.kit.readings import gather
from components.models import Anchor, Overview
from components.reports import MOST_TEXT, Card, reports
from components.views import mark_unavailable

View = Callable[..., HttpResponse]

PAGE_SIZE = 50
#: For how long one log entry covers further readings of messages.
READING = timedelta(hours=1)
HAS_READ = _("Read the messages.")
_TEXTS = JavaScriptCatalog.as_view(packages=["components"])


@dataclass(frozen=True)
class Paging:
    """One page of a long list, by offset. An offset beyond the end means the last page."""

    total: int
    offset: int = 0
    size: int = PAGE_SIZE

    @classmethod
    def of(cls, request: HttpRequest, total: int) -> Paging:
        try:
            wanted = max(int(request.GET.get("offset", "")), 0)
        except ValueError:
            wanted = 0
        last_page = max(total - 1, 0) // PAGE_SIZE * PAGE_SIZE
        return cls(total, min(wanted, last_page))

    @property
    def first(self) -> int:
        return min(self.offset + 1, self.total)

    @property
    def last(self) -> int:
        return min(self.offset + self.size, self.total)

    @property
    def previous(self) -> int | None:
        return max(self.offset - self.size, 0) if self.offset else None

    @property
    def next(self) -> int | None:
        return self.last if self.last < self.total else None


@dataclass(frozen=True)
class NavigationLink:
    """A link above each page, to a page of the control room."""

    name: str
    url: str
    is_current: bool
    #: How many things need attention there.
    count: int = 0


class Page(TemplateResponse):
    """A rendered page. Half surrogate pairs, which are possible in JSON but not in UTF-8, are escaped."""

    @property
    def rendered_content(self) -> str:
        return super().rendered_content.encode("utf-8", "backslashreplace").decode()


class ControlRoomAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The admin of an anchor model. A subclass lists its pages in get_urls(), before these."""

    #: What the component is for, and what its first page shows; for people who have never seen the code.
    purpose: str | Promise = ""
    #: The verbs of this component; each verb has a page.
    verbs: Sequence[Verb] = ()
    #: Further pages to which the links above each page lead, and their titles.
    further_pages: Sequence[tuple[str, str | Promise]] = ()
    #: Any of these permissions is enough to view. People who may change something do not also need "view".
    looks: Sequence[str] = ("view", "change")

    def find_url(self, name: str) -> str:
        """Return the address of the page of the thing with this name; the first page, if things have no pages."""
        return self.url("changelist")

    def label(self, name: str) -> str:
        """Return the name as people read it."""
        return legible(name)

    def subject(self, name: str) -> Anchor:
        """Return the object to which a log entry about the thing points."""
        # Dots are quoted too: "." and ".." mean something in a path.
        anchor: Anchor = self.model(pk=quote(name, safe="").replace(".", "%2E"))
        anchor.label = self.label(name)
        return anchor

    def name_of(self, subject: str) -> str:
        """Return the name of the thing to which a log entry points."""
        return unquote(subject)

    def get_urls(self) -> list[URLPattern]:
        """Return the pages of the verbs, and the stock pages that need no table."""
        asking = [
            self.page(
                f"{verb.name.replace('_', '-')}/",
                verb.name,
                partial(self._ask, verb),
                needs=verb.needs,
                posts=True,
            )
            for verb in self.verbs
        ]
        return [
            *asking,
            # The texts of scripts.
            path(
                "jsi18n/", self.admin_site.admin_view(_TEXTS, cacheable=True), name=self._url_name("jsi18n")
            ),
            self.page("<path:object_id>/history/", "history", self.history_view),
            self.page("<path:object_id>/change/", "change", self._subject_view),
        ]

    def page(
        self, route: str, name: str, view: View, *, needs: str = "view", posts: bool = False
    ) -> URLPattern:
        """Return the URL pattern of a page. If *posts*, the page changes something by POST."""

        @wraps(view)
        def guarded(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
            methods = ["GET", "HEAD", "POST"] if posts else ["GET", "HEAD"]
            if not self.may(request, needs):
                raise PermissionDenied
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            try:
                return send_changes(request, view(request, **kwargs))
            except Http404 as error:
                return self._missing(request, error)
            except RedisUnavailable as error:
                return self._unavailable(request, error)

        return path(route, self.admin_site.admin_view(guarded), name=self._url_name(name))

    def may(self, request: HttpRequest, what: str) -> bool:
        """Return whether the user has that permission; to remove something, they also need one to view it."""
        if what == "view":
            return self.has_view_permission(request)
        return self._has(request, what) and (what in self.looks or self.has_view_permission(request))

    def _has(self, request: HttpRequest, what: str) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.{what}_{self.opts.model_name}")

    def url(self, name: str, **query: object) -> str:
        """Return the address of the page *name*. The subject of the page is part of the query."""
        address = reverse(f"admin:{self._url_name(name)}", current_app=self.admin_site.name)
        return f"{address}?{urlencode(query)}" if query else address

    def render(
        self,
        request: HttpRequest,
        template: str,
        title: str,
        context: Mapping[str, Any],
        *,
        trail: Trail = (),
        live: bool = True,
        status: int = 200,
        cards: Mapping[str, Card] | None = None,
    ) -> Page:
        """
        Return a page of the control room. *trail* lies between the component's first page and this one. *cards*,
        which say what needs attention, are read unless they are given.
        """
        request.current_app = self.admin_site.name
        shared = {
            "title": title,
            "opts": self.opts,
            "page_url": self.url,
            "live": live,
            "navigation": self._navigation(request, cards),
            "may": SimpleNamespace(
                **{verb.name: verb for verb in self.verbs if self.may(request, verb.needs)}
            ),
        }
        alone = {"layout": "admin/components/alone.html"}
        layout = alone if "X-Live" in request.headers else self._whole_page(request, trail)
        return Page(request, template, {**layout, **shared, **context}, status=status)

    def list_page(
        self,
        request: HttpRequest,
        template: str,
        *,
        find: Callable[[str], str | None],
        total: Callable[[], int],
        rows: Callable[[Paging], Sequence[object]],
    ) -> HttpResponse:
        """
        Return a component's first page: a part of a long list, or the search that found nothing.

        *find* returns the name of the thing that a search means; the search then leads to its page. *rows* returns a
        part of the list, which has *total* things.
        """
        title, texts = str(capfirst(self.opts.verbose_name_plural)), searched(request)
        for text in texts:
            if name := find(text):
                return HttpResponseRedirect(self.find_url(name))
        if texts:
            return self.render(request, template, title, {"text": texts[0]}, live=False)
        paging = Paging.of(request, total=total())
        return self.render(request, template, title, {"rows": rows(paging), "paging": paging})

    def _whole_page(self, request: HttpRequest, trail: Trail) -> dict[str, Any]:
        overview = self._pages_of(Overview, request)
        return {
            **self.admin_site.each_context(request),
            "layout": "admin/components/base.html",
            "finder_url": overview.url("find") if overview else "",
            "trail": trail,
            "purpose": self.purpose if request.path == self.url("changelist") else "",
            "is_first": request.path == self.url("changelist"),
            "shows_trail": apps.is_installed("unfold"),  # whose pages have no breadcrumbs
            "breadcrumbs_are_a_list": django.VERSION >= (6, 1),
        }

    def services(self, request: HttpRequest) -> dict[type[Anchor], ControlRoomAdmin]:
        """Return the pages of the services that the user may view on this site, by their anchors."""
        found = {model: self._pages_of(model, request) for model in reports()}
        return {model: pages for model, pages in found.items() if pages}

    def _pages_of(self, model: type[Anchor], request: HttpRequest) -> ControlRoomAdmin | None:
        pages: Any = self.admin_site.is_registered(model) and self.admin_site.get_model_admin(model)
        return pages if isinstance(pages, ControlRoomAdmin) and pages.may(request, "view") else None

    def _navigation(self, request: HttpRequest, cards: Mapping[str, Card] | None) -> list[NavigationLink]:
        """Return the links above each page. They cost one round trip to each node, unless *cards* are given."""
        services, overview = self.services(request), self._pages_of(Overview, request)
        if cards is None:
            cards = gather({model.__name__: reports()[model].card() for model in services}).found
        found = list[NavigationLink]()
        for pages in [*([overview] if overview else []), *services.values()]:
            titles = {
                "changelist": str(capfirst(pages.opts.verbose_name_plural)),
                **dict(pages.further_pages),
            }
            urls = {name: pages.url(name) for name in titles}
            current = max((url for url in urls.values() if request.path.startswith(url)), key=len, default="")
            card = cards.get(pages.model.__name__)
            named = [line.page.page if line.page else "" for line in card.lines] if card else []
            of_line = [name if name in titles else "changelist" for name in named]
            found += [
                NavigationLink(str(title), urls[name], urls[name] == current, of_line.count(name))
                for name, title in titles.items()
            ]
        # What else is about all services comes last.
        last = [overview.url(name) for name, _title in overview.further_pages] if overview else []
        found.sort(key=lambda link: link.url in last)
        return found if len(found) > 1 else []

    def get_model_perms(self, request: HttpRequest) -> dict[str, bool]:
        """Return none for pages to which other links lead, so that the admin's index has one entry."""
        has_overview = self.model is not Overview and self._pages_of(Overview, request)
        return {} if has_overview else super().get_model_perms(request)

    def _ask(self, verb: Verb, request: HttpRequest) -> HttpResponse:
        """Ask on GET, with the action's form if it has one; on POST act, log it and report it. Two posts act once."""
        action = verb.ask(self, request)
        origin = action.origin or (action.trail[-1][1] if action.trail else self.url("changelist"))
        back, form = action.back or origin, action.form
        if request.method != "POST" or (form and not form.is_valid()):
            # The action itself is not in the context, because templates call callables.
            context = {
                "button": verb.label,
                "effects": action.effects,
                "idle": action.idle if action.run is None else "",
                "form": form,
                "back": back if action.run is None else origin,
            }
            template = "admin/components/confirm.html"
            return self.render(request, template, action.title, context, trail=action.trail, live=False)
        did = action.run() if action.run else Done()
        self.tell(request, self.subject(action.of), did)
        if not did.said and not did.but:
            self.message_user(request, did.idle or str(action.idle), messages.INFO)
        return HttpResponseRedirect(did.onward or back)

    def tell(self, request: HttpRequest, subject: Anchor, did: Done) -> None:
        """Log an action, and report it to the user."""
        if did.said:
            self.log_change(request, subject, " ".join([did.said, *did.but]))
            self.message_user(request, did.said, messages.SUCCESS)
        for sentence in did.but:
            self.message_user(request, sentence, messages.WARNING)

    def log(self, request: HttpRequest) -> HttpResponse:
        """List who did what, of all that the user may view, the latest first."""
        services = self.services(request)
        types = ContentType.objects.get_for_models(*services, for_concrete_models=False)
        pages = {types[model].pk: pages for model, pages in services.items()}
        entries = LogEntry.objects.filter(content_type__in=pages).select_related("user")
        if text := request.GET.get("q", "").strip()[:MOST_TEXT].replace("\0", ""):
            who = {f"user__{get_user_model().USERNAME_FIELD}__icontains": text}
            what = Q(object_repr__icontains=text) | Q(change_message__icontains=text)
            entries = entries.filter(what | Q(**who))
        paging = Paging.of(request, total=entries.count())
        rows = [(each, pages[each.content_type_id or 0]) for each in entries[paging.offset : paging.last]]
        found = [(each, of, of.find_url(of.name_of(each.object_id or ""))) for each, of in rows]
        context = {"rows": found, "paging": paging, "text": text, "most": MOST_TEXT}
        return self.render(request, "admin/components/log.html", gettext("History"), context)

    def note_reading(self, request: HttpRequest, subject: Anchor) -> None:
        """
        Log that the user reads messages that people wrote to each other, before any are shown.

        One entry covers an hour, since the page refreshes itself every few seconds.
        """
        since = timezone.now() - READING
        known = LogEntry.objects.filter(
            user_id=str(request.user.pk),
            content_type=ContentType.objects.get_for_model(subject, for_concrete_model=False),
            object_id=str(subject.pk),
            action_time__gt=since,
            change_message=str(HAS_READ),
        )
        if not known.exists():
            self.log_change(request, subject, str(HAS_READ))

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return any(self._has(request, each) for each in self.looks)

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return any(self._has(request, each) for each in self.looks if each != "view")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return self.subject(self.name_of(object_id))

    def _subject_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return HttpResponseRedirect(self.find_url(self.name_of(unquoted_by_admin(object_id))))

    def _missing(self, request: HttpRequest, error: Http404) -> HttpResponse:
        context = {"reason": str(error)}
        return self.render(
            request, "admin/components/missing.html", gettext("Not found"), context, live=False, status=404
        )

    def _unavailable(self, request: HttpRequest, error: RedisUnavailable) -> HttpResponse:
        title = capfirst(self.opts.verbose_name_plural)
        context = {"said": _said_of(error), "reason": str(error)}
        template = "admin/components/unavailable.html"
        response = self.render(request, template, str(title), context, status=503, cards={})
        mark_unavailable(request, response, error)
        return response

    def _url_name(self, name: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{name}"


def as_csv(filename: str, rows: Iterable[Sequence[object]], *, names: int | None = None) -> HttpResponse:
    """Return a download of *rows*, in which a spreadsheet calculates nothing: write_csv() has the details."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    write_csv(response, rows, names=names)
    return response


def _said_of(error: RedisUnavailable) -> str:
    """Return what a visitor should know. The text of the error is for developers, in English."""
    if isinstance(error, RedisUnsuitable):
        return gettext("This site cannot work with the Redis that its settings name.")
    if isinstance(error, RedisRefused):
        return gettext("Redis is running, but refuses commands at the moment.")
    return gettext("Redis does not answer.")


def searched(request: HttpRequest) -> list[str]:
    """Return what the visitor searches for: as they typed it, and without the white space around it."""
    typed = request.GET.get("q", "")
    return [text for text in dict.fromkeys([typed, typed.strip()]) if text.strip()]


def number_in(text: str) -> int | None:
    """Return the number that a part of a query names; None if it is none, or larger than any that is stored."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 17 else None


def who(holder: Holder, unknown: str) -> str:
    """Return the holder as a part of a sentence; *unknown* if its id tells nothing."""
    if not holder.host:
        return legible(unknown)
    place = gettext("process %(process)s on %(host)s, %(thread)s") % vars(holder)
    return legible(f"{holder.owner} ({place})" if holder.owner else place)
