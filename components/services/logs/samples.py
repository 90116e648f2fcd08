"""
Lines that an aggregation has rejected, some of them, to be shown: where each stands and how it begins.

How many were rejected is counted in the flush, exactly; samples are told before it, so one may be shown whose chunk
was counted by another in the end, which rejects it too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from components import keys
from components.client import get_client, redis_errors
from components.scripts import Script

_sample = Script("logs/sample")

#: How many are kept of an aggregation.
KEPT = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sample:
    """A rejected line."""

    #: Such as "address"; see Reason.
    reason: str
    file: str
    #: Its number, from 1 on, and where it begins in the lines of the file, decompressed.
    line: int
    byte: int
    #: How it begins; what is no UTF-8 as \\\\xff.
    head: str


def keep_samples(job: str, aggregation: str, samples: Iterable[Sample]) -> None:
    """Keep them, and of all the newest hundred. Again, it keeps each once. Raises RedisUnavailable."""
    if texts := [json.dumps(asdict(each)) for each in samples]:
        _sample(get_client(), keys=[keys.log_samples(job, aggregation)], args=[KEPT, *texts])


def read_samples(job: str, aggregation: str, limit: int) -> list[tuple[Sample, datetime]]:
    """The newest first, each with when it was rejected. Raises RedisUnavailable."""
    with redis_errors():
        found: Any = get_client().zrevrange(keys.log_samples(job, aggregation), 0, limit - 1, withscores=True)
    return [(Sample(**json.loads(text)), _EPOCH + timedelta(milliseconds=at)) for text, at in found]
