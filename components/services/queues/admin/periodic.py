"""
Periodic tasks: what this process knows to be declared, when each ran and runs next, and a button to run one now.

A run by the button is a push as any other: it takes no tick away and counts as none. The page is one of its own, so
that the first page stays at its round trips.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern

from components.control_room.base import Action, ControlRoomAdmin, Done
from components.exceptions import BodyTooLarge
from components.kit.compat import InvalidTask, task_backends
from components.kit.ids import uuid7
from components.models import Queue
from components.services.queues.admin.contents import Contents
from components.services.queues.admin.lookups import find_service
from components.services.queues.backend import RedisBackend, redis_aliases
from components.services.queues.periodic_tasks import PeriodicTask, TickInfo, declared, overview


@dataclass(frozen=True)
class Row:
    """One periodic task as the page shows it."""

    info: TickInfo
    #: Whether the user may see what it is called with.
    shows_arguments: bool

    @property
    def entry(self) -> PeriodicTask:
        return self.info.periodic

    @property
    def is_overdue(self) -> bool:
        """By this machine's clock, and with the minute that a worker may be late."""
        at = self.info.next_at
        return at is not None and (datetime.now(UTC) - at).total_seconds() > 60


class PeriodicPages(ControlRoomAdmin):
    """The page of periodic tasks, and the one that runs one now."""

    def get_urls(self) -> list[URLPattern]:
        return [
            self.page("periodic/", "periodic", self.periodic),
            self.page("run/", "run", self.run_now, needs="change"),
            *super().get_urls(),
        ]

    def periodic(self, request: HttpRequest) -> HttpResponse:
        may_see = Contents.of(request).may_see
        aliases = [(alias, [_row(info, may_see) for info in overview(alias)]) for alias in redis_aliases()]
        template = "admin/components/queues/periodic.html"
        return self.render(request, template, "Periodic tasks", {"aliases": aliases})

    def run_now(self, request: HttpRequest) -> HttpResponse:
        alias, entry = _find(request)
        name, queue = entry.task.module_path, entry.task.queue_name
        action = Action(
            title=f"Run {name} now",
            button="Run now",
            effects=[
                f"One is put into the queue {queue}, with the arguments that are declared.",
                "Its schedule goes on as if there had been none.",
                "If it is unique and one is unfinished, there will be no second.",
            ],
            run=lambda: _push(alias, entry),
            subject=Queue(name=f"{alias}/{queue}"),
            idle="",
            is_idle=False,
            back=self.url("periodic"),
        )
        return self.confirm(request, action, trail=[("Periodic tasks", self.url("periodic"))])


def _row(info: TickInfo, may_see: bool) -> Row:
    return Row(info, may_see and not getattr(info.periodic.task, "sensitive", False))


def _find(request: HttpRequest) -> tuple[str, PeriodicTask]:
    alias, wanted = find_service(request).alias, request.GET.get("periodic", "")
    for entry in declared(alias):
        if entry.name == wanted:
            return alias, entry
    raise Http404(f"No periodic task {wanted!r} is declared.")


def _push(alias: str, entry: PeriodicTask) -> Done:
    backend = task_backends[alias]
    assert isinstance(backend, RedisBackend)
    name = entry.task.module_path
    try:
        backend.validate_task(entry.task)
        new = replace(backend.new_task(entry.task, entry.args, entry.kwargs), id=uuid7())
        [result] = backend.store(entry.task, [new])
    except (InvalidTask, BodyTooLarge) as error:
        return Done(but=[f"The task {name} cannot be run: {error}"])
    if result.id != new.id:
        return Done(but=[f"The task {name} is unique, and {result.id} is unfinished: there is no second."])
    return Done(f"Put {name} into the queue {new.queue}, as the task {new.id}.")
