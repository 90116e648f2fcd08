"""
The state of jobs: the list of jobs, the chunks in flight, the workers, and how far behind these are.

Reading the state of a job takes four round trips, however much is in it. Waiting and dead chunks are counted up to a
limit. Ages are by the server's clock, from which ids of chunks are made as well. The consumer groups show which
workers hold chunks. A worker's report about itself expires seconds after the worker died. A job is listed from its
first producer or aggregation on, and is never removed from the list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from redis.exceptions import ResponseError

from components.kit.client import get_client
from components.kit.contracts import record
from components.kit.errors import redis_errors
from components.kit.stored import instant_of, text_of
from components.services.logs.codec import read_name
from components.services.logs.keys import JobKeys, index
from components.services.logs.worker_info import NOBODY, LogWorkerInfo, worker_infos

AGGREGATION = record("logs", "aggregation")

#: The default job of commands and streams.
DEFAULT_JOB = "default"
#: The largest number of waiting chunks that are counted, and of chunks given up, the last ones, that are listed.
MOST_WAITING = MOST_DEAD = 1_000
_FIGURES = ("bytes", "chunks", "lines", "raw", "skipped", "limit")
_ID = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")
_DIGITS = re.compile(rb"-?[0-9]{1,19}")
#: Errors of Redis about an aggregation that takes no part: it has just left, or its entry is not from this app.
_TAKES_NO_PART = re.compile(r"NOGROUP|no such key")
#: Field names as in XINFO CONSUMERS.
_Consumers: TypeAlias = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class AggregationStatus:
    """An aggregation that takes part in a job."""

    name: str
    #: Seconds for which chunks are claimed.
    lease: float
    #: The number of chunks that workers hold.
    claimed: int
    #: The number of chunks that nobody holds, counted up to MOST_WAITING.
    waiting: int
    #: Age in seconds of the oldest chunk that it has not counted, except dead ones; None if there is none.
    lag: float | None
    #: The number of its dead chunks among the last MOST_DEAD of all aggregations.
    dead: int
    #: Lines counted, and lines rejected by reason; "lines" is the sum.
    totals: Mapping[str, int]
    #: Consumers that live or hold chunks.
    workers: Sequence[LogWorkerInfo]

    @property
    def is_late(self) -> bool:
        """Return whether its workers do not keep up."""
        return is_late(self.lag, self.lease)

    @property
    def rate(self) -> float:
        """Return how many lines all its workers count in a second."""
        return sum(each.record.rate for each in self.workers if each.record)


@dataclass(frozen=True)
class JobStatus:
    """The state of a job: its chunks in Redis, and its totals."""

    name: str
    #: Chunks and compressed bytes in flight.
    bytes: int
    chunks: int
    #: The limit of bytes in flight that the last producer set; None if there was no producer.
    limit: int | None
    #: Totals copied since the beginning.
    lines: int
    raw_bytes: int
    #: Lines that were left out because they are longer than a chunk.
    skipped: int
    #: Age in seconds of the oldest chunk in flight; None if there is none.
    oldest: float | None
    aggregations: Sequence[AggregationStatus]

    @property
    def is_used(self) -> bool:
        """Return whether it ever had a chunk, or has an aggregation."""
        return self.limit is not None or bool(self.aggregations)


@dataclass(frozen=True)
class DeadChunk:
    """A chunk that an aggregation has given up."""

    id: str
    at: datetime
    #: The origin of its lines; empty if the chunk is gone.
    file: str = ""
    line: int = 0
    lines: int = 0


def is_late(lag: float | None, lease: float) -> bool:
    """Return whether the oldest chunk waits for too long: longer than if a worker had died and another took over."""
    return (lag or 0.0) > 2 * lease


def totals_of(aggregation: str) -> str:
    """Return the table that counts all lines of an aggregation, those that it counted, and those of each reason."""
    return f"totals:{aggregation}"


def note_job(job: str) -> None:
    """List *job* among the jobs. A repeated call changes nothing. Raises RedisUnavailable."""
    with redis_errors():
        get_client().sadd(index(DEFAULT_JOB), job)


def list_jobs() -> list[str]:
    """Return the jobs that ever had a producer or an aggregation. Raises RedisUnavailable."""
    with redis_errors():
        found: Any = get_client().smembers(index(DEFAULT_JOB))
    return sorted(text_of(each) for each in found)


def look_at(job: str) -> JobStatus:
    """Return the status of *job*. Raises RedisUnavailable, and InvalidName."""
    keys, client = JobKeys(job), get_client()
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        seconds, micros = client.time()
        now = int(seconds) * 1_000 + int(micros) // 1_000
        pipe.hmget(keys.state, _FIGURES)
        pipe.hgetall(keys.aggregations)
        pipe.xrange(keys.stream, count=1)
        pipe.zrevrange(keys.dead, 0, MOST_DEAD - 1)
        figures, aggregations, oldest, dead = pipe.execute()
    size, chunks, lines, raw, skipped, limit = figures
    leases = {name: lease_of(about) for name, about in sorted(aggregations.items())}
    return JobStatus(
        job,
        _number(size),
        _number(chunks),
        _number(limit) if limit else None,
        _number(lines),
        _number(raw),
        _number(skipped),
        _age(now, oldest[0][0]) if oldest else None,
        _Looking(keys, now).at(leases, [text_of(each) for each in dead]),
    )


def dead_chunks(job: str, aggregation: str) -> list[DeadChunk]:
    """
    Return the chunks of *aggregation* among the last MOST_DEAD that were given up, the last one first.

    Raises RedisUnavailable, InvalidName.
    """
    keys, client, ours = JobKeys(job), get_client(), f" {aggregation}"
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        found: Any = client.zrevrange(keys.dead, 0, MOST_DEAD - 1, withscores=True)
        dead = [(text_of(name), instant_of(at)) for name, at in found if text_of(name).endswith(ours)]
        ids = [name.removesuffix(ours) for name, _at in dead]
        for each in ids:
            known = each if _ID.fullmatch(each) else "0-1"  # no chunk has that id
            pipe.xrange(keys.stream, known, known)
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
    return read_name(file), _number(about.get(b"line")), _number(about.get(b"lines"))


def _number(text: bytes | None) -> int:
    """Return a number as Redis has it; 0 if it is not one."""
    return int(text) if text and _DIGITS.fullmatch(text) else 0


def lease_of(about: bytes) -> float:
    """Return the seconds of an aggregation's lease; 0 if its record cannot be read."""
    return _number(AGGREGATION.read(about)["lease"].encode()) / 1_000


