"""
The Semaphores page: the state of each semaphore, with its holders and waiters. Its limit can be changed, and holders
can be evicted.

A page of the list costs five round trips, however many semaphores there are, and the page of one semaphore five. URLs
name a permit by its unique id, so a later holder is never evicted by mistake.
"""

from dataclasses import dataclass

from django import forms
from django.core.validators import MaxValueValidator
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin, Paging, who
from components.control_room.verbs import Action, Done, Trail, Verb, filled
from components.exceptions import ForeignPermit
from components.formatting import duration, grouped, legible, mean, shortened
from components.services.counters import pattern_of
from components.services.counters.charts import Chart, Gauge
from components.services.semaphores import HolderInfo, SemaphoreControls, SemaphoreInfo, SemaphoreReader
from components.services.semaphores.permit import MOST

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
    def use(self) -> Gauge | None:
        """Return how many permits were in use in the last two hours; None if nobody had one."""
        levels = {each.at: each.most for each in self.info.use}
        return Gauge.of(gettext("Permits in use"), levels) if any(levels.values()) else None

    @property
    def mean_wait(self) -> float | None:
        return mean(self.info.total_waited, self.info.waits)

    @property
    def is_over(self) -> bool:
        """Return whether more is in use than the limit allows, because the limit was lowered."""
        return self.info.limit is not None and self.info.used > self.info.limit

    @property
    def limit(self) -> str:
        """Return the limit with its origin."""
        if self.info.override is None:
            return gettext("%(limit)s, as in the code") % {"limit": grouped(self.info.limit or 0)}
        if self.info.declared is None:
            return gettext("%(limit)s, set by hand") % {"limit": grouped(self.info.override)}
        return gettext("%(limit)s, set by hand; %(declared)s in the code") % {
            "limit": grouped(self.info.override),
            "declared": grouped(self.info.declared),
        }


class LimitForm(forms.Form):
    """The form for changing the limit."""

    limit = forms.IntegerField(
        label=_("Limit"),
        min_value=1,
        validators=[MaxValueValidator(MOST)],
        help_text=_(
            "It applies instead of the limit in the code, in all processes and at once, until it is reset."
        ),
        widget=forms.NumberInput(attrs={"autocomplete": "off"}),
    )


