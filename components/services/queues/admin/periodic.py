"""
The periodic tasks declared in this process: when each will run next, how its last runs ended, and verbs that run one
now, pause and resume it.

A run by the verb is an ordinary push. It neither uses up a tick nor counts as one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

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
from components.services.queues.periodic_tasks import PeriodicTask, declared, late_ticks, overview
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


def rows(alias: str, may_see: bool) -> list[dict[str, Any]]:
    """Return the periodic tasks of a backend as the page shows them; *may_see* whether the user may see arguments."""
    infos, now = overview(alias), datetime.now(UTC)
    outcomes = Ticks(alias).outcomes([info.periodic.name for info in infos])
    found = []
    for info in infos:
        entry = info.periodic
        runs = outcomes[entry.name]  # the newest first
        found.append(
            {
                "info": info,
                "entry": entry,
                "shows_arguments": may_see and not getattr(entry.task, "sensitive", False),
                "is_overdue": bool(late_ticks([info], now)),
                "runs": runs,
                "end": ENDS[runs[0].state] if runs else None,
                "failed": sum(run.state == "failed" for run in runs),
                "bars": list(_bars(runs)),
                "width": max(8 * len(runs) - 2, 1),
            }
        )
    return found


def _bars(runs: Sequence[TickRun]) -> Iterator[tuple[int, int, int, TickState]]:
    """Yield left, top, height and state of the bars of *runs*, the oldest first, as tall as they took long."""
    longest = max((run.seconds or 0 for run in runs), default=0) or 1
    for at, run in enumerate(reversed(runs)):
        height = max(2, round(_TALLEST * (run.seconds or 0) / longest))
        yield 8 * at, _TALLEST - height, height, run.state


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
