"""
The actions on dead chunks, which were given up: hand them out again, or discard them.

The query names the chunks, so a selection is confirmed and carried out under one URL. Each request evaluates the
selection. Repeating an action has no further effect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Verb
from components.formatting import grouped
from components.services.logs import Aggregation, DeadChunk, dead_chunks
from components.services.logs.admin.jobs import Counted, Job


@dataclass(frozen=True)
class Chosen:
    """The dead chunks that the query of a request names: all that are listed, or those whose boxes were checked."""

    job: Job
    aggregation: Counted
    is_all: bool
    given: Collection[str]

    @classmethod
    def of(cls, request: HttpRequest) -> Chosen:
        job = Job.of(request)
        given = frozenset(request.GET.getlist("chunk"))
        return cls(job, job.aggregation(request), request.GET.get("scope") == "all", given)

    @cached_property
    def chunks(self) -> Sequence[DeadChunk]:
        """Return the chosen chunks that are still dead."""
        found = dead_chunks(self.job.id, self.aggregation.id)
        return [each for each in found if self.is_all or each.id in self.given]

    @property
    def ids(self) -> list[str]:
        return [each.id for each in self.chunks]

    @property
    def gone(self) -> int:
        """Return how many of the chosen chunks are no longer dead."""
        return 0 if self.is_all else len(self.given) - len(self.chunks)

    @property
    def lines(self) -> int:
        return sum(each.lines for each in self.chunks)

    @property
    def nothing(self) -> str:
        if not self.is_all and not self.given:
            return gettext("No chunk is selected.")
        about = {"name": self.aggregation.name}
        if self.is_all:
            return gettext("None of the chunks of %(name)s is dead.") % about
        return gettext("None of these of the chunks of %(name)s is dead.") % about


def _verb(
    name: str,
    label: Promise,
    *,
    title: Callable[[int], str],
    done: Callable[[int], str],
    effects: Callable[[Chosen], list[str]],
    run: Callable[[Aggregation, Collection[str]], int],
) -> Verb:
    """
    Return a verb for dead chunks, which needs the permission of its name. *title* and *done* return a sentence for a
    number of chunks, with places for this number and for the name of the aggregation.
    """

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        chosen = Chosen.of(request)
        job, aggregation = chosen.job, chosen.aggregation

        def say(words: Callable[[int], str], count: int) -> str:
            return words(count) % {"count": grouped(count), "name": aggregation.name}

        def act() -> Done:
            count = run(aggregation.service, chosen.ids)
            stayed = chosen.gone + len(chosen.ids) - count
            return Done(say(done, count) if count else "", [_no_longer_dead(stayed)] if stayed else [])

        gone = [_no_longer_dead(chosen.gone)] if chosen.gone else []
        dead = pages.url("dead", job=job.id, aggregation=aggregation.id)
        return Action(
            of=job.id,
            trail=[*job.trail(pages), (dead_title(aggregation), dead)],
            title=say(title, len(chosen.chunks)),
            effects=[*gone, *effects(chosen)],
            run=act if chosen.ids else None,
            idle=chosen.nothing,
        )

    return Verb(name, label, ask, needs=name, deletes=name == "discard")


RESEND = _verb(
    "resend",
    _("Hand out again"),
    title=lambda count: ngettext(
        "Hand out %(count)s dead chunk of %(name)s again",
        "Hand out %(count)s dead chunks of %(name)s again",
        count,
    ),
    done=lambda count: ngettext(
        "Handed out again %(count)s dead chunk of %(name)s.",
        "Handed out again %(count)s dead chunks of %(name)s.",
        count,
    ),
    effects=lambda chosen: [
        ngettext(
            "The next worker that is free counts them, %(count)s line, and they start with all their tries.",
            "The next worker that is free counts them, %(count)s lines, and they start with all their tries.",
            chosen.lines,
        )
        % {"count": grouped(chosen.lines)},
        gettext("Whatever made workers fail before may do so again; the chunks are then given up again."),
    ],
    run=Aggregation.resend,
)
DISCARD = _verb(
    "discard",
    _("Discard"),
    title=lambda count: ngettext(
        "Discard %(count)s dead chunk of %(name)s", "Discard %(count)s dead chunks of %(name)s", count
    ),
    done=lambda count: ngettext(
        "Discarded %(count)s dead chunk of %(name)s.", "Discarded %(count)s dead chunks of %(name)s.", count
    ),
    effects=lambda chosen: [
        ngettext(
            "%(count)s line is never counted by %(name)s.",
            "%(count)s lines are never counted by %(name)s.",
            chosen.lines,
        )
        % {"count": grouped(chosen.lines), "name": chosen.aggregation.name},
        gettext(
            "Other aggregations still get what they have not counted. Chunks that no aggregation needs any more are "
            "removed from Redis."
        ),
        gettext("This cannot be undone."),
    ],
    run=Aggregation.discard,
)


def dead_title(aggregation: Counted) -> str:
    return gettext("Dead chunks of %(name)s") % {"name": aggregation.name}


def _no_longer_dead(count: int) -> str:
    words = ngettext(
        "No longer dead: %(count)s chunk of the selection.",
        "No longer dead: %(count)s chunks of the selection.",
        count,
    )
    return words % {"count": grouped(count)}
