"""The figures of logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from components.kit.figures import Ask, Event, Family, Gauges, Reading
from components.kit.stored import number_of, text_of
from components.services.logs.jobs import DEFAULT_JOB
from components.services.logs.keys import JobKeys, index

EVENTS: Sequence[Event] = ()

_FIGURES = ("bytes", "chunks", "lines", "raw", "skipped")
_EACH = 4  # commands for each job

#: The jobs that were there at the last gathering.
_known: list[str] = []


def gauges() -> Gauges:
    """Count the chunks of each job, and find for how long the oldest one has been there."""
    _every, jobs, answers = yield from read_jobs(_known, _asks)
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
    return Ask(index(DEFAULT_JOB), lambda pipe: pipe.smembers(index(DEFAULT_JOB)))


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
        Ask(keys.state, lambda pipe: pipe.hmget(keys.state, _FIGURES)),
        Ask(keys.stream, lambda pipe: pipe.xrange(keys.stream, count=1)),
        Ask(keys.dead, lambda pipe: pipe.zcard(keys.dead)),
    ]