class SemaphoreAdmin(ControlRoomAdmin):
    purpose = _("A semaphore limits how many callers do something at the same time.")

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
            return [Row(info) for info in reader.page(offset=paging.offset, limit=paging.size, with_use=True)]

        return self.list_page(
            request,
            "admin/components/semaphores/list.html",
            find=lambda text: text if reader.find(text) else None,
            total=reader.count,
            rows=rows,
        )

    def semaphore(self, request: HttpRequest) -> HttpResponse:
        row = _find(request, with_use=True)
        info, controls = row.info, SemaphoreControls(row.info.name)
        paging = Paging.of(request, total=info.holders)
        title_of_use = gettext("Permits in use, of %(limit)s") % {"limit": grouped(info.limit or 0)}
        context = {
            "row": row,
            "info": info,
            "subject": self.subject(info.name),
            "chart": Chart([use], title_of_use) if (use := row.use) else None,
            "pattern": pattern_of(info.name),
            "measured": _measured() if request.user.has_perm("components.view_counter") else [],
            "paging": paging,
            "holders": controls.holders(offset=paging.offset, limit=paging.size),
            "waiters": controls.waiters(limit=WAITERS) if info.waiting else [],
        }
        template = "admin/components/semaphores/semaphore.html"
        return self.render(request, template, _title(row), context)

    def limit(self, request: HttpRequest) -> Action:
        row = _find(request)
        info, form = row.info, filled(LimitForm, request, limit=row.info.limit)

        def run() -> Done:
            limit = form.cleaned_data["limit"]
            if limit == info.override:
                idle = gettext("The limit of the semaphore %(semaphore)s is %(limit)s already.")
                return Done(idle=idle % {"semaphore": row.name, "limit": grouped(limit)})
            SemaphoreControls(info.name).set_limit(limit)
            said = gettext("Set the limit of the semaphore %(semaphore)s to %(limit)s. It was %(former)s.")
            return Done(said % {"semaphore": row.name, "limit": grouped(limit), "former": row.limit})

        return Action(
            of=row.info.name,
            trail=self._trail(row),
            title=gettext("Change the limit of %(semaphore)s") % {"semaphore": row.name},
            effects=[
                gettext("The limit is %(limit)s. Permits in use: %(used)s; callers waiting: %(waiting)s.")
                % {"limit": row.limit, "used": grouped(info.used), "waiting": grouped(info.waiting)},
                gettext(
                    "Holders keep their permits: under a lower limit, nobody gets one until enough have been given "
                    "back."
                ),
                gettext("Under a higher limit, the first waiters get theirs at once."),
            ],
            run=run,
            form=form,
        )

    def reset(self, request: HttpRequest) -> Action:
        row = _find(request)
        name, declared = row.info.name, row.info.declared

        def run() -> Done:
            SemaphoreControls(name).reset_limit()
            said = gettext(
                "Reset the limit of the semaphore %(semaphore)s to that in the code. It was %(former)s."
            )
            return Done(said % {"semaphore": row.name, "former": row.limit})

        becomes = gettext("The limit in the code applies again, in all processes and at once.")
        if declared is not None:
            becomes = gettext(
                "The limit in the code applies again, in all processes and at once: %(declared)s."
            ) % {"declared": grouped(declared)}

        return Action(
            of=row.info.name,
            trail=self._trail(row),
            title=gettext("Reset the limit of %(semaphore)s") % {"semaphore": row.name},
            effects=[
                gettext("The limit is %(limit)s.") % {"limit": row.limit},
                becomes,
                gettext(
                    "Holders keep their permits. If the limit rises, the first waiters get theirs at once."
                ),
            ],
            run=None if row.info.override is None else run,
            idle=gettext("The limit of the semaphore %(semaphore)s is already that in the code.")
            % {"semaphore": row.name},
            # A semaphore that no code has declared disappears from the list.
            back="" if declared is not None else self.url("changelist"),
        )

    def evict(self, request: HttpRequest) -> Action:
        row, permit = _find(request), request.GET.get("permit", "")
        controls = SemaphoreControls(row.info.name)
        try:
            holder = controls.holder(permit)
        except ForeignPermit:
            raise Http404(
                gettext("The semaphore %(semaphore)s has no permit %(permit)r.")
                % {"semaphore": row.name, "permit": permit}
            ) from None

        def run() -> Done:
            if holder is None or not controls.evict(permit):
                return Done()
            said = gettext("Took a permit of the semaphore %(semaphore)s away from %(holder)s.")
            return Done(said % {"holder": _who(holder), "semaphore": row.name})

        return Action(
            of=row.info.name,
            trail=self._trail(row),
            title=gettext("Take a permit of %(semaphore)s away") % {"semaphore": row.name},
            effects=_effects(row, holder) if holder else [],
            run=run if holder else None,
            idle=gettext(
                "Nothing to take away: nobody holds that permit of the semaphore %(semaphore)s any more."
            )
            % {"semaphore": row.name},
        )

    def _trail(self, row: Row) -> Trail:
        return [(_title(row), self.find_url(row.info.name))]

    verbs = (
        Verb("limit", _("Change the limit"), limit),
        Verb("reset", _("Reset the limit"), reset),
        Verb("evict", _("Take away"), evict, deletes=True),
    )


def _find(request: HttpRequest, *, with_use: bool = False) -> Row:
    name = request.GET.get("semaphore", "")
    info = SemaphoreReader().find(name, with_use=with_use)
    if not name or info is None:
        raise Http404(
            gettext("There is no semaphore %(name)r, or nobody has used it for a month.") % {"name": name}
        )
    return Row(info)


def _measured() -> list[tuple[str, str, str]]:
    """Return the events whose times are measured, and what their charts say."""
    return [
        ("semaphores-held", gettext("Given back"), gettext("How long permits were held")),
        ("semaphores-waited", gettext("Waits"), gettext("How long callers waited")),
        ("semaphores-refused", gettext("Refused"), gettext("How long callers waited in vain")),
    ]


def _title(row: Row) -> str:
    return gettext("Semaphore %(semaphore)s") % {"semaphore": row.name}


def _who(holder: HolderInfo) -> str:
    return who(holder.holder, gettext("an unknown holder with the permit %(permit)s") % {"permit": holder.id})


def _effects(row: Row, holder: HolderInfo) -> list[str]:
    waiting = row.info.waiting
    freed = ngettext(
        "The permit becomes free at once. %(count)s caller waits.",
        "The permit becomes free at once. %(count)s callers wait.",
        waiting,
    ) % {"count": grouped(waiting)}
    return [
        gettext(
            "The permit is held by %(holder)s. It counts as %(weight)s, and expires in %(time)s if it is not "
            "renewed."
        )
        % {"holder": _who(holder), "weight": grouped(holder.weight), "time": duration(holder.remaining)},
        freed if waiting else gettext("The permit becomes free at once. Nobody waits."),
        gettext(
            "The holder is not stopped. It learns that the permit is lost when it renews it or gives it back, "
            "with auto_renewal within a third of its lease. Until then, more callers than the limit allows may be "
            "working."
        ),
    ]
