"""
Sums: how often an event happened since the beginning, and how long it took, for /metrics.

Counters over time answer questions of people; a monitoring system asks again and again for sums that only grow. One
hash has them all, so one command reads them. A process adds to them in memory, and its buffer sends them with its
counts (buffer.py). Nothing happens unless COMPONENTS["METRICS"] is True.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from components.kit.scripts import Script
from components.kit.stored import number_of, text_of
from components.services.counters.keys import SumKeys

SUM = Script("counters/sum")
TAG = "all"

#: The upper bounds of the buckets of a histogram, in seconds; the last bucket has none.
BOUNDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 1_800.0)
_NAMES = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")
_TIME = "us"  # stands for the sum of microseconds where a field names a bound


@dataclass
class Sum:
    """What is known of one event, of one thing."""

    count: int = 0
    #: Of a histogram: the number in each bucket by its upper bound, and the sum of seconds.
    buckets: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


class Added(NamedTuple):
    """A field of the hash, and what is added to it."""

    name: str
    number: int


def count_of(event: str, of: str) -> str:
    """Return the field that counts an event of the thing *of*."""
    return f"{event}  {of}"


def of_duration(event: str, seconds: float, of: str) -> tuple[Added, Added]:
    """Return what a duration adds to the histogram of an event of the thing *of*."""
    bound = Added(f"{event} {_NAMES[bisect_left(BOUNDS, seconds)]} {of}", 1)
    return bound, Added(f"{event} {_TIME} {of}", max(0, round(seconds * 1e6)))


def read_sums(stored: Mapping[bytes, bytes]) -> dict[str, dict[str, Sum]]:
    """Return the sums in the hash by event, and by the thing that it was of."""
    found: defaultdict[str, defaultdict[str, Sum]] = defaultdict(lambda: defaultdict(Sum))
    for name, value in stored.items():
        event, bound, of = [*text_of(name).split(" ", 2), "", ""][:3]
        known, number = found[event][of], number_of(value)
        if bound == _TIME:
            known.seconds = number / 1e6
        elif bound:
            known.buckets[bound] = number
        else:
            known.count = number
    return {event: dict(sums) for event, sums in found.items()}


def cumulated(buckets: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return each bound, and how many durations were no longer, as Prometheus wants histograms."""
    total, found = 0, []
    for name in _NAMES:
        total += buckets.get(name, 0)
        found.append((name, total))
    return found


def sums_key() -> str:
    """Return the key of the hash with all sums."""
    return SumKeys(TAG).sums
