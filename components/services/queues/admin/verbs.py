"""
The actions on queues, tasks and workers.

Each is one call of the service. Actions on tasks run in scripts of a few hundred tasks each, so that other clients
get their turn in between. The message counts what was done, and says what was refused, already gone, or left over.
Workers find a request with their next heartbeat; until then, the list says "asked to".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Trail, Verb
from components.formatting import grouped
from components.services.queues import State, WorkerInfo
from components.services.queues.admin import selections
from components.services.queues.admin.lookups import WORDS, QueuePage, find_service
from components.services.queues.admin.selections import Selection, counted


def trail_of(pages: ControlRoomAdmin, alias: str, queue: str) -> Trail:
    if queue:
        return [(queue, pages.url("tasks", alias=alias, queue=queue))]
    return [(gettext("All queues"), pages.url("failures", alias=alias))]


@dataclass(frozen=True)
class About:
    """What a verb is about, and the facts for the placeholders in its texts."""

    of: str
    facts: Mapping[str, object]
    #: None if there is nothing to do. It returns False if it did nothing.
    act: Callable[[], object] | None
    trail: Trail = ()
    effects: Sequence[str] = ()


def worded(
    name: str,
    label: Promise,
    look: Callable[[ControlRoomAdmin, HttpRequest], About],
    *,
    title: Promise,
    said: Promise,
    idle: Promise,
    effects: Sequence[Promise],
) -> Verb:
    """Return a verb whose texts have placeholders for the facts about what *look* finds."""
    return Verb(
        name,
        label,
        lambda pages, request: _action(look(pages, request), (title, said, idle), effects),
    )


def _action(about: About, texts: tuple[Promise, Promise, Promise], effects: Sequence[Promise]) -> Action:
    """Return the action with these *texts*: title, said and idle of worded()."""
    title, said, idle = (str(text) % about.facts for text in texts)
    act = about.act
    return Action(
        of=about.of,
        trail=about.trail,
        title=title,
        effects=[*about.effects, *map(str, effects)],
        run=(lambda: Done("" if act() is False else said)) if act else None,
        idle=idle,
    )


def _queue(pages: ControlRoomAdmin, request: HttpRequest, *, pauses: bool) -> About:
    page = QueuePage(request)
    change = page.service.pause if pauses else page.service.resume
    facts = {"queue": page.name, "ready": grouped(page.stats.ready), "delayed": grouped(page.stats.delayed)}
    return About(
        page.subject,
        facts,
        None if page.stats.paused == pauses else partial(change, page.name),
        trail_of(pages, page.alias, page.name),
        [gettext("Tasks in it now: %(ready)s ready, %(delayed)s delayed.") % facts],
    )


PAUSE = worded(
    "pause",
    _("Pause"),
    partial(_queue, pauses=True),
    title=_("Pause the queue %(queue)s"),
    said=_("Paused the queue %(queue)s (%(ready)s ready, %(delayed)s delayed)."),
    idle=_("The queue %(queue)s is paused already."),
    effects=[
        _("Workers take no more tasks from it. Running tasks are finished."),
        _("New tasks are accepted, and wait until the queue is resumed."),
    ],
)
RESUME = worded(
    "resume",
    _("Resume"),
    partial(_queue, pauses=False),
    title=_("Resume the queue %(queue)s"),
    said=_("Resumed the queue %(queue)s (%(ready)s ready, %(delayed)s delayed)."),
    idle=_("The queue %(queue)s is not paused."),
    effects=[_("Workers take tasks from it again at once.")],
)


def _order(
    order: Literal["quiet", "stop"],
    label: Promise,
    one: tuple[Promise, Promise, Promise],
    every: tuple[Promise, Promise, Promise],
    effects: Sequence[Promise],
    hears: Callable[[WorkerInfo], bool],
) -> Verb:
    """Return the verb that asks *one* worker, or *every* worker of an alias: title, said and idle of worded()."""

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        service, name = find_service(request), request.GET.get("worker")
        workers = [
            worker
            for worker in service.workers()
            if (worker.id == name if name is not None else worker.alive and worker.kind == "worker")
        ]
        if name is not None and not workers:
            raise Http404(gettext("There is no worker %(worker)r. It may have ended.") % {"worker": name})
        hearing = [worker for worker in workers if worker.alive and hears(worker)]
        facts = {
            "worker": name,
            "alias": service.alias,
            "count": grouped(len(hearing)),
            "total": grouped(len(workers)),
            "running": grouped(sum(worker.running for worker in hearing)),
        }
        asked = [
            gettext("%(count)s of %(total)s will be asked; running now: %(running)s.") % facts,
            gettext("Each finds the request with its next heartbeat, after at most 5 seconds."),
        ]

        def tell() -> None:
            for worker in hearing:
                service.tell(worker.id, order)

        about = About(service.alias, facts, tell if hearing else None, effects=asked)
        return replace(_action(about, every if name is None else one, effects), origin=pages.url("workers"))

    return Verb(order, label, ask)


_ONE_IS_GONE = _("There is no worker to ask: the worker %(worker)s is gone, or was asked already.")
_ALL_ARE_GONE = _("There is no worker to ask: all workers of %(alias)s are gone, or were asked already.")


QUIET = _order(
    "quiet",
    _("Take no more tasks"),
    (
        _("Stop giving tasks to the worker %(worker)s"),
        _("Asked the worker %(worker)s to take no more tasks."),
        _ONE_IS_GONE,
    ),
    (
        _("Stop giving tasks to all workers of %(alias)s"),
        _("Asked all workers of %(alias)s (%(count)s) to take no more tasks."),
        _ALL_ARE_GONE,
    ),
    [
        _("A worker that takes no more tasks finishes the running ones."),
        _("To take tasks again, it must be restarted."),
    ],
    # Pollers are not asked, because they take no tasks.
    lambda worker: worker.kind == "worker" and not worker.is_quiet and not worker.order,
)
STOP = _order(
    "stop",
    _("Stop"),
    (_("Stop the worker %(worker)s"), _("Asked the worker %(worker)s to stop."), _ONE_IS_GONE),
    (
        _("Stop all workers of %(alias)s"),
        _("Asked all workers of %(alias)s (%(count)s) to stop."),
        _ALL_ARE_GONE,
    ),
    [
        _(
            "A stopping worker takes no more tasks, gives the running ones the same time as after a SIGTERM, and "
            "ends."
        ),
        _("If a supervisor such as runworker --processes watches it, a new worker replaces it."),
    ],
    lambda worker: worker.order != "stop",
)


def _of_tasks(
    name: str,
    label: Promise,
    *,
    states: Sequence[State],
    follows: Sequence[State] = (),
    title: Promise,
    sentence: Promise,
    effects: Sequence[Promise],
    run: Callable[[Selection], Done],
) -> tuple[Verb, Sequence[State]]:
    """
    Return a verb for the tasks of a selection. *states* are the states that it applies to.

    *follows* are the states in which it also applies to tasks that have moved on; if empty, only the state in which
    they were seen counts. *title* and *sentence* have a placeholder for the tasks. *effects* may have one for the
    number of dead tasks that are kept.
    """
    deletes = name == "delete"

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        selection = Selection(request, follows)
        if selection.state not in states:
            wrong = gettext("“%(verb)s” does not apply to %(state)s tasks.")
            raise Http404(wrong % {"verb": label, "state": WORDS[selection.state]})
        page, filters = selection.page, dict(selection.filters.given)
        kept = {"count": grouped(page.service.options.dead_limit)}
        filters |= {name: request.GET[name] for name in ("after", "offset") if request.GET.get(name)}
        of_state = pages.url("tasks", alias=page.alias, queue=page.name, state=selection.state, **filters)
        return Action(
            of=page.subject,
            trail=trail_of(pages, page.alias, page.name),
            title=str(title) % {"tasks": selection.what},
            effects=[
                str(sentence) % {"tasks": selection.placed(selection.what)},
                *_exceptions(selection),
                *(str(effect) % kept for effect in effects),
            ],
            run=(lambda: _act(selection, run)) if selection.total else None,
            idle=selection.nothing,
            origin=_origin(pages, selection, of_state),
            back=of_state if deletes and not selection.group else "",
        )

    return Verb(name, label, ask, needs="delete" if deletes else "change", deletes=deletes), states


def _origin(pages: ControlRoomAdmin, selection: Selection, of_state: str) -> str:
    page = selection.page
    if selection.group:
        after = {"after": selection.group.after} if selection.group.after else {}
        return pages.url("failures", alias=page.alias, queue=page.name, **after)
    is_task = selection.scope == "task" and selection.given
    return pages.url("task", alias=page.alias, id=selection.given[0]) if is_task else of_state


def _exceptions(selection: Selection) -> list[str]:
    sentences = [_gone(selection)] if selection.gone else []
    if selection.group and selection.group.after:
        looked_at = gettext(
            "One request looks at %(count)s dead tasks for them. The next page continues from there."
        )
        sentences.append(looked_at % {"count": grouped(selection.group.looked_at)})
    if left := selection.left:
        more = gettext("One request handles %(most)s of them; %(left)s will be left, and you can repeat it.")
        sentences.append(more % {"most": grouped(selections.BOUND), "left": grouped(left)})
    return sentences


def _act(selection: Selection, run: Callable[[Selection], Done]) -> Done:
    if not selection.ids:
        return Done()
    did = run(selection)
    but = list(did.but)
    if selection.gone:
        but.append(_gone(selection))
    if selection.is_whole_state and selection.left:
        page = selection.page
        left = getattr(page.service.stats(page.name), selection.state)
        more = ngettext(
            "%(tasks)s is left, because one request handles %(most)s. Repeat it.",
            "%(tasks)s are left, because one request handles %(most)s. Repeat it.",
            left,
        )
        but.append(more % {"tasks": counted(left, selection.state), "most": grouped(selections.BOUND)})
    return Done(did.said, but)


def _resend(selection: Selection) -> Done:
    # The list has the latest first, but the task that died first is sent first.
    service, but = selection.page.service, []
    results = [service.resend(queue, ids[::-1]) for queue, ids in selection.by_queue.items()]
    sent, refused = sum(each.sent for each in results), sum(len(each.refused) for each in results)
    if refused:
        stayed = gettext("%(tasks)s stayed dead: another unfinished task has the same unique key.")
        but.append(stayed % {"tasks": counted(refused)})
    if odd := len(selection.ids) - sent - refused:
        unsent = gettext("%(tasks)s could not be sent: no longer dead, or not readable.")
        but.append(unsent % {"tasks": counted(odd)})
    return Done(_said(gettext("Sent %(tasks)s again."), sent, selection), but)


def _promote(selection: Selection) -> Done:
    service = selection.page.service
    due = sum(service.promote(queue, ids) for queue, ids in selection.by_queue.items())
    return Done(_said(gettext("Made %(tasks)s due."), due, selection))


def _cancel(selection: Selection) -> Done:
    service = selection.page.service
    results = [service.cancel(queue, ids) for queue, ids in selection.by_queue.items()]
    at_once, asked = sum(each.at_once for each in results), sum(each.asked for each in results)
    said = []
    if at_once:
        said.append(_said(gettext("Cancelled %(tasks)s."), at_once, selection))
    if asked:
        said.append(_said(gettext("Asked %(tasks)s to end."), asked, selection))
    ended = len(selection.ids) - at_once - asked
    but = [gettext("%(tasks)s had ended already.") % {"tasks": counted(ended)}] if ended else []
    return Done(" ".join(said), but)


def _delete(selection: Selection) -> Done:
    service, state = selection.page.service, selection.state
    gone = sum(service.delete(queue, state, ids) for queue, ids in selection.by_queue.items())
    but = []
    if stayed := len(selection.ids) - gone:
        moved = gettext("%(tasks)s had left the state “%(state)s” and stayed.")
        but.append(moved % {"tasks": counted(stayed), "state": WORDS[selection.state]})
    return Done(_said(gettext("Deleted %(tasks)s."), gone, selection), but)


def _said(sentence: str, number: int, selection: Selection) -> str:
    if not number:
        return ""
    what = selection.what if selection.scope == "task" else counted(number)
    return sentence % {"tasks": selection.placed(what)}


def _gone(selection: Selection) -> str:
    sentence = ngettext(
        "%(tasks)s of the selection is not %(states)s any more.",
        "%(tasks)s of the selection are not %(states)s any more.",
        selection.gone,
    )
    return sentence % {"tasks": counted(selection.gone), "states": selection.words}


#: The actions on tasks, with the states that they apply to.
OF_TASKS = dict(
    [
        _of_tasks(
            "resend",
            _("Send again"),
            states=["dead"],
            title=_("Send %(tasks)s again"),
            sentence=_("Send %(tasks)s again."),
            effects=[
                _(
                    "The tasks are ready at once, in the order in which they died. Each has all its attempts again "
                    "and keeps its errors."
                ),
                _("A task stays dead if another unfinished task has its unique key."),
            ],
            run=_resend,
        ),
        _of_tasks(
            "promote",
            _("Run now"),
            states=["delayed"],
            title=_("Run %(tasks)s now"),
            sentence=_("Run %(tasks)s now."),
            effects=[_("They are due at once, and the next free workers take them.")],
            run=_promote,
        ),
        _of_tasks(
            "cancel",
            _("Cancel"),
            states=["ready", "delayed", "running"],
            follows=["ready", "delayed", "running"],
            title=_("Cancel %(tasks)s"),
            sentence=_("Cancel %(tasks)s."),
            effects=[
                _("Waiting tasks become dead. The latest %(count)s dead tasks of each queue are kept."),
                _(
                    "Running tasks learn of it within seconds: coroutines are cancelled, and functions that check "
                    "is_cancelled() can end. A task that succeeds nevertheless counts as successful."
                ),
            ],
            run=_cancel,
        ),
        _of_tasks(
            "delete",
            _("Delete"),
            states=["dead", "successful", "ready", "delayed"],
            title=_("Delete %(tasks)s"),
            sentence=_("Delete %(tasks)s."),
            effects=[
                _(
                    "Arguments, errors and results are deleted with them, and get_result() no longer finds them."
                ),
                _("This cannot be undone."),
            ],
            run=_delete,
        ),
    ]
)
VERBS = (PAUSE, RESUME, QUIET, STOP, *OF_TASKS)
