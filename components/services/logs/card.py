"""The card of logs: the chunks in flight, and the aggregations that do not keep up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.utils.translation import gettext, ngettext

from components.kit.cards import MOST_LINES, Badge, Card, CardReading, Line, Link, and_more, beyond
from components.kit.figures import Ask
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.services.logs.figures import read_jobs
from components.services.logs.jobs import is_late, lease_of
from components.services.logs.keys import JobKeys
from components.templatetags.control_room import duration, grouped, legible

PAST = None
LAG = Script("logs/lag")

#: The most jobs that are looked at. People name jobs, so there are few.
_MOST = 50
#: The jobs that were there at the last reading.
_known: list[str] = []


@dataclass
class _Job:
    name: str
    chunks: int
    dead: int
    #: Seconds for which the oldest chunk has waited that some aggregation has not counted.
    lag: float = 0.0
    late: list[str] = field(default_factory=list)


def card() -> CardReading:
    """Look at the jobs, and find aggregations that are late and chunks that were given up."""
    jobs, looked_at, answers = yield from read_jobs(_known, _ask, _MOST)
    found = [_job(job, answer) for job, answer in zip(looked_at, answers, strict=True)]
    chunks = sum(job.chunks for job in found)
    return Card(
        chunks,
        ngettext("chunk in flight", "chunks in flight", chunks),
        [
            (gettext("Jobs"), grouped(len(jobs))),
            (gettext("Oldest chunk"), duration(max((job.lag for job in found), default=0.0) or None)),
            (gettext("Given up"), grouped(sum(job.dead for job in found))),
        ],
        [*_late([job for job in found if job.late]), *_dead([job for job in found if job.dead])],
        [*_badges(found)],
    )


def _ask(job: str) -> list[Ask]:
    keys = JobKeys(job)
    return [Ask(keys.stream, partial(LAG.put, keys=keys))]


def _job(name: str, answer: Sequence[Any]) -> _Job:
    now, chunks, dead, *found = answer
    job = _Job(name, chunks, dead)
    for aggregation, about, oldest in zip(*[iter(found)] * 3, strict=True):
        lag = max(0, int(now) - int(oldest.partition(b"-")[0])) / 1_000 if oldest else 0.0
        job.lag = max(job.lag, lag)
        if is_late(lag, lease_of(about)):
            job.late.append(text_of(aggregation))
    return job


def _late(jobs: Sequence[_Job]) -> list[Line]:
    found = sorted(jobs, key=lambda job: -job.lag)
    text = gettext("The logs of the job %(job)s are counted late: the oldest chunk waits for %(age)s.")
    lines = [
        Line(
            text % {"job": legible(job.name), "age": duration(job.lag)},
            Link("job", gettext("Workers and chunks"), job=job.name),
            command=f"manage.py aggregatelogs --job {legible(job.name)}",
        )
        for job in found[:MOST_LINES]
    ]
    more = ngettext(
        "The logs of %(count)s more job are counted late.",
        "The logs of %(count)s more jobs are counted late.",
        beyond(found),
    )
    return and_more(lines, found, Line(more % {"count": grouped(beyond(found))}))


def _dead(jobs: Sequence[_Job]) -> list[Line]:
    found = sorted(jobs, key=lambda job: -job.dead)
    lines = []
    for job in found[:MOST_LINES]:
        text = ngettext(
            "%(count)s chunk of logs of the job %(job)s was given up.",
            "%(count)s chunks of logs of the job %(job)s were given up.",
            job.dead,
        )
        page = Link("job", gettext("Show them, and send them again"), job=job.name)
        said = text % {"count": grouped(job.dead), "job": legible(job.name)}
        lines.append(Line(said, page, is_serious=False))
    more = ngettext(
        "Chunks of logs of %(count)s more job were given up.",
        "Chunks of logs of %(count)s more jobs were given up.",
        beyond(found),
    )
    return and_more(lines, found, Line(more % {"count": grouped(beyond(found))}, is_serious=False))


def _badges(jobs: Sequence[_Job]) -> Iterator[Badge]:
    if any(job.late for job in jobs):
        yield Badge(gettext("counted late"))
    if dead := sum(job.dead for job in jobs):
        text = ngettext("%(count)s chunk given up", "%(count)s chunks given up", dead)
        yield Badge(text % {"count": grouped(dead)}, is_serious=False)
