"""
What can be done to queues, tasks and workers.

Each is one call of the service. What is done to tasks works in scripts of a few hundred tasks, so that others get
their turn between them; what was refused, gone already or left over is said, and only what was done is called done.
Workers are told by a note that they find with their next heartbeat; until then the list says "asked to".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from django.http import Http404, HttpRequest

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Trail, Verb
from components.services.queues import State, TaskQueue, WorkerInfo
from components.services.queues.admin.lookups import QueuePage, find_service
from components.services.queues.admin.selections import Selection, are, counted
from components.templatetags.control_room import grouped


def trail_of(pages: ControlRoomAdmin, alias: str, queue: str) -> Trail:
    return [(queue, pages.url("tasks", alias=alias, queue=queue))]


def _switch(
    label: str, effects: Sequence[str], act: Callable[[TaskQueue, str], bool], *, pauses: bool
) -> Verb:
    """Return the verb that pauses or resumes a queue."""

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        page = QueuePage.of(request)
        waiting = f"{grouped(page.stats.ready)} ready, {grouped(page.stats.delayed)} delayed"

        def run() -> Done:
            return Done(
                f"{label}d the queue {page.name} ({waiting})." if act(page.service, page.name) else ""
            )

        return Action(
            of=page.subject,
            trail=trail_of(pages, page.alias, page.name),
            title=f"{label} the queue {page.name}",
            effects=[f"Tasks in it now: {waiting}.", *effects],
            run=None if page.stats.paused == pauses else run,
            idle=f"The queue {page.name} {'is paused already' if pauses else 'is not paused'}.",
        )

    return Verb(label.lower(), label, ask)


PAUSE = _switch(
    "Pause",
    [
        "Workers take no more tasks from it; what runs already is finished.",
        "New tasks are accepted, and wait until the queue is resumed.",
    ],
    TaskQueue.pause,
    pauses=True,
)
RESUME = _switch(
    "Resume", ["Workers take tasks from it again, beginning now."], TaskQueue.resume, pauses=False
)


def _order(
    order: Literal["quiet", "stop"],
    asked: str,
    effects: Sequence[str],
    hears: Callable[[WorkerInfo], bool],
) -> Verb:
    """Return the verb that asks one worker, or all of an alias, for something."""
    label = order.capitalize()

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        service = find_service(request)
        workers = _workers(request, service)
        hearing = [worker for worker in workers if worker.alive and hears(worker)]
        is_one = "worker" in request.GET
        what = f"the worker {workers[0].id}" if is_one else f"all workers of {service.alias}"

        def run() -> Done:
            for worker in hearing:
                service.tell(worker.id, order)
            return Done(f"Asked {what}{'' if is_one else f' ({grouped(len(hearing))})'} {asked}.")

        running = sum(worker.running for worker in hearing)
        return Action(
            of=service.alias,
            title=f"{label} {what}",
            effects=[
                f"{len(hearing)} of {len(workers)} will be asked; running now: {grouped(running)}.",
                "Each hears of it with its next heartbeat, after 5 seconds at most.",
                *effects,
            ],
            run=run if hearing else None,
            idle=f"There is nobody to ask: {what} is gone, or was asked already.",
        )

    return Verb(order, label, ask)


def _workers(request: HttpRequest, service: TaskQueue) -> list[WorkerInfo]:
    """Return the worker that the query names, or all that live. Raises Http404."""
    workers = service.workers()
    if "worker" not in request.GET:
        return [worker for worker in workers if worker.alive and worker.kind == "worker"]
    wanted = request.GET["worker"]
    found = [worker for worker in workers if worker.id == wanted]
    if not found:
        raise Http404(f"There is no worker {wanted!r}. It may have ended.")
    return found


QUIET = _order(
    "quiet",
    "to take no more tasks",
    [
        "A quiet worker takes no more tasks, and finishes those that run.",
        "To take tasks again it has to be started anew.",
    ],
    # A poller takes no tasks to begin with.
    lambda worker: worker.kind == "worker" and not worker.is_quiet and not worker.order,
)
STOP = _order(
    "stop",
    "to stop",
    [
        "A worker that stops takes no more tasks, gives those that run the time they have after a SIGTERM, and ends.",
        "If something supervises it, as runworker --processes does, another comes in its place.",
    ],
    lambda worker: worker.order != "stop",
)


def _of_tasks(
    name: str,
    label: str,
    *,
    states: Sequence[State],
    follows: Sequence[State] = (),
    sentence: str,
    effects: Callable[[Selection], list[str]],
    run: Callable[[Selection], Done],
    needs: str = "change",
) -> tuple[Verb, Sequence[State]]:
    """
    Return a verb for the tasks of a selection, with the *states* in which it can be done to them.

    *follows* are the states in which it still takes tasks that have moved on; none for the one they were seen in.
    *sentence* has a place for what it is done to.
    """

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        selection = Selection.of(request, follows)
        if selection.state not in states:
            raise Http404(f"{label!r} is nothing for {selection.state} tasks.")
        page, text = selection.page, {"q": selection.text} if selection.text else {}
        of_state = pages.url("tasks", alias=page.alias, queue=page.name, state=selection.state, **text)
        is_task = selection.scope == "task" and selection.given
        return Action(
            of=page.subject,
            trail=trail_of(pages, page.alias, page.name),
            title=sentence.format(selection.what),
            effects=[
                f"{sentence.format(f'{selection.what} {selection.where}')}.",
                *_exceptions(selection),
                *effects(selection),
            ],
            run=(lambda: _act(selection, run)) if selection.total else None,
            idle=selection.nothing,
            origin=pages.url("task", alias=page.alias, id=selection.given[0]) if is_task else of_state,
            back=of_state if name == "delete" else "",
        )

    return Verb(name, label, ask, needs=needs, deletes=name == "delete"), states


def _exceptions(selection: Selection) -> list[str]:
    sentences = [_gone(selection)] if selection.gone else []
    if left := selection.left:
        sentences.append(
            f"One request takes {grouped(selection.most)} of them; {grouped(left)} will be left, and you can "
            "repeat it."
        )
    return sentences


def _act(selection: Selection, run: Callable[[Selection], Done]) -> Done:
    if not selection.ids:
        return Done()
    did = run(selection)
    but = list(did.but)
    if selection.gone:
        but.append(_gone(selection))
    if selection.is_whole_state and selection.left:
        left = getattr(selection.page.service.stats(selection.page.name), selection.state)
        but.append(
            f"{counted(left, selection.state)} {are(left)} left: one request takes {grouped(selection.most)}. "
            "Repeat it."
        )
    return Done(did.said, but)


def _resend(selection: Selection) -> Done:
    # The list has the latest first; what died first goes first.
    result = selection.page.service.resend(selection.page.name, selection.ids[::-1])
    but = []
    if result.refused:
        but.append(
            f"{counted(len(result.refused))} stayed dead: another unfinished task has the same unique key."
        )
    if odd := len(selection.ids) - result.sent - len(result.refused):
        but.append(f"{counted(odd)} could not be sent: not dead any more, or not readable.")
    return Done(_said("Sent {} again", result.sent, selection), but)


def _cancel(selection: Selection) -> Done:
    result = selection.page.service.cancel(selection.page.name, selection.ids)
    said = []
    if result.at_once:
        said.append(_said("Cancelled {}", result.at_once, selection))
    if result.asked:
        said.append(_said("Asked {} to end", result.asked, selection))
    ended = len(selection.ids) - result.at_once - result.asked
    return Done(" ".join(said), [f"{counted(ended)} had ended already."] if ended else [])


def _delete(selection: Selection) -> Done:
    gone = selection.page.service.delete(selection.page.name, selection.state, selection.ids)
    stayed = len(selection.ids) - gone
    but = [f"{counted(stayed)} had left the state {selection.state} and stayed."] if stayed else []
    return Done(_said("Deleted {}", gone, selection), but)


def _said(sentence: str, number: int, selection: Selection) -> str:
    if not number:
        return ""
    what = selection.what if selection.scope == "task" else counted(number)
    return f"{sentence.format(f'{what} {selection.where}')}."


def _gone(selection: Selection) -> str:
    states = " or ".join(selection.states)
    return f"{counted(selection.gone)} of the selection {are(selection.gone)} not {states} any more."


def _effects_of_resend(selection: Selection) -> list[str]:
    return [
        "What is sent is ready at once, what died first going first. It has all its attempts again, and keeps its "
        "errors.",
        "What has a unique key that another unfinished task has stays dead.",
    ]


def _effects_of_cancel(selection: Selection) -> list[str]:
    kept = grouped(selection.page.service.options.dead_limit)
    return [
        f"What waits goes to the dead set, which keeps the latest {kept} of this queue.",
        "What runs is told within seconds: coroutines are cancelled, and functions end if they ask is_cancelled(). "
        "What succeeds nevertheless is successful.",
    ]


def _effects_of_delete(selection: Selection) -> list[str]:
    return [
        "Arguments, errors and results are deleted with them, and get_result() finds them no more.",
        "This cannot be undone.",
    ]


#: What can be done to tasks, and in which states.
OF_TASKS = dict(
    [
        _of_tasks(
            "resend",
            "Send again",
            states=["dead"],
            sentence="Send {} again",
            effects=_effects_of_resend,
            run=_resend,
        ),
        _of_tasks(
            "cancel",
            "Cancel",
            states=["ready", "delayed", "running"],
            follows=["ready", "delayed", "running"],
            sentence="Cancel {}",
            effects=_effects_of_cancel,
            run=_cancel,
        ),
        _of_tasks(
            "delete",
            "Delete",
            needs="delete",
            states=["dead", "successful", "ready", "delayed"],
            sentence="Delete {}",
            effects=_effects_of_delete,
            run=_delete,
        ),
    ]
)
VERBS = (PAUSE, RESUME, QUIET, STOP, *OF_TASKS)
