"""
The Logs page: for each job, the bytes in flight, the workers with their speed and lag, and the rejected lines. It
also shows the traffic of a job: lines of days by country, region and city, as bars, as a table and as CSV.

A page of a job takes four round trips, however much is in it, and one more for the rejected lines of an aggregation.
"""

import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin, Page, Paging, as_csv
from components.control_room.verbs import Action, Done, Trail, Verb
from components.exceptions import InvalidValue
from components.formatting import grouped
from components.services.logs import MOST_DEAD, MOST_WAITING, dead_chunks, list_jobs, look_at
from components.services.logs.admin import hours
from components.services.logs.admin.dead_chunks import DISCARD, RESEND, dead_title
from components.services.logs.admin.jobs import Counted, Job
from components.services.logs.admin.traffic import (
    LEVELS,
    LIVELY,
    MOST_CELLS,
    OFFERED,
    WRONG,
    Asked,
    around,
    full_name,
    parts,
    read,
    shown,
    title_of,
)
from components.services.logs.traffic import MOST_ROWS, NAMES, Traffic, sheet


class LogJobAdmin(ControlRoomAdmin):
    """The pages of logs, and their actions."""

    purpose = _("The lines of log files are copied into Redis, and counted there by workers.")
    looks = ("view", "resend")

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("job/", "job", self.job),
            self.page("dead/", "dead", self.dead),
            self.page("traffic/", "traffic", self.traffic),
            self.page("csv/", "csv", self.download),
            self.page("hours/", "hours", self.hours),
            *super().get_urls(),
        ]

    def overview(self, request: HttpRequest) -> HttpResponse:
        names = list_jobs()
        paging = Paging.of(request, total=len(names))
        jobs = [Job(look_at(name)) for name in names[paging.offset : paging.last]]
        return self.render(
            request, "admin/components/logs/list.html", gettext("Logs"), {"jobs": jobs, "paging": paging}
        )

    def job(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        # Read here: an error while the template is rendered would not become a page that reports it.
        aggregations = [(each, each.samples()) for each in job.aggregations]
        context = {
            "job": job,
            "info": job.status,
            "aggregations": aggregations,
            "subject": self.subject(job.id),
        }
        return self.render(request, "admin/components/logs/job.html", job.title, context)

    def dead(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        aggregation = job.aggregation(request)
        found = dead_chunks(job.id, aggregation.id)
        paging = Paging.of(request, total=len(found))
        verbs = [verb for verb in (RESEND, DISCARD) if self.may(request, verb.needs)]
        all_are_selected = request.GET.get("select") == "page" and bool(verbs)
        context = {
            "job": job,
            "aggregation": aggregation,
            "chunks": found[paging.offset : paging.last],
            "paging": paging,
            "is_cut": len(found) >= MOST_DEAD,
            "verbs": verbs,
            "asked": {"job": job.id, "aggregation": aggregation.id},
            "all_are_selected": all_are_selected,
        }
        return self.render(
            request,
            "admin/components/logs/dead.html",
            dead_title(aggregation),
            context,
            trail=job.trail(self),
            live=not all_are_selected,  # chunks that arrive later must not be selected
        )

    def find_url(self, name: str) -> str:
        return self.url("job", job=name)

    def leave(self, request: HttpRequest) -> Action:
        job = Job.of(request)
        name = request.GET.get("aggregation", "")
        found = next((each for each in job.aggregations if each.id == name), None)
        about = {"name": found.name if found else self.label(name), "job": job.name}

        def run() -> Done:
            if found:
                found.service.leave()
            return Done(gettext("Removed the aggregation %(name)s from the job %(job)s.") % about)

        return Action(
            of=job.id,
            trail=job.trail(self),
            title=gettext("Remove the aggregation %(name)s") % about,
            effects=_effects_of_leaving(found) if found else [],
            run=run if found else None,
            idle=gettext("No aggregation %(name)s takes part in the job %(job)s.") % about,
        )

    verbs = (RESEND, DISCARD, Verb("leave", _("Remove"), leave, needs="remove", deletes=True))

    def traffic(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        asked, days = Asked.of(request, job.id), Traffic(job.id).days()
        offered = [(each, asked.lately(each)) for each in OFFERED]
        context: dict[str, Any] = {"job": job, "asked": asked, "offered": offered}
        if not days:
            return self._answer(request, asked, {**context, "is_new": True})
        context |= {"earliest": days[0].day, "latest": days[-1].day}
        try:
            first, last = asked.period(days[-1].day)
            context |= {"first": first, "last": last}
            context |= shown(request, asked, first, last)
        except WRONG as error:
            context["problem"] = str(error)
        return self._answer(request, asked, context)

    def hours(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        filters, days = hours.Filters.of(request, job.id), Traffic(job.id).days()
        context: dict[str, Any] = {"job": job, "filters": filters, "is_new": not days}
        if days:
            try:
                first, last = filters.period(days[-1].day)
                context |= {"first": first, "last": last}
                context |= hours.shown(filters, filters.find(first, last), filters.find_values(first, last))
            except WRONG as error:
                context["problem"] = str(error)
        problem = context.get("problem")
        page = f"{self.url('traffic')}?{Asked(job.id).query}"
        return self.render(
            request,
            "admin/components/logs/hours.html",
            gettext("Traffic by hour and status"),
            context,
            trail=[*job.trail(self), (gettext("Traffic"), page)],
            live=not problem,
            status=400 if problem else 200,
        )

    def download(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        asked, days = Asked.of(request, job.id), Traffic(job.id).days()
        try:
            if not days:
                raise InvalidValue(gettext("Nothing was counted yet."))
            first, last = asked.period(days[-1].day)
            top = max(1, min(MOST_ROWS, MOST_CELLS // (abs((last - first).days) + 1)))
            report = read(asked, first, last, top)
        except WRONG as error:
            return HttpResponse(f"{error}\n", status=400, content_type="text/plain; charset=utf-8")
        named = "-".join([job.id, *parts(report.within), report.level])
        slug = re.sub(r"[^A-Za-z0-9]+", "-", named).strip("-")[:80]
        return as_csv(f"traffic-{slug}-{first}-{last}.csv", sheet(report), names=NAMES)

    def _answer(self, request: HttpRequest, asked: Asked, context: dict[str, Any]) -> Page:
        """Return the page of traffic, with a form that picks the time and the error, if there is one, above it."""
        problem, report = context.get("problem"), context.get("report")
        place = full_name(asked.within) if asked.within else ""
        is_lively = report is None or (len(report.days) <= LIVELY and report.level != LEVELS[-1])
        return self.render(
            request,
            "admin/components/logs/traffic.html",
            title_of(report.level if report else "", place),
            context,
            trail=self._trail_of(context["job"], asked),
            live=not problem and is_lively,
            status=400 if problem else 200,
        )

    def _trail_of(self, job: Job, asked: Asked) -> Trail:
        page = self.url("traffic")
        trail = [*job.trail(self)]
        if not asked.within:
            return trail
        trail.append((gettext("Traffic"), f"{page}?{asked.at(LEVELS[0], '')}"))
        for number, place in enumerate(around(asked.within)[:-1][: len(LEVELS) - 1], 1):
            trail.append((full_name(place), f"{page}?{asked.at(LEVELS[number], place)}"))
        return trail


def _effects_of_leaving(found: Counted) -> list[str]:
    status = found.status
    lost = status.waiting + status.claimed + status.dead
    about = {
        "lost": grouped(lost),
        "waiting": found.waiting,
        "held": grouped(status.claimed),
        "dead": grouped(status.dead),
    }
    if status.waiting >= MOST_WAITING:
        what = gettext(
            "At least %(lost)s chunks that it has not counted are lost to it: waiting %(waiting)s, held by workers "
            "%(held)s, dead %(dead)s."
        )
    else:
        what = ngettext(
            "%(lost)s chunk that it has not counted is lost to it: waiting %(waiting)s, held by workers %(held)s, "
            "dead %(dead)s.",
            "%(lost)s chunks that it has not counted are lost to it: waiting %(waiting)s, held by workers %(held)s, "
            "dead %(dead)s.",
            lost,
        )
    return [
        what % about,
        gettext("Its counts stay, and other aggregations continue as before."),
        gettext(
            "Its workers: %(count)s. Stop them first: a worker that finds it gone ends with an error, and a worker "
            "that starts makes it join again."
        )
        % {"count": grouped(found.alive)},
        gettext(
            "If it joins again, it gets everything that is then in flight. Chunks that it has counted before are "
            "counted twice."
        ),
        gettext("This cannot be undone."),
    ]