class _Looking:
    """The aggregations of a job at the millisecond *now*."""

    def __init__(self, keys: JobKeys, now: int) -> None:
        self._keys, self._now = keys, now

    def at(self, leases: Mapping[bytes, float], dead: Sequence[str]) -> list[AggregationStatus]:
        """Return the status of the aggregations of *leases* that take part."""
        if not leases:
            return []
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            pipe.xinfo_groups(self._keys.stream)
            for name in leases:
                pipe.xpending(self._keys.stream, name)
                pipe.xinfo_consumers(self._keys.stream, name)
                pipe.hgetall(self._keys.counts(totals_of(text_of(name))))
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
        """Return the waiting chunks by aggregation, and the reports of consumers."""
        ids = [text_of(each["name"]) for some in consumers.values() for each in some]
        with redis_errors(), get_client().pipeline(transaction=False) as pipe:
            for name in consumers:
                pipe.xrange(self._keys.stream, f"({last[name]}", count=MOST_WAITING)
            for each in ids:
                pipe.get(self._keys.worker(each))
            found = pipe.execute()
        new = dict(zip(consumers, found[: len(consumers)], strict=True))
        return new, dict(zip(ids, found[len(consumers) :], strict=True))


def _unless_gone(answer: Any) -> Any:
    """Return *answer*, or None if it is an error that says there is no such aggregation. Raises others."""
    if isinstance(answer, ResponseError) and _TAKES_NO_PART.search(str(answer)):
        return None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _age(now: int, name: bytes) -> float:
    """Return the age, in seconds, of the chunk with this id."""
    return max(0, now - int(name.partition(b"-")[0])) / 1_000
