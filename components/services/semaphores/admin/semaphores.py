"""
The Semaphores page: how each stands, who holds its permits, who waits; another limit, and permits taken away.

It looks through SemaphoreReader and SemaphoreControls. A page of the list costs five round trips, however many there
are, and a semaphore five. A permit is named by its id, which nobody else has: who comes in its place is not hit.
"""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern

from components.control_room.base import Action, Done, Paging
from components.control_room.names import NamedPages, mean, searched, shortened, who
from components.exceptions import ForeignPermit, InvalidLimit
from components.services.semaphores import HolderInfo, SemaphoreControls, SemaphoreInfo, SemaphoreReader
from components.services.semaphores.permit import check_count
from components.templatetags.control_room import duration, grouped, legible

WAITERS = 50  # that a page shows


@dataclass(frozen=True)
class Row:
    """A semaphore as the pages show it."""

    info: SemaphoreInfo

    @property
    def name(self) -> str:
        return legible(self.info.name)

    @property
    def short_name(self) -> str:
        return shortened(self.name)

    @property
    def mean_wait(self) -> float | None:
        return mean(self.info.total_waited, self.info.waits)

    @property
    def is_over(self) -> bool:
        """Whether more is used than the limit allows, since it was made smaller."""
        return self.info.limit is not None and self.info.used > self.info.limit

    @property
    def limit(self) -> str:
        """In half a sentence."""
        if self.info.override is None:
            return f"{grouped(self.info.limit or 0)}, as the code declares"
        declared = "" if self.info.declared is None else f"; the code declares {grouped(self.info.declared)}"
        return f"{grouped(self.info.override)}, set by hand{declared}"


class LimitForm(forms.Form):
    """Another limit."""

    limit = forms.IntegerField(
        min_value=1,
        help_text="It wins over what the code declares, in all processes and at once, until it is reset.",
        widget=forms.NumberInput(attrs={"autocomplete": "off"}),
    )

    def clean_limit(self) -> int:
        try:
            return check_count("limit", self.cleaned_data["limit"])
        except InvalidLimit as error:
            raise ValidationError(str(error)) from None


