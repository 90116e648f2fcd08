"""
The tasks that a verb applies to: one task, the tasks whose boxes are checked, or all tasks in a state or found by a
search.

The whole selection is in the query, so that it is confirmed and carried out under one URL. It is evaluated by each
request, because tasks move on between two requests. One request handles at most BOUND tasks.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, get_args

from django.http import HttpRequest
from django.utils.text import get_text_list
from django.utils.translation import gettext, ngettext

from components.formatting import grouped
from components.services.queues import Look, State
from components.services.queues.admin.filters import Filters
from components.services.queues.admin.lookups import WORDS, QueuePage, find_state
from components.services.queues.failures import Failure, FailureGroup, groups

BOUND = 10_000  # tasks that one request changes: 20 scripts, less than a second

Scope = Literal["selected", "task", "all"]


class Selection:
    """The tasks that the query of a request selects. *states* are the states in which the verb applies to them."""

    def __init__(self, request: HttpRequest, states: Sequence[State] = ()) -> None:
        self.state = find_state(request)
        self.states = states or (self.state,)
        wanted = request.GET.get("scope")
        self.scope: Scope = next((scope for scope in get_args(Scope) if scope == wanted), "selected")
        self.given = list(dict.fromkeys(request.GET.getlist("id")))
        if self.scope == "task":
            del self.given[1:]
        self.filters = Filters(request)
        self.page = QueuePage(request, may_be_all=bool(self.filters.group))

    @property
    def is_whole_state(self) -> bool:
        return self.scope == "all" and not self.filters.given

    @cached_property
    def group(self) -> Look[Failure] | None:
        """Return the tasks that have died alike, if the selection is such a group."""
        if self.scope != "all" or not self.filters.group:
            return None
        return self.filters.look_at_group(self.page, self.state, BOUND)

    @cached_property
    def ids(self) -> list[str]:
        """Return the ids of the tasks that are selected now."""
        service, name = self.page.service, self.page.name
        if self.is_whole_state:
            return service.ids(name, self.state, limit=BOUND)
        if self.group:
            return [failure.id for failure in self.group.found]
        if self.scope == "all":
            return [info.id for info in self.filters.look(self.page, self.state).found]
        return service.present(name, self.states, self.given)

    @property
    def by_queue(self) -> Mapping[str, list[str]]:
        """Return the ids of the selected tasks by their queues."""
        if not self.group:
            return {self.page.name: self.ids}
        found: dict[str, list[str]] = {}
        for failure in self.group.found:
            found.setdefault(failure.place.queue, []).append(failure.id)
        return found

    @property
    def total(self) -> int:
        """Return how many tasks are selected."""
        return self.page.total(self.state) if self.is_whole_state else len(self.ids)

    @property
    def left(self) -> int:
        """Return how many are left for later requests."""
        return max(0, self.total - BOUND)

    @property
    def gone(self) -> int:
        """Return how many of the named tasks have left the *states* since."""
        return 0 if self.scope == "all" else len(self.given) - len(self.ids)

    @property
    def what(self) -> str:
        """Return the selection in words."""
        if self.scope == "task" and self.ids:
            return gettext("the task %(id)s") % {"id": self.ids[0]}
        tasks = counted(self.total, self.state)
        return gettext("all %(tasks)s") % {"tasks": tasks} if self.scope == "all" else tasks

    def placed(self, tasks: str) -> str:
        """Return *tasks*, which are words for some of the selection, with the place of the selection."""
        error = title_of(groups(self.group.found)[0]) if self.group and self.group.found else ""
        if not self.page.name and error:
            words = gettext("%(tasks)s of all queues that died of “%(error)s”")
        elif not self.page.name:
            words = gettext("%(tasks)s of all queues in this group")
        elif self.scope != "all" or not self.filters.given:
            words = gettext("%(tasks)s of the queue %(queue)s")
        elif error:
            words = gettext("%(tasks)s of the queue %(queue)s that died of “%(error)s”")
        elif self.group:
            words = gettext("%(tasks)s of the queue %(queue)s in this group")
        elif self.filters.is_text_alone:
            words = gettext("%(tasks)s of the queue %(queue)s that contain “%(text)s”")
        else:
            words = gettext("%(tasks)s of the queue %(queue)s that match “%(filters)s”")
        return words % {
            "tasks": tasks,
            "queue": self.page.name,
            "text": self.filters.text,
            "filters": self.filters.in_words,
            "error": error,
        }

    @property
    def words(self) -> str:
        """Return the states in which the verb applies to the tasks, in words."""
        return get_text_list([str(WORDS[state]) for state in self.states])

    @property
    def nothing(self) -> str:
        """Return why there is nothing to do; for use only if no task is selected."""
        if self.scope == "all":
            kind = gettext("%(state)s tasks") % {"state": WORDS[self.state]}
            return gettext("There are no %(tasks)s.") % {"tasks": self.placed(kind)}
        if not self.given:
            return gettext("No task is selected.")
        facts = {"id": self.given[0], "count": grouped(len(self.given)), "states": self.words}
        if len(self.given) == 1:
            return gettext("The task %(id)s is no longer %(states)s.") % facts
        return gettext("None of these %(count)s tasks is still %(states)s.") % facts


def counted(number: int, state: State | None = None) -> str:
    """Return 3 as "3 dead tasks", 1 as "1 dead task"."""
    if state is None:
        return ngettext("%(count)s task", "%(count)s tasks", number) % {"count": grouped(number)}
    words = ngettext("%(count)s %(state)s task", "%(count)s %(state)s tasks", number)
    return words % {"count": grouped(number), "state": WORDS[state]}


def title_of(group: FailureGroup) -> str:
    """Return what tasks that have died alike have in common, as "KeyError: … in shop.tasks.charge"."""
    kind, message = group.latest.error.kind, group.message
    error = f"{kind}: {message}" if message else kind
    return gettext("%(error)s in %(task)s") % {"error": error, "task": group.latest.name}
