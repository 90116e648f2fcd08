"""
The periodic tasks declared in this process: when each will run next, how its last runs ended, and verbs that run one
now, pause and resume it.

A run by the verb is an ordinary push. It neither uses up a tick nor counts as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Verb
from components.exceptions import BodyTooLarge
from components.kit.compat import InvalidTask
from components.kit.ids import uuid7
from components.services.queues.admin.lookups import find_service
from components.services.queues.admin.verbs import About, worded
from components.services.queues.backend import redis_backend
from components.services.queues.periodic_tasks import PeriodicTask, TickInfo, declared, late_ticks, overview
from components.services.queues.ticks import TickRun, Ticks, TickState

#: How a run of a periodic task ended, in the words of the page.
ENDS: Mapping[TickState, Promise] = {
    "waiting": pgettext_lazy("a run of a periodic task", "Waiting"),
    "running": pgettext_lazy("a run of a periodic task", "Running"),
    "successful": pgettext_lazy("a run of a periodic task", "Successful"),
    "failed": pgettext_lazy("a run of a periodic task", "Failed"),
    "cancelled": pgettext_lazy("a run of a periodic task", "Cancelled"),
    "expired": pgettext_lazy("a run of a periodic task", "Expired"),
    "gone": pgettext_lazy("a run of a periodic task", "No longer kept"),
}
_TALLEST = 20  # the height of the tallest bar of a row


@dataclass(frozen=True)
class Row:
    """One periodic task as the page shows it."""

    info: TickInfo
    #: Of its last ticks, the newest first.
    runs: Sequence[TickRun]
    #: Whether the user may see arguments.
    may_see: bool

    @classmethod
    def all_of(cls, alias: str, may_see: bool) -> list[Row]:
        """Return the rows of the periodic tasks of a backend."""
        infos = overview(alias)
        runs = Ticks(alias).outcomes([info.periodic.name for info in infos])
        return [cls(info, runs[info.periodic.name], may_see) for info in infos]

    @property
    def shows_arguments(self) -> bool:
        return self.may_see and not getattr(self.entry.task, "sensitive", False)

    @property
    def end(self) -> Promise | None:
        """Return how the last run ended, or None if there was none."""
        return ENDS[self.runs[0].state] if self.runs else None

    @property
    def failed(self) -> int:
        return sum(run.state == "failed" for run in self.runs)

    @property
    def bars(self) -> Iterator[tuple[int, int, int, TickState]]:
        """Yield left, top, height and state of the runs, the oldest first, as tall as they took long."""
        longest = max((run.seconds or 0 for run in self.runs), default=0) or 1
        for at, run in enumerate(reversed(self.runs)):
            height = max(2, round(_TALLEST * (run.seconds or 0) / longest))
            yield 8 * at, _TALLEST - height, height, run.state

    @property
    def width(self) -> int:
        return max(8 * len(self.runs) - 2, 1)

    @property
    def entry(self) -> PeriodicTask:
        return self.info.periodic

    @property
    def is_overdue(self) -> bool:
        """Return whether it is overdue by a minute or more, by this machine's clock."""
        return bool(late_ticks([self.info], datetime.now(UTC)))


def _find(request: HttpRequest) -> tuple[str, PeriodicTask]:
    alias, wanted = find_service(request).alias, request.GET.get("periodic", "")
    for entry in declared(alias):
        if entry.name == wanted:
            return alias, entry
    raise Http404(gettext("No periodic task %(task)r is declared.") % {"task": wanted})


def _push(alias: str, entry: PeriodicTask) -> Done:
    backend = redis_backend(alias)
    name = entry.task.module_path
    try:
        backend.check_task(entry.task)
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
            gettext("Its next scheduled run stays as it is."),
            gettext("If it is unique and one is unfinished, no second one is added."),
        ],
        run=lambda: _push(alias, entry),
    )


def _ticking(pages: ControlRoomAdmin, request: HttpRequest, *, pauses: bool) -> About:
    alias, entry = _find(request)
    ticks = Ticks(alias)
    return About(
        f"{alias}/{entry.task.queue_name}",
        {"task": entry.task.module_path},
        None
        if (entry.name in ticks.paused()) == pauses
        else partial(ticks.pause if pauses else ticks.resume, entry.name),
        [(gettext("Periodic tasks"), pages.url("periodic"))],
    )


RUN = Verb("run", _("Run now"), _run)
PAUSE_PERIODIC = worded(
    "pause-periodic",
    _("Pause"),
    partial(_ticking, pauses=True),
    title=_("Pause %(task)s"),
    said=_("Paused %(task)s."),
    idle=_("%(task)s is paused already."),
    effects=[
        _("No task is added at the times of its schedule, until it is resumed."),
        _("What waits or runs already is not affected."),
    ],
)
RESUME_PERIODIC = worded(
    "resume-periodic",
    _("Resume"),
    partial(_ticking, pauses=False),
    title=_("Resume %(task)s"),
    said=_("Resumed %(task)s."),
    idle=_("%(task)s is not paused."),
    effects=[
        _("It runs again at the times of its schedule, from the next one on."),
        _("Runs that were due while it was paused are skipped."),
    ],
)
PERIODIC = (RUN, PAUSE_PERIODIC, RESUME_PERIODIC)
