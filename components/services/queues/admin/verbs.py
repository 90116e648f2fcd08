"""
What can be done to tasks: send again, cancel, delete. A Verb says in which states, who may, and what comes of it.

Each is one call of the service, which works in scripts of a few hundred tasks, so that others get their turn
between them. What was refused, gone already or left over is said; only what was done is called done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from components.control_room.pages import Permission
from components.control_room.verbs import Done
from components.services.queues import State
from components.services.queues.admin.selections import Selection, are, counted
from components.templatetags.control_room import grouped


@dataclass(frozen=True)
class Verb:
    """Something that can be done to tasks in some *states*."""

    #: Of its page, and its permission.
    name: str
    needs: Permission
    states: Sequence[State]
    #: The states that it still takes tasks in if they have moved on; none: the one they were seen in.
    follows: Sequence[State]
    label: str
    #: With a place for what it is done to.
    sentence: str
    effects: Callable[[Selection], list[str]]
    run: Callable[[Selection], Done]

    def foretold(self, selection: Selection) -> list[str]:
        """What will happen, a sentence each."""
        sentences = [f"{self.sentence.format(f'{selection.what} {selection.where}')}."]
        if selection.gone:
            sentences.append(_gone(selection))
        if left := selection.left:
            sentences.append(
                f"One request takes {grouped(selection.most)} of them; {grouped(left)} will be left, and you can "
                "repeat it."
            )
        return [*sentences, *self.effects(selection)]

    def title(self, selection: Selection) -> str:
        return self.sentence.format(selection.what)

    def act(self, selection: Selection) -> Done:
        """Do it."""
        if not selection.ids:
            return Done()
        did = self.run(selection)
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


RESEND = Verb(
    name="resend",
    needs="change",
    states=["dead"],
    follows=[],
    label="Send again",
    sentence="Send {} again",
    effects=_effects_of_resend,
    run=_resend,
)
CANCEL = Verb(
    name="cancel",
    needs="change",
    states=["ready", "delayed", "running"],
    follows=["ready", "delayed", "running"],
    label="Cancel",
    sentence="Cancel {}",
    effects=_effects_of_cancel,
    run=_cancel,
)
DELETE = Verb(
    name="delete",
    needs="delete",
    states=["dead", "successful", "ready", "delayed"],
    follows=[],
    label="Delete",
    sentence="Delete {}",
    effects=_effects_of_delete,
    run=_delete,
)
VERBS = (RESEND, CANCEL, DELETE)
