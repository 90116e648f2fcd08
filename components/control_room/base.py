"""
What all pages of the control room share: permission, rendering, confirmation, paging.

A page is a plain view that get_urls() lists through page(). That wrapper asks for the permission (Django's
admin_view only asks for staff), and turns "not there" and "Redis is away" into pages in words. Every page
can be fetched alone for its [data-live] part, which is how live.js refreshes it without eating messages.
What changes something is an Action: asked on GET, done on POST, logged once. Nothing is cached or stored here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Any, Literal
from urllib.parse import urlencode

import django
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.text import capfirst

from components.exceptions import RedisUnavailable
from components.middleware import mark_unavailable
from components.models import Anchor

View = Callable[..., HttpResponse]
#: Where a page hangs below the component's first page: names and URLs, outermost first.
Trail = Sequence[tuple[str, str]]
Permission = Literal["view", "change", "refresh", "resend", "discard", "delete"]

PAGE_SIZE = 50
#: For so long one entry of the log says that somebody reads messages.
READING = timedelta(hours=1)
HAS_READ = "Read the messages."


@dataclass(frozen=True)
class Paging:
    """One page of a long list, by offset. An offset beyond the end is the last page's."""

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
class Done:
    """What an action did."""

    #: For the log and the visitor, a sentence; "" if it did nothing.
    said: str = ""
    #: What did not go as asked, a sentence each.
    but: Sequence[str] = ()
    #: Where to go on, if that is elsewhere than the action says.
    onward: str = ""


@dataclass(frozen=True)
class Action:
    """Something that changes Redis, for ControlRoomAdmin.confirm()."""

    #: The title of the confirmation page, and its button.
    title: str
    button: str
    #: What will happen, a sentence each.
    effects: Sequence[str]
    run: Callable[[], Done]
    #: What the log entry points to.
    subject: Anchor
    #: Said instead when there was nothing to do; known beforehand if is_idle.
    idle: str
    is_idle: bool
    #: Where to go afterwards, and without having done it, if that is elsewhere.
    back: str
    origin: str = ""


class Page(TemplateResponse):
    """A rendered page. Half surrogate pairs, which JSON may hold and UTF-8 may not, are written out."""

    @property
    def rendered_content(self) -> str:
        return super().rendered_content.encode("utf-8", "backslashreplace").decode()


class ControlRoomAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The admin of an anchor model. A subclass lists its pages in get_urls(), before these."""

    def subject_url(self, name: str) -> str:
        """The page of the thing that the anchor *name* stands for; Recent actions link to it."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        """The stock pages that need no table. There is no other: what is not listed does not exist."""
        return [
            self.page("<path:object_id>/history/", "history", self.history_view),
            self.page("<path:object_id>/change/", "change", self._subject_view),
        ]

    def page(self, route: str, name: str, view: View, *, needs: Permission = "view") -> URLPattern:
        """The URL of a page that looks, or that changes something by POST if it *needs* more than to view."""

        @wraps(view)
        def guarded(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            methods = ["GET", "HEAD"] if needs == "view" else ["GET", "HEAD", "POST"]
            if not self.may(request, needs):
                raise PermissionDenied
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            try:
                return view(request, **kwargs)
            except Http404 as error:
                return self._missing(request, error)
            except RedisUnavailable as error:
                return self._unavailable(request, error)

        return path(route, self.admin_site.admin_view(guarded), name=self._url_name(name))

    def may(self, request: HttpRequest, what: Permission) -> bool:
        """Whether the user has that permission. Who may delete must be allowed to look as well."""
        if what == "change":
            return self.has_change_permission(request)
        may_view = self.has_view_permission(request)
        return may_view and (what == "view" or self.has_delete_permission(request))

    def url(self, name: str, **query: object) -> str:
        """The URL of the page *name*. What it is about goes into the query: names may hold anything."""
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
    ) -> Page:
        """A page of the control room. *trail* lies between the component's first page and this one."""
        request.current_app = self.admin_site.name
        shared = {
            "title": title,
            "opts": self.opts,
            "page_url": self.url,
            "live": live,
            "may_change": self.may(request, "change"),
            "may_delete": self.may(request, "delete"),
        }
        alone = {"layout": "admin/components/alone.html"}
        layout = alone if "X-Live" in request.headers else self._whole_page(request, trail)
        return Page(request, template, {**layout, **shared, **context}, status=status)

    def _whole_page(self, request: HttpRequest, trail: Trail) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            "layout": "admin/components/base.html",
            "trail": trail,
            "is_first": request.path == self.url("changelist"),
            "breadcrumbs_are_a_list": django.VERSION >= (6, 1),
        }

    def confirm(self, request: HttpRequest, action: Action, *, trail: Trail = ()) -> HttpResponse:
        """Ask on GET; act, log and say so on POST. Asked twice, it acts once."""
        if request.method != "POST":
            return self.render(
                request,
                "admin/components/confirm.html",
                action.title,
                {"action": action},
                trail=trail,
                live=False,
            )
        did = action.run()
        self.tell(request, action.subject, did)
        if did == Done():
            self.message_user(request, action.idle, messages.INFO)
        return HttpResponseRedirect(did.onward or action.back)

    def tell(self, request: HttpRequest, subject: Anchor, did: Done) -> None:
        """Log what was done, and say it."""
        if did.said:
            self.log_change(request, subject, " ".join([did.said, *did.but]))
            self.message_user(request, did.said, messages.SUCCESS)
        for sentence in did.but:
            self.message_user(request, sentence, messages.WARNING)

    def note_reading(self, request: HttpRequest, subject: Anchor) -> None:
        """
        Write into Django's log that the user reads what people wrote to each other.

        It is there before anything is shown. One entry stands for an hour, since the page is fetched anew every few
        seconds and in parts; whichever of them comes first writes it.
        """
        since = timezone.now() - READING
        known = LogEntry.objects.filter(
            user_id=str(request.user.pk),
            content_type=ContentType.objects.get_for_model(subject, for_concrete_model=False),
            object_id=str(subject.pk),
            action_time__gt=since,
            change_message=HAS_READ,
        )
        if not known.exists():
            self.log_change(request, subject, HAS_READ)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return self.model(pk=object_id)

    def _subject_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return HttpResponseRedirect(self.subject_url(unquote(object_id)))

    def _missing(self, request: HttpRequest, error: Http404) -> HttpResponse:
        context = {"reason": str(error)}
        return self.render(
            request, "admin/components/missing.html", "Not found", context, live=False, status=404
        )

    def _unavailable(self, request: HttpRequest, error: RedisUnavailable) -> HttpResponse:
        title = capfirst(self.opts.verbose_name_plural)
        response = self.render(
            request, "admin/components/unavailable.html", str(title), {"reason": str(error)}, status=503
        )
        mark_unavailable(request, response, error)
        return response

    def _url_name(self, name: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{name}"
