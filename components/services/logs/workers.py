"""
What the workers of an aggregation say of themselves, every few seconds; it expires if they say nothing more.

Which consumers hold chunks, and for how long they were not heard of, is known to the stream's group. A consumer that
holds some and says nothing is dead, or stopped: its chunks go to others when their lease is over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.stored import text_of
from components.services.logs import keys

#: Seconds after which nothing is known of a worker that says nothing.
SILENCE = 15
#: Consumer under which lies what was sent again, until somebody claims it: as in resend.lua.
NOBODY = "-"


@dataclass(frozen=True)
class WorkerRecord:
    """A worker, by its own words."""

    host: str = ""
    pid: int = 0
    #: ISO 8601, by the clock of its machine.
    started_at: str = ""
    #: What it counted since then, and lines in a second lately.
    lines: int = 0
    chunks: int = 0
    rate: float = 0.0
    #: How it counts.
    format: str = ""
    level: str = ""
    kernel: str = ""


#: Of each field the types that its values have in JSON.
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
    """Say that the worker is there. Raises RedisUnavailable."""
    with redis_errors():
        get_client().set(keys.log_worker(job, consumer), json.dumps(asdict(record)), ex=SILENCE)


def list_workers(job: str, aggregation: str) -> list[LogWorkerInfo]:
    """
    Those that live, and those that hold chunks; the order is that of their ids. Nobody if there is no such
    aggregation. Raises RedisUnavailable.
    """
    client = get_client()
    with redis_errors():
        stream = keys.log_stream(job)
        groups: Any = client.xinfo_groups(stream) if client.exists(stream) else []
        if aggregation.encode() not in [group["name"] for group in groups]:
            return []
        found: Any = client.xinfo_consumers(stream, aggregation)
        names = [text_of(each["name"]) for each in found]
        records: Any = client.mget([keys.log_worker(job, name) for name in names]) if names else []
    return worker_infos(found, dict(zip(names, records, strict=True)))


def worker_infos(
    consumers: Sequence[Mapping[str, Any]], records: Mapping[str, bytes | None]
) -> list[LogWorkerInfo]:
    """Those of a group's consumers that live or hold chunks, with what they say of themselves."""
    infos = [
        LogWorkerInfo(name, each["pending"], each["idle"] / 1000, _record(records[name]))
        for each in consumers
        if (name := text_of(each["name"])) != NOBODY
    ]
    return sorted((each for each in infos if each.record or each.pending), key=lambda each: each.id)


def _record(text: bytes | None) -> WorkerRecord | None:
    """Return what this release can read of it, since the worker may be of another; None if there is nothing."""
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
