"""
The Semaphores page: the state of each semaphore, with its holders and waiters. Its limit can be changed, and holders
can be evicted.

A page of the list costs five round trips, however many semaphores there are, and the page of one semaphore five. URLs
name a permit by its unique id, so a later holder is never evicted by mistake.
"""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern

from components.control_room.names import mean, shortened, who
from components.control_room.pages import ControlRoomAdmin, Paging
from components.control_room.verbs import Action, Done, Trail, Verb, filled
from components.exceptions import ForeignPermit, InvalidLimit
from components.services.semaphores import HolderInfo, SemaphoreControls, SemaphoreInfo, SemaphoreReader
from components.services.semaphores.permit import check_count
from components.templatetags.control_room import duration, grouped, legible

WAITERS = 50  # waiters on a page


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
        """Return whether more is in use than the limit allows, because the limit was lowered."""
        return self.info.limit is not None and self.info.used > self.info.limit

    @property
    def limit(self) -> str:
        """Return the limit as a part of a sentence."""
        if self.info.override is None:
            return f"{grouped(self.info.limit or 0)}, as the code declares"
        declared = "" if self.info.declared is None else f"; the code declares {grouped(self.info.declared)}"
        return f"{grouped(self.info.override)}, set by hand{declared}"


class LimitForm(forms.Form):
    """The form for changing the limit."""

    limit = forms.IntegerField(
        min_value=1,
        help_text="It overrides the limit that the code declares, in all processes and at once, until it is reset.",
        widget=forms.NumberInput(attrs={"autocomplete": "off"}),
    )

    def clean_limit(self) -> int:
        try:
            return check_count("limit", self.cleaned_data["limit"])
        except InvalidLimit as error:
            raise ValidationError(str(error)) from None


class SemaphoreAdmin(ControlRoomAdmin):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("semaphore/", "semaphore", self.semaphore),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("semaphore", semaphore=name)

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader = SemaphoreReader()

        def rows(paging: Paging) -> list[Row]:
            return [Row(info) for info in reader.page(offset=paging.offset, limit=paging.size)]

        return self.list_page(
            request,
            "admin/components/semaphores/list.html",
            find=lambda text: text if reader.find(text) else None,
            total=reader.count,
            rows=rows,
        )

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

    def limit(self, request: HttpRequest) -> Action:
        row = _find(request)
        info, form = row.info, filled(LimitForm, request, limit=row.info.limit)

        def run() -> Done:
            limit = form.cleaned_data["limit"]
            if limit == info.override:
                return Done(idle=f"The limit of the semaphore {row.name} is {grouped(limit)} already.")
            SemaphoreControls(info.name).set_limit(limit)
            return Done(f"Set the limit of the semaphore {row.name} to {grouped(limit)}. It was {row.limit}.")

        return Action(
            of=row.info.name,
            trail=self._trail(row),
            title=f"Change the limit of {row.name}",
            effects=[
                f"The limit is {row.limit}. Used now: {grouped(info.used)}; waiting: {grouped(info.waiting)}.",
                "Holders keep their permits: under a lower limit, nobody gets one until enough have been given back.",
                "Under a higher limit, the first waiters get theirs at once.",
            ],
            run=run,
            form=form,
        )

    def reset(self, request: HttpRequest) -> Action:
        row = _find(request)
        name, declared = row.info.name, row.info.declared

        def run() -> Done:
            SemaphoreControls(name).reset_limit()
            return Done(
                f"Reset the limit of the semaphore {row.name} to what the code declares. It was {row.limit}."
            )

        return Action(
            of=row.info.name,
            trail=self._trail(row),
            title=f"Reset the limit of {row.name}",
            effects=[
                f"The limit is {row.limit}.",
                "It becomes what the code declares again, in all processes and at once"
                f"{'.' if declared is None else f': {grouped(declared)}.'}",
                "Holders keep their permits. If the limit rises, the first waiters get theirs at once.",
            ],
            run=None if row.info.override is None else run,
            idle=f"The limit of the semaphore {row.name} is what the code declares.",
            # A semaphore that no code has declared disappears from the list.
            back="" if declared is not None else self.url("changelist"),
        )

    def evict(self, request: HttpRequest) -> Action:
        row, permit = _find(request), request.GET.get("permit", "")
        controls = SemaphoreControls(row.info.name)
        try:
            holder = controls.holder(permit)
        except ForeignPermit as error:
            raise Http404(str(error)) from None

        def run() -> Done:
            if holder is None or not controls.evict(permit):
                return Done()
            return Done(f"Evicted {_who(holder)} from the semaphore {row.name}.")

        return Action(
            of=row.info.name,
            trail=self._trail(row),
            title=f"Evict from {row.name}",
            effects=_effects(row, holder) if holder else [],
            run=run if holder else None,
            idle=f"Nobody to evict: that permit of the semaphore {row.name} is not held any more.",
        )

    def _trail(self, row: Row) -> Trail:
        return [(f"Semaphore {row.name}", self.find_url(row.info.name))]

    verbs = (
        Verb("limit", "Change limit", limit),
        Verb("reset", "Reset limit", reset),
        Verb("evict", "Evict", evict, deletes=True),
    )


def _find(request: HttpRequest) -> Row:
    """Return the semaphore that the query names. Raises Http404."""
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
        f"The permit becomes free at once. {waiting}.",
        "The holder is not stopped. It learns that the permit is lost when it refreshes it or gives it back, with "
        "auto_renewal within a third of its lease. Until then, more than the limit may be working.",
    ]
