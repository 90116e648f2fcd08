"""The alias, queue and state that the query of a request names. Unknown ones raise Http404 with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.exceptions import InvalidQueueName
from components.services.queues import QueueStats, State, TaskQueue
from components.services.queues.backend import redis_aliases
from components.services.queues.new_task import check_queue

STATES: tuple[State, ...] = get_args(State)
#: The states in words, as in "The task is …".
WORDS: Mapping[State, Promise] = {
    "ready": _("ready"),
    "delayed": _("delayed"),
    "running": _("running"),
    "dead": _("dead"),
    "successful": _("successful"),
}


@dataclass(frozen=True)
class QueuePage:
    """The queue that a request's query names."""

    service: TaskQueue
    stats: QueueStats

    @classmethod
    def of(cls, request: HttpRequest) -> QueuePage:
        service = find_service(request)
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
    def subject(self) -> str:
        """Return the name of the queue in the log."""
        return f"{self.alias}/{self.name}"


def find_service(request: HttpRequest) -> TaskQueue:
    alias = request.GET.get("alias", "")
    if alias not in redis_aliases():
        raise Http404(gettext("No TASKS alias %(alias)r is served by Redis.") % {"alias": alias})
    return TaskQueue(alias)


def find_state(request: HttpRequest) -> State:
    wanted = request.GET.get("state", STATES[0])
    for state in STATES:
        if state == wanted:
            return state
    raise Http404(gettext("Tasks have no state %(state)r.") % {"state": wanted})
