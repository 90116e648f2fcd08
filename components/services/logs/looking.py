"""
Looking at jobs: which there are, what is in flight, who counts it, and how far behind.

Four round trips for a job, whatever is in it. What cannot be had in one step is counted up to a bound: chunks that
wait, and those that were given up. Ages are by the server's clock, of which ids of chunks are made, too. Who works is
known from the consumer groups; what a worker says of itself expires seconds after it died. A job is listed from its
first producer or aggregation on, and stays so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from redis.exceptions import ResponseError

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.stored import instant_of, text_of
from components.services.logs import keys
from components.services.logs.jobs import DEFAULT_JOB, Keys, totals_of
from components.services.logs.workers import NOBODY, LogWorkerInfo, worker_infos

#: So many chunks that wait are counted, and so many that were given up, the last ones, are listed.
MOST_WAITING = MOST_DEAD = 1_000
_FIGURES = ("bytes", "chunks", "lines", "raw", "skipped", "limit")
_ID = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")
_DIGITS = re.compile(rb"-?[0-9]{1,19}")
#: What Redis says of an aggregation that takes no part: it has just left, or somebody else wrote its name.
_TAKES_NO_PART = re.compile(r"NOGROUP|no such key")
#: As XINFO CONSUMERS has them.
_Consumers: TypeAlias = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class AggregationStatus:
    """An aggregation that takes part in a job."""

    name: str
    #: Seconds for which chunks are claimed.
    lease: float
    #: Chunks that workers hold.
    claimed: int
    #: Chunks that nobody holds; there may be more than MOST_WAITING.
    waiting: int
    #: Seconds since the oldest chunk came that it has not counted; None if there is none. Without the dead ones.
    lag: float | None
    #: Chunks that were given up, among the last MOST_DEAD of all aggregations.
    dead: int
    #: Lines that it has counted and rejected: "lines" is all of them.
    totals: Mapping[str, int]
    #: Those that live, and those that hold chunks.
    workers: Sequence[LogWorkerInfo]

    @property
    def rate(self) -> float:
        """Lines a second of all its workers."""
        return sum(each.record.rate for each in self.workers if each.record)


@dataclass(frozen=True)
class JobStatus:
    """What a job has in Redis, and what went through it."""

    name: str
    #: In flight, compressed.
    bytes: int
    chunks: int
    #: How many bytes may be in flight, as the last producer said; None if there was none.
    limit: int | None
    #: Ever copied.
    lines: int
    raw_bytes: int
    #: Lines that were left out because they are longer than a chunk.
    skipped: int
    #: Seconds since the oldest chunk came that is in flight; None if there is none.
    oldest: float | None
    aggregations: Sequence[AggregationStatus]

    @property
    def is_used(self) -> bool:
        """Whether it ever had a chunk, or has an aggregation."""
        return self.limit is not None or bool(self.aggregations)


@dataclass(frozen=True)
class DeadChunk:
    """A chunk that an aggregation has given up."""

    id: str
    at: datetime
    #: Where its lines are from: nothing if the chunk is gone.
    file: str = ""
    line: int = 0
    lines: int = 0


def note_job(job: str) -> None:
    """List *job* among those that there are. Again, it changes nothing. Raises RedisUnavailable."""
    with redis_errors():
        get_client().sadd(keys.log_jobs(DEFAULT_JOB), job)


def list_jobs() -> list[str]:
    """Jobs that ever had a producer or an aggregation. Raises RedisUnavailable."""
    with redis_errors():
        found: Any = get_client().smembers(keys.log_jobs(DEFAULT_JOB))
    return sorted(text_of(each) for each in found)


def look_at(job: str) -> JobStatus:
    """How *job* stands. Raises RedisUnavailable, and InvalidName."""
    of_job, client = Keys(job), get_client()
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        seconds, micros = client.time()
        now = int(seconds) * 1_000 + int(micros) // 1_000
        pipe.hmget(of_job.state, _FIGURES)
        pipe.hgetall(of_job.aggregations)
        pipe.xrange(of_job.stream, count=1)
        pipe.zrevrange(of_job.dead, 0, MOST_DEAD - 1)
        figures, aggregations, oldest, dead = pipe.execute()
    size, chunks, lines, raw, skipped, limit = figures
    leases = {name: _lease(about) for name, about in sorted(aggregations.items())}
    return JobStatus(
        job,
        _number(size),
        _number(chunks),
        _number(limit) if limit else None,
        _number(lines),
        _number(raw),
        _number(skipped),
        _age(now, oldest[0][0]) if oldest else None,
        _Looking(of_job, now).at(leases, [text_of(each) for each in dead]),
    )


def dead_chunks(job: str, aggregation: str) -> list[DeadChunk]:
    """Those that *aggregation* has given up, the last one first, at most MOST_DEAD. Raises RedisUnavailable."""
    of_job, client, ours = Keys(job), get_client(), f" {aggregation}"
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        found: Any = client.zrevrange(of_job.dead, 0, MOST_DEAD - 1, withscores=True)
        dead = [(text_of(name), instant_of(at)) for name, at in found if text_of(name).endswith(ours)]
        ids = [name.removesuffix(ours) for name, _at in dead]
        for each in ids:
            known = each if _ID.fullmatch(each) else "0-1"  # no chunk has that id
            pipe.xrange(of_job.stream, known, known)
        entries = pipe.execute()
    return [
        DeadChunk(name, at, *_source(entry))
        for name, (_member, at), entry in zip(ids, dead, entries, strict=True)
    ]


def _source(entry: Sequence[Any]) -> tuple[str, int, int]:
    if not entry:
        return "", 0, 0
    about = entry[0][1]
    file = about.get(b"file", b"").decode("utf-8", "surrogateescape")
    return file, _number(about.get(b"line")), _number(about.get(b"lines"))


def _number(text: bytes | None) -> int:
    """A number as Redis has it; 0 of what is none."""
    return int(text) if text and _DIGITS.fullmatch(text) else 0


def _lease(about: bytes) -> float:
    """Seconds of an aggregation's lease; 0 if its entry cannot be read."""
    return _number(about.rpartition(b" ")[2]) / 1_000


