"""
The periodic tasks declared in this process: when each last ran and will run next, and a verb that runs one now.

A run by the verb is an ordinary push. It neither uses up a tick nor counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.http import Http404, HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Verb
from components.exceptions import BodyTooLarge
from components.kit.compat import InvalidTask, task_backends
from components.kit.ids import uuid7
from components.services.queues.admin.lookups import find_service
from components.services.queues.backend import RedisBackend
from components.services.queues.periodic_tasks import PeriodicTask, TickInfo, declared


@dataclass(frozen=True)
class Row:
    """One periodic task as the page shows it."""

    info: TickInfo
    #: Whether the user may see the arguments.
    shows_arguments: bool

    @classmethod
    def of(cls, info: TickInfo, may_see: bool) -> Row:
        return cls(info, may_see and not getattr(info.periodic.task, "sensitive", False))

    @property
    def entry(self) -> PeriodicTask:
        return self.info.periodic

    @property
    def is_overdue(self) -> bool:
        """Return whether it is overdue by a minute or more, by this machine's clock."""
        at = self.info.next_at
        return at is not None and (datetime.now(UTC) - at).total_seconds() > 60


def _find(request: HttpRequest) -> tuple[str, PeriodicTask]:
    alias, wanted = find_service(request).alias, request.GET.get("periodic", "")
    for entry in declared(alias):
        if entry.name == wanted:
            return alias, entry
    raise Http404(gettext("No periodic task %(task)r is declared.") % {"task": wanted})


def _push(alias: str, entry: PeriodicTask) -> Done:
    backend = task_backends[alias]
    assert isinstance(backend, RedisBackend)
    name = entry.task.module_path
    try:
        backend.validate_task(entry.task)
        new = replace(backend.new_task(entry.task, entry.args, entry.kwargs), id=uuid7())
        [result] = backend.store(entry.task, [new])
    except (InvalidTask, BodyTooLarge) as error:
        wrong = gettext("The task %(task)s cannot be run: %(reason)s") % {"task": name, "reason": error}
        return Done(but=[wrong])
    if result.id != new.id:
        known = gettext("The task %(task)s is unique, and %(id)s is unfinished, so no second one was added.")
        return Done(but=[known % {"task": name, "id": result.id}])
    said = gettext("Put %(task)s into the queue %(queue)s, as the task %(id)s.")
    return Done(said % {"task": name, "queue": new.queue, "id": new.id})


def _run(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
    alias, entry = _find(request)
    name, queue = entry.task.module_path, entry.task.queue_name
    return Action(
        of=f"{alias}/{queue}",
        trail=[(gettext("Periodic tasks"), pages.url("periodic"))],
        title=gettext("Run %(task)s now") % {"task": name},
        effects=[
            gettext("One task is put into the queue %(queue)s, with the declared arguments.")
            % {"queue": queue},
            gettext("Its schedule does not change."),
            gettext("If it is unique and one is unfinished, no second one is added."),
        ],
        run=lambda: _push(alias, entry),
    )


RUN = Verb("run", _("Run now"), _run)
