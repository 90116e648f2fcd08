"""The alias, queue and state that the query of a request names. Unknown ones raise Http404 with the reason."""

from collections.abc import Mapping
from typing import get_args

from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.exceptions import InvalidName
from components.formatting import shortened
from components.services.queues import QueueStats, State, TaskQueue
from components.services.queues.backend import redis_aliases
from components.services.queues.failures import MOST_QUEUES, Failures
from components.services.queues.new_task import MAX_NAME, check_queue

STATES: tuple[State, ...] = get_args(State)
#: The states in words, as in "The task is …".
WORDS: Mapping[State, Promise] = {
    "ready": _("ready"),
    "delayed": _("delayed"),
    "running": _("running"),
    "dead": _("dead"),
    "successful": _("successful"),
}


class QueuePage:
    """
    The queue that a request's query names; or all queues of the alias together, which have no name, and of which only
    the number of dead tasks is known.
    """

    def __init__(self, request: HttpRequest, *, may_be_all: bool = False) -> None:
        self.service = find_service(request)
        self.name = request.GET.get("queue", "")
        if may_be_all and not self.name:
            failing = [stats for stats in self.service.all_stats() if stats.dead][:MOST_QUEUES]
            self.stats = QueueStats(name="", dead=sum(stats.dead for stats in failing))
            self.failures = Failures(self.alias, *(stats.name for stats in failing))
            return
        try:
            check_queue(self.name)
        except InvalidName:
            wrong = gettext(
                "A queue cannot be called %(queue)r: the name must have 1 to %(most)s printable characters."
            )
            raise Http404(wrong % {"queue": shortened(self.name), "most": MAX_NAME}) from None
        self.stats = self.service.stats(self.name)
        self.failures = Failures(self.alias, self.name)

    def total(self, state: State) -> int:
        """Return how many tasks are in *state*."""
        return int(getattr(self.stats, state))

    @property
    def alias(self) -> str:
        return self.service.alias

    @property
    def subject(self) -> str:
        """Return the name of the queue in the log; of all queues, that of the alias."""
        return f"{self.alias}/{self.name}" if self.name else self.alias


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
