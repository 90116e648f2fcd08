"""
The report of logs: the chunks in flight, the aggregations that do not keep up, the figures of each job, and finding
jobs by name. People name jobs, so there are few.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.utils.translation import gettext, ngettext

from components.formatting import duration, grouped, legible
from components.kit.decoding import number_of, text_of
from components.kit.readings import Ask, Family, Gauges, Reading
from components.kit.scripts import Script
from components.reports import Card, CardReading, FinderReading, Found, Line, Link, best, lines_about
from components.services.logs.jobs import DEFAULT_JOB, is_late, lease_of
from components.services.logs.keys import JobKeys, index

LAG = Script("logs/lag")

#: The most jobs that are looked at.
_MOST = 50
#: The jobs that were there when the card, and the figures, were last read.
_known: list[str] = []
_known_to_gauges: list[str] = []
_FIGURES = ("bytes", "chunks", "lines", "raw", "skipped")
_EACH = 4  # commands for each job


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
    jobs, looked_at, answers = yield from read_jobs(_known, _ask_lag, _MOST)
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
        [
            *lines_about(sorted((job for job in found if job.late), key=lambda job: -job.lag), _late),
            *lines_about(sorted((job for job in found if job.dead), key=lambda job: -job.dead), _dead),
        ],
    )


def _ask_lag(job: str) -> list[Ask]:
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


def _late(job: _Job) -> Line:
    text = gettext("The logs of the job %(job)s are counted late: the oldest chunk waits for %(age)s.")
    said = text % {"job": legible(job.name), "age": duration(job.lag)}
    page = Link("job", gettext("Workers and chunks"), job=job.name)
    return Line("E131", said, page, command=f"manage.py aggregatelogs --job {legible(job.name)}")


def _dead(job: _Job) -> Line:
    text = ngettext(
        "%(count)s chunk of logs of the job %(job)s was given up.",
        "%(count)s chunks of logs of the job %(job)s were given up.",
        job.dead,
    )
    page = Link("job", gettext("Show them, and send them again"), job=job.name)
    return Line("W133", text % {"count": grouped(job.dead), "job": legible(job.name)}, page)


def gauges() -> Gauges:
    """Count the chunks of each job, and find for how long the oldest one has been there."""
    _every, jobs, answers = yield from read_jobs(_known_to_gauges, _asks)
    return _families(jobs, answers)


def read_jobs(
    known: list[str], asks: Callable[[str], Sequence[Ask]], most: int | None = None
) -> Reading[tuple[list[str], list[str], list[Any]]]:
    """
    Return the names of all jobs; and up to *most* that were asked about, with the answers. The *known* ones, of the
    last reading, are asked about in the first round trip, and new ones in a second.
    """
    before = [*known]
    names, *answers = yield [ask_jobs(), *(ask for job in before for ask in asks(job))]
    jobs = sorted(map(text_of, names))
    known[:] = jobs[:most]
    if new := [job for job in known if job not in before]:
        answers += yield [ask for job in new for ask in asks(job)]
    return jobs, [*before, *new], answers


def ask_jobs() -> Ask:
    """Return the question for the names of jobs."""
    return Ask.of("smembers", index(DEFAULT_JOB))


def _families(jobs: Sequence[str], answers: Sequence[Any]) -> list[Family]:
    lag = Family(
        "components_logs_lag_seconds", "Age of the oldest chunk that not all aggregations have counted."
    )
    chunks = Family("components_logs_chunks", "Chunks in flight.")
    size = Family("components_logs_bytes", "Compressed bytes in flight.")
    dead = Family("components_logs_dead_chunks", "Chunks that an aggregation has given up.")
    lines = Family("components_logs_lines", "Lines that were copied.", kind="counter")
    raw = Family("components_logs_raw_bytes", "Bytes of lines that were copied.", kind="counter")
    skipped = Family("components_logs_skipped", "Lines that were left out as too long.", kind="counter")
    state = (size, chunks, lines, raw, skipped)
    for number, job in enumerate(jobs):
        (seconds, micros), figures, oldest, given_up = answers[_EACH * number : _EACH * (number + 1)]
        for family, value in zip(state, figures, strict=True):
            family.add(number_of(value), job=job)
        began = int(oldest[0][0].partition(b"-")[0]) / 1_000 if oldest else None
        lag.add(max(0.0, int(seconds) + int(micros) / 1e6 - began) if began is not None else 0.0, job=job)
        dead.add(given_up, job=job)
    return [lag, chunks, size, dead, lines, raw, skipped]


def _asks(job: str) -> list[Ask]:
    keys = JobKeys(job)
    return [
        Ask(keys.stream, lambda pipe: pipe.time()),
        Ask.of("hmget", keys.state, _FIGURES),
        Ask.of("xrange", keys.stream, count=1),
        Ask.of("zcard", keys.dead),
    ]


def find(text: str) -> FinderReading:
    """Find jobs."""
    [names] = yield [ask_jobs()]
    return [Found(Link("job", legible(name), job=name)) for name in best(map(text_of, names), text)]
