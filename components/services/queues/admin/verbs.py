"""
The actions on queues, tasks and workers.

Each is one call of the service. Actions on tasks run in scripts of a few hundred tasks each, so that other clients
get their turn in between. The message counts what was done, and says what was refused, already gone, or left over.
Workers find a request with their next heartbeat; until then, the list says "asked to".
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
        "Workers take no more tasks from it. Running tasks are finished.",
        "New tasks are accepted, and wait until the queue is resumed.",
    ],
    TaskQueue.pause,
    pauses=True,
)
RESUME = _switch("Resume", ["Workers take tasks from it again at once."], TaskQueue.resume, pauses=False)


def _order(
    order: Literal["quiet", "stop"],
    asked: str,
    effects: Sequence[str],
    hears: Callable[[WorkerInfo], bool],
) -> Verb:
    """Return the verb that asks one worker, or all workers of an alias, to do something."""
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
                "Each finds the request with its next heartbeat, after at most 5 seconds.",
                *effects,
            ],
            run=run if hearing else None,
            idle=f"There is no worker to ask: {what} is gone, or was asked already.",
        )

    return Verb(order, label, ask)


def _workers(request: HttpRequest, service: TaskQueue) -> list[WorkerInfo]:
    """Return the worker that the query names, or all living workers. Raises Http404."""
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
        "A quiet worker takes no more tasks, and finishes the running ones.",
        "To take tasks again, it must be restarted.",
    ],
    # Pollers are not asked, because they take no tasks.
    lambda worker: worker.kind == "worker" and not worker.is_quiet and not worker.order,
)
STOP = _order(
    "stop",
    "to stop",
    [
        "A stopping worker takes no more tasks, gives the running ones the same time as after a SIGTERM, and ends.",
        "If a supervisor such as runworker --processes watches it, a new worker replaces it.",
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
    Return a verb for the tasks of a selection. *states* are the states that it applies to.

    *follows* are the states in which it also applies to tasks that have moved on; if empty, only the state in which
    they were seen counts. *sentence* has a placeholder for the tasks.
    """

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        selection = Selection.of(request, follows)
        if selection.state not in states:
            raise Http404(f"{label!r} does not apply to {selection.state} tasks.")
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
            f"One request handles {grouped(selection.most)} of them; {grouped(left)} will be left, and you can "
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
            f"{counted(left, selection.state)} {are(left)} left, because one request handles "
            f"{grouped(selection.most)}. Repeat it."
        )
    return Done(did.said, but)


def _resend(selection: Selection) -> Done:
    # The list has the latest first, but the task that died first is sent first.
    result = selection.page.service.resend(selection.page.name, selection.ids[::-1])
    but = []
    if result.refused:
        but.append(
            f"{counted(len(result.refused))} stayed dead: another unfinished task has the same unique key."
        )
    if odd := len(selection.ids) - result.sent - len(result.refused):
        but.append(f"{counted(odd)} could not be sent: no longer dead, or not readable.")
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
        "The tasks are ready at once, in the order in which they died. Each has all its attempts again and keeps its "
        "errors.",
        "A task stays dead if another unfinished task has its unique key.",
    ]


def _effects_of_cancel(selection: Selection) -> list[str]:
    kept = grouped(selection.page.service.options.dead_limit)
    return [
        f"Waiting tasks become dead. The latest {kept} dead tasks of this queue are kept.",
        "Running tasks learn of it within seconds: coroutines are cancelled, and functions that check is_cancelled() "
        "can end. A task that succeeds nevertheless counts as successful.",
    ]


def _effects_of_delete(selection: Selection) -> list[str]:
    return [
        "Arguments, errors and results are deleted with them, and get_result() no longer finds them.",
        "This cannot be undone.",
    ]


#: The actions on tasks, with the states that they apply to.
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
