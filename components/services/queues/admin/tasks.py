"""
The tasks of a queue: the list of a state, with its search, one task, and what can be done to them (verbs.py).

A list costs its page, and a search the window it looks at, whatever the queue holds. Searches do not refresh
themselves: each reads a thousand tasks. No module is imported to learn of a task's policy, since a task may be dead
because its module is broken.
"""

from __future__ import annotations

from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern

from components.control_room.pages import ControlRoomAdmin, Paging
from components.control_room.pages import Question as Action
from components.control_room.verbs import Trail
from components.exceptions import UnknownFormat
from components.services.queues import State, TaskInfo, TaskQueue
from components.services.queues.admin.contents import Contents, is_sensitive, loaded
from components.services.queues.admin.lookups import STATES, QueuePage, find_service, find_state
from components.services.queues.admin.selections import WINDOW, Selection
from components.services.queues.admin.verbs import DELETE, VERBS, Verb


class TaskPages(ControlRoomAdmin):
    """Pages of lists and tasks, and of each verb."""

    def get_urls(self) -> list[URLPattern]:
        verbs = [
            self.page(f"{verb.name}/", verb.name, partial(self.act, verb), needs=verb.needs) for verb in VERBS
        ]
        return [
            self.page("tasks/", "tasks", self.tasks),
            self.page("task/", "task", self.task),
            *verbs,
            *super().get_urls(),
        ]

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
            "subject": page.subject,
            "state": state,
            "tabs": [(tab, getattr(page.stats, tab)) for tab in STATES],
            "text": text,
            "window": WINDOW,
            "searched": min(WINDOW, total),
            "unsearched": max(0, total - WINDOW),
            "tasks": [contents.cut(info) for info in tasks],
            "may_see_contents": contents.may_see,
            "paging": paging,
            "verbs": self._verbs(request, state),
            "all_are_selected": all_are_selected,
        }
        # What arrives later is not to be found selected.
        live = not text and not all_are_selected
        template = "admin/components/queues/tasks.html"
        return self.render(request, template, f"Queue {page.name}", context, live=live)

    def task(self, request: HttpRequest) -> HttpResponse:
        service, task_id, contents = find_service(request), request.GET.get("id", ""), Contents.of(request)
        try:
            info = service.get(task_id)
        except (UnknownFormat, ValueError) as error:
            reason = (
                str(error) if contents.may_see else f"What is stored of the task {task_id!r} cannot be read."
            )
            raise Http404(reason) from error
        if info is None:
            raise Http404(
                f"There is no task {task_id!r}. It may have been deleted, its result may have expired, or the dead "
                "set may have let it go."
            )
        context = {
            "alias": service.alias,
            "task": contents.cut(info),
            "shows_contents": contents.shows(info),
            "is_sensitive": is_sensitive(info),
            "max_attempts": _max_attempts(service, info),
            "verbs": self._verbs(request, info.state),
        }
        trail = self.trail(service.alias, info.queue)
        return self.render(
            request, "admin/components/queues/task.html", f"Task {info.id}", context, trail=trail
        )

    def act(self, verb: Verb, request: HttpRequest) -> HttpResponse:
        """Do *verb* to the tasks that the query names."""
        selection = Selection.of(request, verb.follows)
        if selection.state not in verb.states:
            raise Http404(f"{verb.label!r} is nothing for {selection.state} tasks.")
        origin = self._origin(selection)
        action = Action(
            title=verb.title(selection),
            button=verb.label,
            effects=verb.foretold(selection),
            run=lambda: verb.act(selection),
            subject=selection.page.subject,
            idle=selection.nothing,
            is_idle=not selection.total,
            back=self._list(selection) if verb is DELETE else origin,
            origin=origin,
        )
        return self.confirm(request, action, trail=self.trail(selection.page.alias, selection.page.name))

    def trail(self, alias: str, queue: str) -> Trail:
        return [(queue, self.url("tasks", alias=alias, queue=queue))]

    def _verbs(self, request: HttpRequest, state: State) -> list[Verb]:
        return [verb for verb in VERBS if state in verb.states and self.may(request, verb.needs)]

    def _origin(self, selection: Selection) -> str:
        if selection.scope == "task" and selection.given:
            return self.url("task", alias=selection.page.alias, id=selection.given[0])
        return self._list(selection)

    def _list(self, selection: Selection) -> str:
        page, text = selection.page, {"q": selection.text} if selection.text else {}
        return self.url("tasks", alias=page.alias, queue=page.name, state=selection.state, **text)


def _max_attempts(service: TaskQueue, info: TaskInfo) -> int | None:
    """How often the task is started at most; None if this process has not loaded what says so."""
    task = loaded(info.name)
    if task is None:
        return None
    return getattr(task, "max_attempts", None) or service.options.max_attempts
