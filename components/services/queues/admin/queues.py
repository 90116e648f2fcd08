"""
The Queues page: the waiting, running and dead tasks of each TASKS alias on Redis. Other pages show the tasks of a
queue in a state, one task, the workers with what they run, and the periodic tasks.

The first page reads sizes and workers, in three round trips for each alias, and a chart if tasks are counted. Its
cost does not grow with the tasks. A list reads one page, and a search only its window. The page of a task that is
ready asks what the first page asks, to say why it waits. Search results are not refreshed automatically, because a
search reads a thousand tasks. No module is imported to find out the policy of a task, because the task may be dead
because its module is broken.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import ceil
from statistics import median

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.conf import conf
from components.control_room.pages import ControlRoomAdmin, Paging, searched
from components.control_room.verbs import Verb
from components.exceptions import UnknownFormat
from components.models import Queue
from components.services.queues import State, TaskInfo, TaskQueue
from components.services.queues.admin import filters as filter_page
from components.services.queues.admin.contents import Contents, is_sensitive, loaded, parts_of
from components.services.queues.admin.filters import Filters
from components.services.queues.admin.listing import overview_of, workers_of
from components.services.queues.admin.lookups import STATES, WORDS, QueuePage, find_service, find_state
from components.services.queues.admin.periodic import PERIODIC, rows
from components.services.queues.admin.rerun import ORIGIN, RERUN
from components.services.queues.admin.selections import title_of
from components.services.queues.admin.verbs import OF_TASKS, VERBS, trail_of
from components.services.queues.backend import redis_aliases
from components.services.queues.facts import saturated, unserved
from components.services.queues.failures import groups
from components.services.queues.worker.concurrency import Limit

_FIRST: Sequence[str | Promise] = [_("Task"), _("Priority"), "#", _("Enqueued")]
_LAST: Sequence[str | Promise] = [_("Attempts"), "#"]
#: The columns of the list of tasks in a state.
COLUMNS: Mapping[State, Sequence[str | Promise]] = {
    "ready": [*_FIRST, *_LAST],
    "delayed": [*_FIRST, _("Due"), *_LAST],
    "running": [*_FIRST, _("Started"), _("Progress"), _("Lease ends"), *_LAST],
    "dead": [*_FIRST, _("Error"), _("Finished"), *_LAST],
    "successful": [*_FIRST, _("Started"), _("Finished"), _("Took"), "#", *_LAST],
}

_MOST_NAMED = 3  # queues of a group of failures
_AT_ONCE = timedelta(seconds=1)  # what is due later than planned by more than this was put off


class QueueAdmin(ControlRoomAdmin):
    purpose = _("A queue keeps tasks until a worker runs them.")
    verbs = (*VERBS, *PERIODIC, RERUN)
    further_pages = (("workers", _("Workers")), ("periodic", _("Periodic tasks")))

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("", "changelist", self.overview),
            self.page("tasks/", "tasks", self.tasks),
            self.page("failures/", "failures", self.failures),
            self.page("task/", "task", self.task),
            self.page("workers/", "workers", self.workers),
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
        aliases, texts = redis_aliases(), searched(request)
        context = {
            "aliases": [
                overview_of(alias, request, self.url, is_alone=len(aliases) == 1) for alias in aliases
            ],
            "text": texts[0] if texts else "",
            "sort": request.GET.get("sort", ""),
            "has_chart": conf().count_services and request.user.has_perm("components.view_counter"),
        }
        return self.render(request, "admin/components/queues/overview.html", gettext("Queues"), context)

    def tasks(self, request: HttpRequest) -> HttpResponse:
        page, state = QueuePage(request), find_state(request)
        filters, contents = Filters(request), Contents(request)
        total, look, group = page.total(state), None, None
        if filters.group:
            group = filters.look_at_group(page, state, filter_page.WINDOW)
            paging = Paging.of(request, total=len(group.found))
            shown = group.found[paging.offset : paging.last]
            tasks = page.service.read(page.name, "dead", [(each.id, each.place.score) for each in shown])
        elif filters.given:
            look = filters.look(page, state)
            paging = Paging.of(request, total=len(look.found))
            tasks = look.found[paging.offset : paging.last]
        else:
            paging = Paging.of(request, total=total)
            tasks = page.service.tasks(page.name, state, offset=paging.offset, limit=paging.size)
        all_are_selected = request.GET.get("select") == "page"
        context = {
            "alias": page.alias,
            "queue": page.stats,
            "subject": self.subject(page.subject),
            "state": state,
            "state_word": WORDS[state],
            "tabs": [(tab, WORDS[tab], getattr(page.stats, tab)) for tab in STATES],
            "filters": filters,
            "text": filters.text,
            "window": filter_page.WINDOW,
            "look": look,
            "group": group,
            "group_title": title_of(groups(group.found)[0]) if group and group.found else "",
            "unsearched": total - look.offset - look.looked_at if look and look.after else 0,
            "durations": _durations(look.found) if look and state == "successful" else None,
            "columns": COLUMNS[state],
            "asked": {
                "alias": page.alias,
                "queue": page.name,
                "state": state,
                **filters.given,
                **{name: at for name, at in (("after", filters.after), ("offset", paging.offset)) if at},
            },
            "tasks": [contents.cut(info) for info in tasks],
            "may_see_contents": contents.may_see,
            "paging": paging,
            "verbs": self._verbs(request, state),
            "all_are_selected": all_are_selected,
        }
        # Tasks that arrive later must not be selected.
        live = not filters.given and not all_are_selected
        template = "admin/components/queues/tasks.html"
        title = gettext("Queue %(queue)s") % {"queue": page.name}
        return self.render(request, template, title, context, live=live)

    def failures(self, request: HttpRequest) -> HttpResponse:
        page, filters = QueuePage(request, may_be_all=True), Filters(request)
        look = page.failures.look(most=filter_page.WINDOW, after=filters.after, cut=filters.contents.cut)
        context = {
            "alias": page.alias,
            "queue": page.stats,
            "subject": self.subject(page.subject),
            "state": "dead",
            "tabs": [(tab, WORDS[tab], getattr(page.stats, tab)) for tab in STATES],
            "look": look,
            "groups": [
                (group, title_of(group), sorted(group.queues)[:_MOST_NAMED], len(group.queues) - _MOST_NAMED)
                for group in groups(look.found)
            ],
            "is_of_all": not page.name,
            "left": page.total("dead") - look.offset - look.looked_at if look.after else 0,
            "total": page.total("dead"),
            "after": filters.after,
            "verbs": self._verbs(request, "dead"),
        }
        template = "admin/components/queues/failures.html"
        title = (
            gettext("Failures of the queue %(queue)s") % {"queue": page.name}
            if page.name
            else gettext("Failures of all queues")
        )
        trail = trail_of(self, page.alias, page.name) if page.name else ()
        return self.render(request, template, title, context, trail=trail, live=False)

    def task(self, request: HttpRequest) -> HttpResponse:
        service, task_id, contents = find_service(request), request.GET.get("id", ""), Contents(request)
        try:
            info = service.get(task_id)
        except (UnknownFormat, ValueError) as error:
            unreadable = gettext("The stored task %(id)r cannot be read.") % {"id": task_id}
            raise Http404(str(error) if contents.may_see else unreadable) from error
        if info is None:
            gone = gettext(
                "There is no task %(id)r. It may have been deleted, its result may have expired, or it may have been "
                "removed from the dead tasks."
            )
            raise Http404(gone % {"id": task_id})
        seen = contents.cut(info)
        context = {
            "alias": service.alias,
            "task": seen,
            "origin": info.metadata.get(ORIGIN, ""),
            "can_rerun": contents.shows(info) and info.state in ("dead", "successful"),
            "failure": seen.errors[-1] if seen.errors and info.state != "successful" else None,
            "errors": [(error.exception_class_path, parts_of(error.traceback)) for error in seen.errors],
            "state_word": WORDS[info.state],
            "why": _why_it_waits(service, info, contents.shows(info)),
            "shows_contents": contents.shows(info),
            "is_sensitive": is_sensitive(info),
            "max_attempts": _max_attempts(service, info),
            "has_times": request.user.has_perm("components.view_counter"),
            "time_of_run": _time_of_run(info),
            "verbs": self._verbs(request, info.state),
        }
        trail, title = trail_of(self, service.alias, info.queue), gettext("Task %(id)s") % {"id": info.id}
        return self.render(request, "admin/components/queues/task.html", title, context, trail=trail)

    def _verbs(self, request: HttpRequest, state: State) -> list[Verb]:
        return [
            verb for verb, states in OF_TASKS.items() if state in states and self.may(request, verb.needs)
        ]

    def workers(self, request: HttpRequest) -> HttpResponse:
        text = request.GET.get("q", "").strip()
        found = {alias: workers_of(TaskQueue(alias), text) for alias in redis_aliases()}
        paging = Paging.of(request, total=max(map(len, found.values()), default=0))
        context = {
            "aliases": [(alias, each[paging.offset : paging.last]) for alias, each in found.items()],
            "paging": paging,
            "text": text,
            "purpose": gettext("A worker runs tasks. A poller makes delayed and periodic ones due."),
        }
        return self.render(request, "admin/components/queues/workers.html", gettext("Workers"), context)

    def periodic(self, request: HttpRequest) -> HttpResponse:
        may_see = Contents(request).may_see
        aliases = [(alias, rows(alias, may_see)) for alias in redis_aliases()]
        template = "admin/components/queues/periodic.html"
        purpose = gettext("A periodic task is put into its queue at the times of its schedule.")
        return self.render(
            request, template, gettext("Periodic tasks"), {"aliases": aliases, "purpose": purpose}
        )


def _why_it_waits(service: TaskQueue, info: TaskInfo, shows_limit: bool) -> str:
    """Return a sentence that says why a task waits; "" if it does not. The name of a limit may tell arguments."""
    if info.state == "delayed":
        if info.starts:
            last = info.errors[-1].exception_class_path if info.errors else gettext("an error")
            return gettext("It is tried again after %(error)s.") % {"error": last}
        if not info.due_at or info.due_at - (info.run_after or info.enqueued_at) < _AT_ONCE:
            return gettext("It is not due yet.")
        with suppress(Exception):  # the project's own code may name the limit
            task = loaded(info.name) if shows_limit else None
            if limit := task and Limit.of(task, info.args, info.kwargs, service.options):
                return gettext("There is no room for it under the limit %(limit)s.") % {"limit": limit.name}
        return gettext("It was put off: there was no room for it, or its worker ended.")
    if info.state != "ready":
        return ""
    queues, workers = service.overview()
    own = [queue for queue in queues if queue.name == info.queue]
    if any(queue.paused for queue in own):
        return gettext("Its queue is paused.")
    if unserved(own, workers):
        return gettext("No worker serves its queue.")
    if saturated(own, workers):
        return gettext("All slots of the workers that serve its queue are busy.")
    return gettext("It waits for its turn.")


def _time_of_run(info: TaskInfo) -> timedelta | None:
    """Return how long the latest run of a task took, or has taken so far; None if there is none."""
    if info.last_attempted_at is None or (info.state != "running" and info.finished_at is None):
        return None
    return max(timedelta(0), (info.finished_at or datetime.now(UTC)) - info.last_attempted_at)


def _durations(tasks: Sequence[TaskInfo]) -> dict[str, float] | None:
    """Return how long the runs of *tasks* that have ended took, in seconds; None if there are none."""
    times = (_time_of_run(info) for info in tasks if info.finished_at)
    took = sorted(time.total_seconds() for time in times if time is not None)
    if not took:
        return None
    within = took[ceil(0.95 * len(took)) - 1]
    return {"count": len(took), "median": median(took), "most_within": within, "longest": took[-1]}


def _max_attempts(service: TaskQueue, info: TaskInfo) -> int | None:
    """Return the most attempts of the task; None if this process has not loaded its policy."""
    task = loaded(info.name)
    if task is None:
        return None
    return getattr(task, "max_attempts", None) or service.options.max_attempts
