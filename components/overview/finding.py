"""
The search of the control room: pages of the admin, people, and what services find, as far as the user may view it.

All services are asked in one round trip to each node of Redis, and the database is asked once. reports.py says
what a service contributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext

from components.control_room.pages import ControlRoomAdmin
from components.kit.figures import gather
from components.models import Anchor, Queue
from components.reports import MOST_FOUND, reports
from components.templatetags.control_room import grouped, legible


@dataclass(frozen=True)
class Hit:
    """Something that was found, as the page shows it."""

    kind: str
    name: str
    url: str


@dataclass(frozen=True)
class Result:
    """What a search has found, and what could not be searched."""

    text: str
    hits: Sequence[Hit]
    missing: Sequence[str]

    @property
    def said(self) -> str:
        """Return in a sentence or two what came of the search."""
        sentences = []
        if self.text:
            count = len(self.hits)
            found = ngettext("%(count)s thing was found.", "%(count)s things were found.", count)
            nothing = gettext("Nothing that you may view contains this text.")
            sentences.append(found % {"count": grouped(count)} if count else nothing)
        if self.missing:
            told = gettext("Redis does not answer, so these were not searched: %(names)s.")
            sentences.append(told % {"names": ", ".join(self.missing)})
        return " ".join(sentences)


def search(
    request: HttpRequest, site: Any, pages: Mapping[type[Anchor], ControlRoomAdmin], text: str
) -> Result:
    """Return what *text* finds among *pages*, which the user may view; without a text, the pages of this app."""
    hits = [*_pages(request, site, text)]
    if not text:
        return Result(text, hits, [])
    gathered = gather(
        {model.__name__: each.find(text) for model, each in reports().items() if model in pages}
    )
    missing = list[str]()
    for model, page in pages.items():
        if model.__name__ in gathered.missing:
            missing.append(str(page.opts.verbose_name_plural))
        for found in gathered.found.get(model.__name__, ()):
            kind = found.kind or str(capfirst(page.opts.verbose_name))
            hits.append(Hit(kind, found.page.label, page.url(found.page.page, **found.page.query)))
    hits += _people(request, site, text)
    return Result(text, sorted(hits, key=lambda hit: hit.name != text), missing)


def _pages(request: HttpRequest, site: Any, text: str) -> Iterator[Hit]:
    """Yield the pages of the admin's index with the text in their names."""
    wanted, kind = text.casefold(), gettext("Page")
    for app in site.get_app_list(request):
        for model in app["models"]:
            name, url = str(model["name"]), model.get("admin_url")
            is_meant = wanted in name.casefold() if text else app["app_label"] == Queue._meta.app_label
            if url and is_meant:
                yield Hit(kind, name, url)


def _people(request: HttpRequest, site: Any, text: str) -> Iterator[Hit]:
    """Yield the users whose names begin with the text."""
    model = get_user_model()
    may_view = site.is_registered(model) and site.get_model_admin(model).has_view_permission(request)
    if not may_view or "\0" in text:  # PostgreSQL does not accept it
        return
    kind = str(capfirst(model._meta.verbose_name))
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
    users = model._default_manager.filter(**{f"{model.USERNAME_FIELD}__startswith": text})
    for user in users.order_by(model.USERNAME_FIELD)[:MOST_FOUND]:
        yield Hit(kind, legible(user.get_username()), reverse(name, args=[user.pk], current_app=site.name))
