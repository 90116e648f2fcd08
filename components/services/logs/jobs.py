"""
The state of jobs: the list of jobs, the chunks in flight, the workers, and how far behind these are.

Reading the state of a job takes four round trips, however much is in it. Waiting and dead chunks are counted up to a
limit. Ages are by the server's clock, from which ids of chunks are made as well. The consumer groups show which
workers hold chunks. A worker's report about itself expires seconds after the worker died. A job is listed from its
first producer or aggregation on, and is never removed from the list.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from redis.exceptions import ResponseError

from components.kit.client import get_client
from components.kit.decoding import instant_of, text_of
from components.kit.errors import redis_errors
from components.kit.leases import server_clock
from components.kit.lua_headers import record
from components.services.logs.codec import read_fields, read_name
from components.services.logs.keys import JobKeys, index

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
#: Seconds after which the report of a silent worker expires.
SILENCE = 15
#: The consumer that holds resent chunks until they are claimed, as in resend.lua.
NOBODY = "-"


@dataclass(frozen=True)
class WorkerRecord:
    """The report of a worker about itself."""

    host: str = ""
    pid: int = 0
    #: ISO 8601, by the clock of its machine.
    started_at: str = ""
    #: The chunks and lines that it has counted since then, and lines a second lately.
    lines: int = 0
    chunks: int = 0
    rate: float = 0.0
    #: The way in which it reads and counts.
    format: str = ""
    level: str = ""
    kernel: str = ""


#: For each field the types of its values in JSON.
_KINDS: dict[str, tuple[type, ...]] = {
    field.name: (int, float) if isinstance(field.default, float) else (type(field.default),)
    for field in fields(WorkerRecord)
}


@dataclass(frozen=True)
class LogWorkerInfo:
    """A consumer of an aggregation."""

    id: str
    #: Chunks that it holds.
    pending: int
    #: Seconds since it was heard of, by the server's clock.
    idle: float
    #: None if it is silent.
    record: WorkerRecord | None


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
    now = server_clock(client) // 1_000
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        pipe.hmget(keys.state, _FIGURES)
        pipe.hgetall(keys.aggregations)
        pipe.xrange(keys.stream, count=1)
        pipe.zrevrange(keys.dead, 0, MOST_DEAD - 1)
        figures, aggregations, oldest, dead = pipe.execute()
    size, chunks, lines, raw, skipped, limit = map(_number, figures)
    limited = limit if figures[-1] else None
    leases = {name: lease_of(about) for name, about in sorted(aggregations.items())}
    age = _age(now, oldest[0][0]) if oldest else None
    found = [*_aggregations(keys, now, leases, [text_of(each) for each in dead])]
    return JobStatus(job, size, chunks, limited, lines, raw, skipped, age, found)


def dead_chunks(job: str, aggregation: str) -> list[DeadChunk]:
    """
    Return the chunks of *aggregation* among the last MOST_DEAD that were given up, the last one first. Raises
    RedisUnavailable, InvalidName.
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
    return int(text) if text and _DIGITS.fullmatch(text) else 0


def lease_of(about: bytes) -> float:
    """Return the seconds of an aggregation's lease; 0 if its record cannot be read."""
    return _number(AGGREGATION.read(about)["lease"].encode()) / 1_000


def _aggregations(
    keys: JobKeys, now: int, leases: Mapping[bytes, float], dead: Sequence[str]
) -> Iterator[AggregationStatus]:
    """Yield the status of the aggregations of *leases* that take part, at the millisecond *now*."""
    if not leases:
        return
    with redis_errors(), get_client().pipeline(transaction=False) as pipe:
        pipe.xinfo_groups(keys.stream)
        for each in leases:
            pipe.xpending(keys.stream, each)
            pipe.xinfo_consumers(keys.stream, each)
            pipe.hgetall(keys.counts(totals_of(text_of(each))))
        groups, *found = [_unless_gone(each) for each in pipe.execute(raise_on_error=False)]
    last = {each["name"]: each["last-delivered-id"].decode() for each in groups or ()}
    answers = dict(zip(leases, zip(found[::3], found[1::3], found[2::3], strict=True), strict=True))
    there = [each for each in leases if each in last and None not in answers[each]]
    ids = [text_of(consumer["name"]) for each in there for consumer in answers[each][1]]
    with redis_errors(), get_client().pipeline(transaction=False) as pipe:
        for each in there:
            pipe.xrange(keys.stream, f"({last[each]}", count=MOST_WAITING)
        for consumer in ids:
            pipe.get(keys.worker(consumer))
        found = pipe.execute()
    records = dict(zip(ids, found[len(there) :], strict=True))
    for each, new in zip(there, found, strict=False):
        (pending, consumers, totals), name = answers[each], text_of(each)
        oldest = [*([pending["min"]] if pending["min"] else []), *(chunk for chunk, _fields in new[:1])]
        unheld = sum(consumer["pending"] for consumer in consumers if text_of(consumer["name"]) == NOBODY)
        yield AggregationStatus(
            name=name,
            lease=leases[each],
            claimed=pending["pending"] - unheld,
            waiting=len(new) + unheld,
            lag=max((_age(now, chunk) for chunk in oldest), default=None),
            dead=sum(chunk.endswith(f" {name}") for chunk in dead),
            totals={text_of(member): _number(count) for member, count in totals.items()},
            workers=worker_infos(consumers, records),
        )


def _unless_gone(answer: Any) -> Any:
    """Return *answer*, or None if it is an error that says there is no such aggregation. Raises others."""
    if isinstance(answer, ResponseError) and _TAKES_NO_PART.search(str(answer)):
        return None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _age(now: int, name: bytes) -> float:
    return max(0, now - int(name.partition(b"-")[0])) / 1_000


def tell(job: str, consumer: str, record: WorkerRecord) -> None:
    """Report that the worker is running. Raises RedisUnavailable."""
    with redis_errors():
        get_client().set(JobKeys(job).worker(consumer), json.dumps(asdict(record)), ex=SILENCE)


def worker_infos(
    consumers: Sequence[Mapping[str, Any]], records: Mapping[str, bytes | None]
) -> list[LogWorkerInfo]:
    """Return the consumers of a group that live or hold chunks, with their reports about themselves."""
    infos = [
        LogWorkerInfo(name, each["pending"], each["idle"] / 1000, _record(records[name]))
        for each in consumers
        if (name := text_of(each["name"])) != NOBODY
    ]
    return sorted((each for each in infos if each.record or each.pending), key=lambda each: each.id)


def _record(text: bytes | None) -> WorkerRecord | None:
    """Return the part of a report that can be read; None if there is no report."""
    return None if text is None else WorkerRecord(**read_fields(text, _KINDS))