class _Looking:
    """At the aggregations of a job, at the millisecond *now*."""

    def __init__(self, of_job: Keys, now: int) -> None:
        self._keys, self._now = of_job, now

    def at(self, leases: Mapping[bytes, float], dead: Sequence[str]) -> list[AggregationStatus]:
        """Return how those of *leases* stand that take part."""
        if not leases:
            return []
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            pipe.xinfo_groups(self._keys.stream)
            for name in leases:
                pipe.xpending(self._keys.stream, name)
                pipe.xinfo_consumers(self._keys.stream, name)
                pipe.hgetall(keys.log_table(self._keys.job, totals_of(text_of(name))))
            groups, *found = [_unless_gone(each) for each in pipe.execute(raise_on_error=False)]
        last = {each["name"]: each["last-delivered-id"].decode() for each in groups or ()}
        answers = dict(zip(leases, zip(found[::3], found[1::3], found[2::3], strict=True), strict=True))
        there = [name for name in leases if name in last and None not in answers[name]]
        new, records = self._more(last, {name: answers[name][1] for name in there})
        return [
            self._aggregation(text_of(name), leases[name], new[name], records, dead, *answers[name])
            for name in there
        ]

    def _aggregation(
        self,
        name: str,
        lease: float,
        new: Sequence[Any],
        records: Mapping[str, bytes | None],
        dead: Sequence[str],
        pending: Mapping[str, Any],
        consumers: _Consumers,
        totals: Mapping[bytes, bytes],
    ) -> AggregationStatus:
        ids = [*([pending["min"]] if pending["min"] else []), *(each for each, _fields in new[:1])]
        unheld = sum(each["pending"] for each in consumers if text_of(each["name"]) == NOBODY)
        return AggregationStatus(
            name=name,
            lease=lease,
            claimed=pending["pending"] - unheld,
            waiting=len(new) + unheld,
            lag=max((_age(self._now, each) for each in ids), default=None),
            dead=sum(each.endswith(f" {name}") for each in dead),
            totals={text_of(member): _number(count) for member, count in totals.items()},
            workers=worker_infos(consumers, records),
        )

    def _more(
        self, last: Mapping[bytes, str], consumers: Mapping[bytes, _Consumers]
    ) -> tuple[dict[bytes, list[Any]], dict[str, bytes | None]]:
        """Of each aggregation what was not handed out; and what each consumer says of itself."""
        ids = [text_of(each["name"]) for some in consumers.values() for each in some]
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            for name in consumers:
                pipe.xrange(self._keys.stream, f"({last[name]}", count=MOST_WAITING)
            for each in ids:
                pipe.get(keys.log_worker(self._keys.job, each))
            found = pipe.execute()
        new = dict(zip(consumers, found[: len(consumers)], strict=True))
        return new, dict(zip(ids, found[len(consumers) :], strict=True))


def _unless_gone(answer: Any) -> Any:
    """Return *answer*, or None if Redis has said that there is no such aggregation. Raises any other error."""
    if isinstance(answer, ResponseError) and _TAKES_NO_PART.search(str(answer)):
        return None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _age(now: int, name: bytes) -> float:
    """Seconds since the chunk with this id came."""
    return max(0, now - int(name.partition(b"-")[0])) / 1_000
