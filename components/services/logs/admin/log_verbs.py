"""
What can be done to logs: chunks that were given up are handed out again or discarded, and an aggregation leaves.

Which chunks is in the query, so that a selection is confirmed and done under one URL, and looked up anew each time.
What is done twice is as done once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from components.control_room.base import Action, Done, Permission, Trail
from components.control_room.names import NamedPages
from components.services.logs import Aggregation, DeadChunk, dead_chunks
from components.services.logs.admin.log_jobs import Counted, Job
from components.templatetags.control_room import grouped


@dataclass(frozen=True)
class Chosen:
    """Dead chunks that a request's query names: all that are listed, or those whose boxes were checked."""

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
        """Those that are still dead."""
        found = dead_chunks(self.job.id, self.aggregation.id)
        return [each for each in found if self.is_all or each.id in self.given]

    @property
    def ids(self) -> list[str]:
        return [each.id for each in self.chunks]

    @property
    def gone(self) -> int:
        """How many of those that were named are dead no more."""
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


@dataclass(frozen=True)
class Verb:
    """Something that can be done to dead chunks."""

    #: Of its page, and its permission.
    name: Permission
    label: str
    #: With a place for what it is done to.
    asked: str
    done: str
    effects: Callable[[Chosen], list[str]]
    run: Callable[[Aggregation, Collection[str]], int]

    def act(self, chosen: Chosen) -> Done:
        if not chosen.ids:
            return Done()
        count = self.run(chosen.aggregation.service, chosen.ids)
        stayed = chosen.gone + len(chosen.ids) - count
        but = [f"{chunks(stayed)} of the selection had ceased to be dead."] if stayed else []
        said = f"{self.done} {chunks(count, 'dead ')} of {chosen.aggregation.name}." if count else ""
        return Done(said, but)


RESEND = Verb(
    name="resend",
    label="Hand out again",
    asked="Hand out {} again",
    done="Handed out again",
    effects=lambda chosen: [
        f"The next worker that is free counts them, {chosen.lines}, and they have all their tries again.",
        "What made workers fail before may do so again; then they are given up anew.",
    ],
    run=Aggregation.resend,
)
DISCARD = Verb(
    name="discard",
    label="Discard",
    asked="Discard {}",
    done="Discarded",
    effects=lambda chosen: [
        f"{chosen.lines} are never counted by {chosen.aggregation.name}.",
        "Other aggregations still get what they have not counted; what none needs any more goes from Redis.",
        "This cannot be undone.",
    ],
    run=Aggregation.discard,
)
VERBS = (RESEND, DISCARD)


class LogVerbs(NamedPages):
    """The pages that change something."""

    def get_urls(self) -> list[URLPattern]:
        return [
            *(
                self.page(f"{verb.name}/", verb.name, partial(self.act, verb), needs=verb.name)
                for verb in VERBS
            ),
            self.page("leave/", "leave", self.leave, needs="delete"),
            *super().get_urls(),
        ]

    def find_url(self, name: str) -> str:
        return self.url("job", job=name)

    def act(self, verb: Verb, request: HttpRequest) -> HttpResponse:
        chosen = Chosen.of(request)
        gone = [f"{chunks(chosen.gone)} of the selection ceased to be dead."] if chosen.gone else []
        action = Action(
            title=verb.asked.format(chosen.what),
            button=verb.label,
            effects=[*gone, *verb.effects(chosen)],
            run=lambda: verb.act(chosen),
            subject=self.subject(chosen.job.id),
            idle=chosen.nothing,
            is_idle=not chosen.ids,
            back=self.url("dead", job=chosen.job.id, aggregation=chosen.aggregation.id),
        )
        dead = f"Dead chunks of {chosen.aggregation.name}"
        return self.confirm(request, action, trail=[*self.trail(chosen.job), (dead, action.back)])

    def leave(self, request: HttpRequest) -> HttpResponse:
        job = Job.of(request)
        name = request.GET.get("aggregation", "")
        found = next((each for each in job.aggregations if each.id == name), None)
        label = found.name if found else self.label(name)

        def run() -> Done:
            if not found:
                return Done()
            found.service.leave()
            return Done(f"The aggregation {label} has left the job {job.name}.")

        action = Action(
            title=f"Let the aggregation {label} leave",
            button="Let it leave",
            effects=_effects_of_leaving(found) if found else [],
            run=run,
            subject=self.subject(job.id),
            idle=f"No aggregation {label} takes part in the job {job.name}.",
            is_idle=found is None,
            back=self.find_url(job.id),
        )
        return self.confirm(request, action, trail=self.trail(job))

    def trail(self, job: Job) -> Trail:
        return [(f"Job {job.name}", self.find_url(job.id))]


def chunks(count: int, kind: str = "") -> str:
    return f"{grouped(count)} {kind}chunk{'' if count == 1 else 's'}"


def _effects_of_leaving(found: Counted) -> list[str]:
    status = found.status
    lost = status.waiting + status.claimed + status.dead
    at_least = "At least " if found.waiting.startswith("at") else ""
    return [
        f"{at_least}{chunks(lost)} that it has not counted {'is' if lost == 1 else 'are'} lost to it: waiting "
        f"{found.waiting}, held by workers {grouped(status.claimed)}, dead {grouped(status.dead)}.",
        "What it has counted stays, and other aggregations go on as before.",
        f"At work for it: {grouped(found.alive)}. End them first: a worker that finds it gone ends with an error, "
        "and one that starts lets it join again.",
        "If it joins again, it gets all that is in flight then. What of this it has counted before, it counts twice.",
        "This cannot be undone.",
    ]
