"""
The Logs page: what of each job is in flight, who counts it and how fast, how far behind, and what was rejected.

It looks through look_at(), four round trips for a job, whatever is in it, and one more for the rejected lines of an
aggregation. What is done is in log_verbs.py, what was counted in traffic.py.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from components.control_room.base import Paging, Permission
from components.services.logs import MOST_DEAD, dead_chunks, list_jobs, look_at
from components.services.logs.admin.log_jobs import Job
from components.services.logs.admin.log_verbs import VERBS, LogVerbs
from components.services.logs.admin.traffic import TrafficPages


class LogJobAdmin(TrafficPages, LogVerbs):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("job/", "job", self.job),
            self.page("dead/", "dead", self.dead),
            *super().get_urls(),
        ]

    def may(self, request: HttpRequest, what: Permission) -> bool:
        if what == "resend":
            return self._has(request, "resend")
        if what == "discard":
            return self._has(request, "discard") and self.has_view_permission(request)
        return super().may(request, what)

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self._has(request, "view") or self._has(request, "resend")

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return self._has(request, "remove")

    def _has(self, request: HttpRequest, verb: str) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.{verb}_{self.opts.model_name}")

    def overview(self, request: HttpRequest) -> HttpResponse:
        names = list_jobs()
        paging = Paging.of(request, total=len(names))
        jobs = [Job(look_at(name)) for name in names[paging.offset : paging.last]]
        return self.render(
            request, "admin/components/logs/list.html", "Logs", {"jobs": jobs, "paging": paging}
        )

    def job(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        # Read here: what fails while a page is rendered becomes no page that says so.
        aggregations = [(each, each.samples()) for each in job.aggregations]
        context = {
            "job": job,
            "info": job.status,
            "aggregations": aggregations,
            "subject": self.subject(job.id),
        }
        return self.render(request, "admin/components/logs/job.html", f"Job {job.name}", context)

    def dead(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        aggregation = job.aggregation(request)
        found = dead_chunks(job.id, aggregation.id)
        paging = Paging.of(request, total=len(found))
        verbs = [verb for verb in VERBS if self.may(request, verb.name)]
        all_are_selected = request.GET.get("select") == "page" and bool(verbs)
        context = {
            "job": job,
            "aggregation": aggregation,
            "chunks": found[paging.offset : paging.last],
            "paging": paging,
            "is_cut": len(found) >= MOST_DEAD,
            "verbs": verbs,
            "all_are_selected": all_are_selected,
        }
        return self.render(
            request,
            "admin/components/logs/dead.html",
            f"Dead chunks of {aggregation.name}",
            context,
            trail=self.trail(job),
            live=not all_are_selected,  # what arrives later is not to be found selected
        )
