"""
The Queues page: what waits, what runs, what died, and who works, for each TASKS alias on Redis.

It looks through services/queues. The first page asks for sizes and workers, in three round trips for an alias, and
for a chart of what was counted, if tasks are; its cost does not grow with a queue. Lists and tasks are in tasks.py,
what workers are asked in workers.py, periodic tasks in periodic.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from components.conf import conf
from components.control_room.pages import Question as Action
from components.control_room.verbs import Done
from components.models import Queue
from components.services.queues import QueueStats, TaskQueue, WorkerInfo
from components.services.queues.admin.lookups import QueuePage
from components.services.queues.admin.periodic import PeriodicPages
from components.services.queues.admin.tasks import TaskPages
from components.services.queues.admin.workers import WorkerPages
from components.services.queues.backend import redis_aliases
from components.services.rows import LEASE, RowReader
from components.templatetags.control_room import grouped


@dataclass(frozen=True)
class AliasOverview:
    """What the first page shows of one TASKS alias."""

    alias: str
    queues: list[QueueStats]
    workers: list[WorkerInfo]

    @classmethod
    def of(cls, alias: str) -> AliasOverview:
        queues, workers = TaskQueue(alias).overview()
        workers.sort(key=lambda worker: (worker.host, worker.started_at, worker.id))
        return cls(alias, queues, workers)

    @property
    def unserved(self) -> list[str]:
        """Queues where tasks wait that no living worker takes."""
        served = {
            name
            for worker in self.workers
            if worker.alive and worker.kind == "worker" and not worker.is_quiet
            for name in worker.queues
        }
        if "*" in served:
            return []
        return [
            queue.name
            for queue in self.queues
            if queue.ready and not queue.paused and queue.name not in served
        ]


class QueueAdmin(TaskPages, WorkerPages, PeriodicPages):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("pause/", "pause", self.pause, needs="change"),
            self.page("resume/", "resume", self.resume, needs="change"),
            *super().get_urls(),
        ]

    def subject(self, name: str) -> Queue:
        return Queue(name=name)

    def find_url(self, name: str) -> str:
        alias, _, queue = name.partition("/")
        if not queue:
            return self.url("changelist")
        return self.url("tasks", alias=alias, queue=queue)

    def overview(self, request: HttpRequest) -> HttpResponse:
        context = {
            "aliases": [AliasOverview.of(alias) for alias in redis_aliases()],
            "late": _lateness(request),
            "has_chart": conf().count_services and request.user.has_perm("components.view_counter"),
        }
        return self.render(request, "admin/components/queues/overview.html", "Queues", context)

    def pause(self, request: HttpRequest) -> HttpResponse:
        page = QueuePage.of(request)
        effects = (
            "Workers take no more tasks from it; what runs already is finished.",
            "New tasks are accepted, and wait until the queue is resumed.",
        )
        return self._switch(request, page, "Pause", page.service.pause, effects, is_idle=page.stats.paused)

    def resume(self, request: HttpRequest) -> HttpResponse:
        page = QueuePage.of(request)
        effects = ("Workers take tasks from it again, beginning now.",)
        return self._switch(
            request, page, "Resume", page.service.resume, effects, is_idle=not page.stats.paused
        )

    def _switch(
        self,
        request: HttpRequest,
        page: QueuePage,
        verb: str,
        act: Callable[[str], bool],
        effects: Iterable[str],
        *,
        is_idle: bool,
    ) -> HttpResponse:
        waiting = f"{grouped(page.stats.ready)} ready, {grouped(page.stats.delayed)} delayed"
        action = Action(
            title=f"{verb} the queue {page.name}",
            button=f"{verb} {page.name}",
            effects=[f"Tasks in it now: {waiting}.", *effects],
            run=lambda: Done(f"{verb}d the queue {page.name} ({waiting})." if act(page.name) else ""),
            subject=page.subject,
            idle=f"The queue {page.name} {'is paused already' if verb == 'Pause' else 'is not paused'}.",
            is_idle=is_idle,
            back=self.url("tasks", alias=page.alias, queue=page.name),
        )
        return self.confirm(request, action, trail=self.trail(page.alias, page.name))


def _lateness(request: HttpRequest) -> float | None:
    """Seconds for which cached rows have waited for a daemon, if that is too long and the user may know."""
    if not request.user.has_perm("components.view_cachedrow"):
        return None
    late = RowReader().lateness()
    return late if late > LEASE else None
