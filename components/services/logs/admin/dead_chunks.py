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

from components.control_room.pages import ControlRoomAdmin
from components.control_room.verbs import Action, Done, Verb
from components.services.logs import Aggregation, DeadChunk, dead_chunks
from components.services.logs.admin.jobs import Counted, Job
from components.templatetags.control_room import grouped


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
    def what(self) -> str:
        return f"{chunks(len(self.chunks), 'dead ')} of {self.aggregation.name}"

    @property
    def lines(self) -> str:
        count = sum(each.lines for each in self.chunks)
        return f"{grouped(count)} line{'' if count == 1 else 's'}"

    @property
    def nothing(self) -> str:
        if not self.is_all and not self.given:
            return "No chunk is selected."
        return (
            f"{'None' if self.is_all else 'None of these'} of the chunks of {self.aggregation.name} is dead."
        )


def _verb(
    name: str,
    label: str,
    *,
    title: str,
    done: str,
    effects: Callable[[Chosen], list[str]],
    run: Callable[[Aggregation, Collection[str]], int],
) -> Verb:
    """Return a verb for dead chunks, which needs the permission of its name. *title* has a place for the chunks."""

    def ask(pages: ControlRoomAdmin, request: HttpRequest) -> Action:
        chosen = Chosen.of(request)
        job, aggregation = chosen.job, chosen.aggregation

        def act() -> Done:
            count = run(aggregation.service, chosen.ids)
            stayed = chosen.gone + len(chosen.ids) - count
            but = [f"No longer dead: {chunks(stayed)} of the selection."] if stayed else []
            return Done(f"{done} {chunks(count, 'dead ')} of {aggregation.name}." if count else "", but)

        gone = [f"No longer dead: {chunks(chosen.gone)} of the selection."] if chosen.gone else []
        dead = pages.url("dead", job=job.id, aggregation=aggregation.id)
        return Action(
            of=job.id,
            trail=[*job.trail(pages), (f"Dead chunks of {aggregation.name}", dead)],
            title=title.format(chosen.what),
            effects=[*gone, *effects(chosen)],
            run=act if chosen.ids else None,
            idle=chosen.nothing,
        )

    return Verb(name, label, ask, needs=name, deletes=name == "discard")


RESEND = _verb(
    "resend",
    "Hand out again",
    title="Hand out {} again",
    done="Handed out again",
    effects=lambda chosen: [
        f"The next worker that is free counts them, {chosen.lines}, and they start with all their tries.",
        "Whatever made workers fail before may do so again; the chunks are then given up again.",
    ],
    run=Aggregation.resend,
)
DISCARD = _verb(
    "discard",
    "Discard",
    title="Discard {}",
    done="Discarded",
    effects=lambda chosen: [
        f"{chosen.lines} are never counted by {chosen.aggregation.name}.",
        "Other aggregations still get what they have not counted. "
        "Chunks that no aggregation needs any more are removed from Redis.",
        "This cannot be undone.",
    ],
    run=Aggregation.discard,
)


def chunks(count: int, kind: str = "") -> str:
    return f"{grouped(count)} {kind}chunk{'' if count == 1 else 's'}"