class SemaphoreAdmin(NamedPages):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("semaphore/", "semaphore", self.semaphore),
            self.page("limit/", "limit", self.limit, needs="change"),
            self.page("reset/", "reset", self.reset, needs="change"),
            self.page("evict/", "evict", self.evict, needs="change"),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("semaphore", semaphore=name)

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader, texts = SemaphoreReader(), searched(request)
        template = "admin/components/semaphores/list.html"
        for text in texts:
            if reader.find(text):
                return HttpResponseRedirect(self.find_url(text))
        if texts:
            return self.render(request, template, "Semaphores", {"text": texts[0]}, live=False)
        paging = Paging.of(request, total=reader.count())
        infos = reader.page(offset=paging.offset, limit=paging.size)
        context = {"rows": [Row(info) for info in infos], "paging": paging}
        return self.render(request, template, "Semaphores", context)

    def semaphore(self, request: HttpRequest) -> HttpResponse:
        row = _find(request)
        info, controls = row.info, SemaphoreControls(row.info.name)
        paging = Paging.of(request, total=info.holders)
        context = {
            "row": row,
            "info": info,
            "subject": self.subject(info.name),
            "paging": paging,
            "holders": controls.holders(offset=paging.offset, limit=paging.size),
            "waiters": controls.waiters(limit=WAITERS) if info.waiting else [],
        }
        template = "admin/components/semaphores/semaphore.html"
        return self.render(request, template, f"Semaphore {row.name}", context)

    def limit(self, request: HttpRequest) -> HttpResponse:
        row = _find(request)
        page = self.find_url(row.info.name)
        given = request.POST if request.method == "POST" else None
        form = LimitForm(given, initial={"limit": row.info.limit}, label_suffix="")
        if form.is_valid():
            self._set_limit(request, row, form.cleaned_data["limit"])
            return HttpResponseRedirect(page)
        return self.render(
            request,
            "admin/components/semaphores/limit.html",
            f"Change the limit of {row.name}",
            {"row": row, "form": form, "back": page},
            trail=[(f"Semaphore {row.name}", page)],
            live=False,
        )

    def _set_limit(self, request: HttpRequest, row: Row, limit: int) -> None:
        if limit == row.info.override:
            idle = f"The limit of the semaphore {row.name} is {grouped(limit)} already."
            return self.message_user(request, idle, messages.INFO)
        SemaphoreControls(row.info.name).set_limit(limit)
        said = f"Set the limit of the semaphore {row.name} to {grouped(limit)}. It was {row.limit}."
        self.log_change(request, self.subject(row.info.name), said)
        return self.message_user(request, said, messages.SUCCESS)

    def reset(self, request: HttpRequest) -> HttpResponse:
        row = _find(request)
        name, declared = row.info.name, row.info.declared
        page = self.find_url(name)

        def run() -> Done:
            if row.info.override is None:
                return Done()
            SemaphoreControls(name).reset_limit()
            return Done(
                f"Reset the limit of the semaphore {row.name} to what the code declares. It was {row.limit}."
            )

        action = Action(
            title=f"Reset the limit of {row.name}",
            button="Reset",
            effects=[
                f"It is {row.limit}.",
                "The limit is what the code declares again, in all processes and at once"
                f"{'.' if declared is None else f': {grouped(declared)}.'}",
                "Who holds a permit keeps it. If the limit grows, who waits first comes in at once.",
            ],
            run=run,
            subject=self.subject(name),
            idle=f"The limit of the semaphore {row.name} is what the code declares.",
            is_idle=row.info.override is None,
            # What no code has declared is in no list any more.
            back=page if declared is not None else self.url("changelist"),
            origin=page,
        )
        return self.confirm(request, action, trail=[(f"Semaphore {row.name}", page)])

    def evict(self, request: HttpRequest) -> HttpResponse:
        row, permit = _find(request), request.GET.get("permit", "")
        controls, page = SemaphoreControls(row.info.name), self.find_url(row.info.name)
        try:
            holder = controls.holder(permit)
        except ForeignPermit as error:
            raise Http404(str(error)) from None

        def run() -> Done:
            if holder is None or not controls.evict(permit):
                return Done()
            return Done(f"Evicted {_who(holder)} from the semaphore {row.name}.")

        action = Action(
            title=f"Evict from {row.name}",
            button="Evict",
            effects=_effects(row, holder) if holder else [],
            run=run,
            subject=self.subject(row.info.name),
            idle=f"Nobody to evict: that permit of the semaphore {row.name} is not held any more.",
            is_idle=holder is None,
            back=page,
        )
        return self.confirm(request, action, trail=[(f"Semaphore {row.name}", page)])


def _find(request: HttpRequest) -> Row:
    """The semaphore that the query names."""
    name = request.GET.get("semaphore", "")
    info = SemaphoreReader().find(name)
    if not name or info is None:
        raise Http404(f"There is no semaphore {name!r}, or it was not used for a month.")
    return Row(info)


def _who(holder: HolderInfo) -> str:
    return who(holder.holder, f"an unknown holder with the permit {holder.id}")


def _effects(row: Row, holder: HolderInfo) -> list[str]:
    waiting = f"{grouped(row.info.waiting)} wait" if row.info.waiting else "Nobody waits"
    return [
        f"The permit is held by {_who(holder)}. It counts as {grouped(holder.weight)}, and its lease ends in "
        f"{duration(holder.remaining)} if it is not refreshed.",
        f"It is free at once. {waiting}.",
        "Who holds it is not stopped. It learns that the permit is lost when it refreshes it or gives it back, with "
        "auto_renewal within a third of its lease; until then more may be at work than the limit allows.",
    ]
