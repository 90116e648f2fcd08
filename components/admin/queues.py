"""
The Queues page: what waits, what runs, what died, and who works, for each TASKS alias on Redis.

It looks through services/queues and changes only one thing, whether a queue is paused. A page asks for no
more than it shows: sizes, workers, or one page of a list; its cost does not grow with a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import get_args

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern

from components.admin.base import Action, ControlRoomAdmin, Paging, Trail
from components.backends.tasks import redis_aliases
from components.exceptions import InvalidQueueName, UnknownFormat
from components.models import Queue
from components.services.queues import QueueStats, State, TaskQueue, WorkerInfo
from components.services.queues.tasks import check_queue
from components.templatetags.control_room import grouped

STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True)
class AliasOverview:
    """What the first page shows of one TASKS alias."""

    alias: str
    queues: list[QueueStats]
    workers: list[WorkerInfo]

    @classmethod
    def of(cls, alias: str) -> AliasOverview:
        service = TaskQueue(alias)
        workers = sorted(service.workers(), key=lambda worker: (worker.host, worker.started_at, worker.id))
        return cls(alias, service.all_stats(), workers)

    @property
    def unserved(self) -> list[str]:
        """Queues where tasks wait that no living worker takes."""
        served = {
            name
            for worker in self.workers
            if worker.alive and worker.kind == "worker"
            for name in worker.queues
        }
        if "*" in served:
            return []
        return [
            queue.name
            for queue in self.queues
            if queue.ready and not queue.paused and queue.name not in served
        ]


@dataclass(frozen=True)
class QueuePage:
    """The queue that a request's query names."""

    service: TaskQueue
    stats: QueueStats

    @classmethod
    def of(cls, request: HttpRequest) -> QueuePage:
        service = _service(request)
        try:
            name = check_queue(request.GET.get("queue", ""))
        except InvalidQueueName as error:
            raise Http404(str(error)) from None
        return cls(service, service.stats(name))

    @property
    def alias(self) -> str:
        return self.service.alias

    @property
    def name(self) -> str:
        return self.stats.name

    @property
    def subject(self) -> Queue:
        return Queue(name=f"{self.alias}/{self.name}")


class QueueAdmin(ControlRoomAdmin):
    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("tasks/", "tasks", self.tasks),
            self.page("task/", "task", self.task),
            self.page("pause/", "pause", self.pause, acts=True),
            self.page("resume/", "resume", self.resume, acts=True),
            *super().get_urls(),
        ]

    def subject_url(self, name: str) -> str:
        alias, _, queue = name.partition("/")
        return self.url("tasks", alias=alias, queue=queue)

    def overview(self, request: HttpRequest) -> HttpResponse:
        context = {"aliases": [AliasOverview.of(alias) for alias in redis_aliases()]}
        return self.render(request, "admin/components/queues/overview.html", "Queues", context)

    def tasks(self, request: HttpRequest) -> HttpResponse:
        page, state = QueuePage.of(request), _state(request)
        paging = Paging.of(request, total=getattr(page.stats, state))
        context = {
            "alias": page.alias,
            "queue": page.stats,
            "subject": page.subject,
            "state": state,
            "tabs": [(tab, getattr(page.stats, tab)) for tab in STATES],
            "tasks": page.service.tasks(page.name, state, offset=paging.offset, limit=paging.size),
            "paging": paging,
        }
        return self.render(request, "admin/components/queues/tasks.html", f"Queue {page.name}", context)

    def task(self, request: HttpRequest) -> HttpResponse:
        service, task_id = _service(request), request.GET.get("id", "")
        try:
            info = service.get(task_id)
        except (UnknownFormat, ValueError) as error:
            raise Http404(str(error)) from error
        if info is None:
            raise Http404(
                f"There is no task {task_id!r}. Its result may have expired, or the dead set may have let it go."
            )
        context = {"alias": service.alias, "task": info}
        trail = self._trail(service.alias, info.queue)
        return self.render(
            request, "admin/components/queues/task.html", f"Task {info.id}", context, trail=trail
        )

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
            run=lambda: act(page.name),
            subject=page.subject,
            done=f"{verb}d the queue {page.name} ({waiting}).",
            idle=f"The queue {page.name} {'is paused already' if verb == 'Pause' else 'is not paused'}.",
            is_idle=is_idle,
            back=self.url("tasks", alias=page.alias, queue=page.name),
        )
        return self.confirm(request, action, trail=self._trail(page.alias, page.name))

    def _trail(self, alias: str, queue: str) -> Trail:
        return [(queue, self.url("tasks", alias=alias, queue=queue))]


def _service(request: HttpRequest) -> TaskQueue:
    alias = request.GET.get("alias", "")
    if alias not in redis_aliases():
        raise Http404(f"No TASKS alias {alias!r} is served by Redis.")
    return TaskQueue(alias)


def _state(request: HttpRequest) -> State:
    wanted = request.GET.get("state", STATES[0])
    for state in STATES:
        if state == wanted:
            return state
    raise Http404(f"Tasks have no state {wanted!r}.")
