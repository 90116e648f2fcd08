"""
Ask workers to take nothing new, or to stop. The request is a note that a worker finds with its next heartbeat, so the
worker need not be reachable; until then, the list says "asked to".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern

from components.control_room.base import Action, ControlRoomAdmin, Done
from components.models import Queue
from components.services.queues import TaskQueue, WorkerInfo
from components.services.queues.admin.lookups import find_service
from components.templatetags.control_room import grouped

Order = Literal["quiet", "stop"]

_EFFECTS: dict[Order, Sequence[str]] = {
    "quiet": [
        "A quiet worker takes no more tasks, and finishes those that run.",
        "To take tasks again it has to be started anew.",
    ],
    "stop": [
        "A worker that stops takes no more tasks, gives those that run the time they have after a SIGTERM, and ends.",
        "If something supervises it, as runworker --processes does, another comes in its place.",
    ],
}
_ASKED: dict[Order, str] = {"quiet": "to take no more tasks", "stop": "to stop"}
_TITLES: dict[Order, str] = {"quiet": "Quiet {}", "stop": "Stop {}"}


class WorkerPages(ControlRoomAdmin):
    """Pages that ask one worker, or all of an alias, for something."""

    def get_urls(self) -> list[URLPattern]:
        orders: tuple[Order, ...] = ("quiet", "stop")
        pages = [self.page(f"{order}/", order, partial(self.ask, order), needs="change") for order in orders]
        return [*pages, *super().get_urls()]

    def ask(self, order: Order, request: HttpRequest) -> HttpResponse:
        service = find_service(request)
        asked = _asked(request, service)
        hearing = [worker for worker in asked if _would_hear(worker, order)]
        what = f"the worker {asked[0].id}" if "worker" in request.GET else f"all workers of {service.alias}"

        def run() -> Done:
            for worker in hearing:
                service.tell(worker.id, order)
            many = "" if "worker" in request.GET else f" ({grouped(len(hearing))})"
            return Done(f"Asked {what}{many} {_ASKED[order]}." if hearing else "")

        running = sum(worker.running for worker in hearing)
        action = Action(
            title=_TITLES[order].format(what),
            button=order.capitalize(),
            effects=[
                f"{len(hearing)} of {len(asked)} will be asked; running now: {grouped(running)}.",
                "Each hears of it with its next heartbeat, after 5 seconds at most.",
                *_EFFECTS[order],
            ],
            run=run,
            subject=Queue(name=service.alias),
            idle=f"There is nobody to ask: {what} is gone, or was asked already.",
            is_idle=not hearing,
            back=self.url("changelist"),
        )
        return self.confirm(request, action)


def _asked(request: HttpRequest, service: TaskQueue) -> list[WorkerInfo]:
    workers = service.workers()
    if "worker" not in request.GET:
        return [worker for worker in workers if worker.alive and worker.kind == "worker"]
    wanted = request.GET["worker"]
    found = [worker for worker in workers if worker.id == wanted]
    if not found:
        raise Http404(f"There is no worker {wanted!r}. It may have ended.")
    return found


def _would_hear(worker: WorkerInfo, order: Order) -> bool:
    """
    Return True if the worker is alive, and was not asked for the same or more before. A poller takes no tasks anyway.
    """
    if not worker.alive or worker.order in (order, "stop"):
        return False
    return order == "stop" or (worker.kind == "worker" and not worker.is_quiet)
