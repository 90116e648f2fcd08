"""
Lines that an aggregation has rejected, some of them, to be shown: where each stands and how it begins.

How many were rejected is counted in the flush, exactly; samples are told before it, so one may be shown whose chunk
was counted by another in the end, which rejects it too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.stored import instant_of
from components.services.logs import keys

_sample = Script("logs/sample")

#: How many are kept of an aggregation.
KEPT = 100
#: The reason of a sample that this release cannot read.
UNREADABLE = "unreadable"
_SHOWN = 200  # bytes of such a one


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


#: What is stored of a sample, each with its type.
_KINDS = {"reason": str, "file": str, "line": int, "byte": int, "head": str}


def keep_samples(job: str, aggregation: str, samples: Iterable[Sample]) -> None:
    """Keep them, and of all the newest hundred. Again, it keeps each once. Raises RedisUnavailable."""
    if texts := [json.dumps(asdict(each)) for each in samples]:
        _sample(get_client(), keys=[keys.log_samples(job, aggregation)], args=[KEPT, *texts])


def read_samples(job: str, aggregation: str, limit: int) -> list[tuple[Sample, datetime]]:
    """
    Return the newest first, each with when it was rejected. Raises RedisUnavailable.

    One that cannot be read has the reason "unreadable", and its stored text as the head.
    """
    with redis_errors():
        found: Any = get_client().zrevrange(keys.log_samples(job, aggregation), 0, limit - 1, withscores=True)
    return [(_read(text), instant_of(at)) for text, at in found]


def _read(text: bytes) -> Sample:
    """What this release can read of a sample; one that it cannot is shown as it lies there, and fails no list."""
    try:
        found = json.loads(text)
        sample = Sample(**{name: found[name] for name in _KINDS})
        if all(type(value) is _KINDS[name] for name, value in asdict(sample).items()):
            return sample
    except (ValueError, RecursionError, KeyError, TypeError):
        pass
    return Sample(UNREADABLE, "", 0, 0, text[:_SHOWN].decode("utf-8", "backslashreplace"))
