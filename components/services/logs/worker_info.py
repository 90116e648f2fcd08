"""
Reports of the workers of an aggregation about themselves, sent every few seconds. A report expires when its worker
falls silent.

The group of the stream knows which consumers hold chunks, and how long they have been silent. A consumer that holds
chunks and is silent is dead or stopped: its chunks go to others when their lease has ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.stored import text_of
from components.services.logs.keys import JobKeys

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


def tell(job: str, consumer: str, record: WorkerRecord) -> None:
    """Report that the worker is running. Raises RedisUnavailable."""
    with redis_errors():
        get_client().set(JobKeys(job).worker(consumer), json.dumps(asdict(record)), ex=SILENCE)


def list_workers(job: str, aggregation: str) -> list[LogWorkerInfo]:
    """
    Return the consumers that live or hold chunks, ordered by id; none if there is no such aggregation.

    Raises RedisUnavailable.
    """
    client, keys = get_client(), JobKeys(job)
    with redis_errors():
        groups: Any = client.xinfo_groups(keys.stream) if client.exists(keys.stream) else []
        if aggregation.encode() not in [group["name"] for group in groups]:
            return []
        found: Any = client.xinfo_consumers(keys.stream, aggregation)
        names = [text_of(each["name"]) for each in found]
        records: Any = client.mget([keys.worker(name) for name in names]) if names else []
    return worker_infos(found, dict(zip(names, records, strict=True)))


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
    """
    Return the part of a report that this release can read, since the worker may be of another release; None if there
    is no report.
    """
    if text is None:
        return None
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        return WorkerRecord()
    return WorkerRecord(
        **{name: told[name] for name, kinds in _KINDS.items() if type(told.get(name)) in kinds}
    )
