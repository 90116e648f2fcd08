"""
The Queues page: the waiting, running and dead tasks, and the workers, of each TASKS alias on Redis. Other pages show
the tasks of a queue in a state, one task, and the periodic tasks.

The first page reads sizes and workers, in three round trips for each alias, the version of the server once a minute,
and a chart if tasks are counted. Its cost does not grow with the queues. A list reads one page, and a search only its
window. Search results are not refreshed automatically, because a search reads a thousand tasks. No module is imported
to find out the policy of a task, because the task may be dead because its module is broken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern

from components.conf import conf
from components.control_room.pages import ControlRoomAdmin, Paging
from components.control_room.verbs import Verb
from components.exceptions import UnknownFormat
from components.models import Queue
from components.servers import server_name
from components.services.queues import QueueStats, State, TaskInfo, TaskQueue, WorkerInfo
from components.services.queues.admin.contents import Contents, is_sensitive, loaded
from components.services.queues.admin.lookups import STATES, QueuePage, find_service, find_state
from components.services.queues.admin.periodic import RUN, Row
from components.services.queues.admin.selections import WINDOW
from components.services.queues.admin.verbs import OF_TASKS, VERBS, trail_of
from components.services.queues.backend import redis_aliases
from components.services.queues.facts import unserved
from components.services.queues.periodic_tasks import overview
from components.services.rows import LEASE, RowReader

#: The columns of the list of tasks in a state.
COLUMNS: Mapping[State, Sequence[str]] = {
    "ready": ["Task", "Priority", "#", "Enqueued", "Attempts", "#"],
    "delayed": ["Task", "Priority", "#", "Enqueued", "Due", "Attempts", "#"],
    "running": ["Task", "Priority", "#", "Enqueued", "Started", "Progress", "Lease ends", "Attempts", "#"],
    "dead": ["Task", "Priority", "#", "Enqueued", "Error", "Finished", "Attempts", "#"],
    "successful": ["Task", "Priority", "#", "Enqueued", "Started", "Finished", "Attempts", "#"],
}


@dataclass(frozen=True)
class AliasOverview:
    """One TASKS alias as the first page shows it."""

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
        """Return the queues in which tasks wait that no living worker takes."""
        return [queue.name for queue in unserved(self.queues, self.workers)]


class QueueAdmin(ControlRoomAdmin):
    verbs = (*VERBS, RUN)

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("tasks/", "tasks", self.tasks),
            self.page("task/", "task", self.task),
            self.page("periodic/", "periodic", self.periodic),
            *super().get_urls(),
        ]

    def subject(self, name: str) -> Queue:
        return Queue(name=name)

    def name_of(self, subject: str) -> str:
        return subject

    def find_url(self, name: str) -> str:
        alias, _, queue = name.partition("/")
        if not queue:
            return self.url("changelist")
        return self.url("tasks", alias=alias, queue=queue)

    def overview(self, request: HttpRequest) -> HttpResponse:
        context = {
            "aliases": [AliasOverview.of(alias) for alias in redis_aliases()],
            "late": _lateness(request),
            "server": server_name(),
            "has_chart": conf().count_services and request.user.has_perm("components.view_counter"),
        }
        return self.render(request, "admin/components/queues/overview.html", "Queues", context)

    def tasks(self, request: HttpRequest) -> HttpResponse:
        page, state = QueuePage.of(request), find_state(request)
        text, contents = request.GET.get("q", "").strip(), Contents.of(request)
        total = getattr(page.stats, state)
        if text:
            matches = list(page.service.search(page.name, state, text, window=WINDOW, shows=contents.shows))
            paging = Paging.of(request, total=len(matches))
            tasks = matches[paging.offset : paging.last]
        else:
            paging = Paging.of(request, total=total)
            tasks = page.service.tasks(page.name, state, offset=paging.offset, limit=paging.size)
        all_are_selected = request.GET.get("select") == "page"
        context = {
            "alias": page.alias,
            "queue": page.stats,
            "subject": self.subject(page.subject),
            "state": state,
            "tabs": [(tab, getattr(page.stats, tab)) for tab in STATES],
            "text": text,
            "window": WINDOW,
            "searched": min(WINDOW, total),
            "unsearched": max(0, total - WINDOW),
            "columns": COLUMNS[state],
            "asked": {
                "alias": page.alias,
                "queue": page.name,
                "state": state,
                **({"q": text} if text else {}),
            },
            "tasks": [contents.cut(info) for info in tasks],
            "may_see_contents": contents.may_see,
            "paging": paging,
            "verbs": self._verbs(request, state),
            "all_are_selected": all_are_selected,
        }
        # Tasks that arrive later must not be selected.
        live = not text and not all_are_selected
        template = "admin/components/queues/tasks.html"
        return self.render(request, template, f"Queue {page.name}", context, live=live)

    def task(self, request: HttpRequest) -> HttpResponse:
        service, task_id, contents = find_service(request), request.GET.get("id", ""), Contents.of(request)
        try:
            info = service.get(task_id)
        except (UnknownFormat, ValueError) as error:
            reason = str(error) if contents.may_see else f"The stored task {task_id!r} cannot be read."
            raise Http404(reason) from error
        if info is None:
            raise Http404(
                f"There is no task {task_id!r}. It may have been deleted, its result may have expired, or it may "
                "have been removed from the dead tasks."
            )
        context = {
            "alias": service.alias,
            "task": contents.cut(info),
            "shows_contents": contents.shows(info),
            "is_sensitive": is_sensitive(info),
            "max_attempts": _max_attempts(service, info),
            "verbs": self._verbs(request, info.state),
        }
        trail = trail_of(self, service.alias, info.queue)
        return self.render(
            request, "admin/components/queues/task.html", f"Task {info.id}", context, trail=trail
        )

    def _verbs(self, request: HttpRequest, state: State) -> list[Verb]:
        return [
            verb for verb, states in OF_TASKS.items() if state in states and self.may(request, verb.needs)
        ]

    def periodic(self, request: HttpRequest) -> HttpResponse:
        may_see = Contents.of(request).may_see
        aliases = [(alias, [Row.of(info, may_see) for info in overview(alias)]) for alias in redis_aliases()]
        template = "admin/components/queues/periodic.html"
        return self.render(request, template, "Periodic tasks", {"aliases": aliases})


def _lateness(request: HttpRequest) -> float | None:
    """Return how long cached rows have waited for a daemon, if that is too long and the user may see it."""
    if not request.user.has_perm("components.view_cachedrow"):
        return None
    late = RowReader().lateness()
    return late if late > LEASE else None


def _max_attempts(service: TaskQueue, info: TaskInfo) -> int | None:
    """Return the most attempts of the task; None if this process has not loaded its policy."""
    task = loaded(info.name)
    if task is None:
        return None
    return getattr(task, "max_attempts", None) or service.options.max_attempts
