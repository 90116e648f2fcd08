"""
Histogram: how the measured values of a counter are distributed, from which means and percentiles are read.

A value falls into a bucket, and each bucket ends 9 % above the one before it: eight buckets for each doubling, as in
OpenTelemetry's exponential histograms of scale 3. The bounds are the same everywhere and forever, so histograms of
many processes, slices and names are merged by adding the counts of their buckets. A percentile is off by at most
4.4 % of itself, whatever was measured and however much of it. Count, sum and mean are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from math import ceil, log2

_PER_DOUBLING = 8
_GROWTH = 2 ** (1 / _PER_DOUBLING)
#: The most by which a percentile is off, as a part of the exact one: 0.0433.
RELATIVE_ERROR = (_GROWTH - 1) / (_GROWTH + 1)


@lru_cache(maxsize=4_096)  # a third of the time for what is measured most: short tasks and short waits
def bucket_of(value: int) -> int:
    """Return the number of the bucket of *value*, which is not negative: 0 for 0, 1 for 1, 9 for 2, 17 for 4."""
    return 1 + ceil(_PER_DOUBLING * log2(value)) if value else 0


def value_of(bucket: int) -> float:
    """Return the value that stands for a bucket: the one that is off by the same part at both of its ends."""
    if bucket < 2:
        return float(bucket)
    end = 2 ** ((bucket - 1) / _PER_DOUBLING)
    return 2 * end / (1 + _GROWTH)


@dataclass(frozen=True)
class Histogram:
    """Measured values: in each bucket that many, and their exact sum. Adding two merges them."""

    counts: Mapping[int, int] = field(default_factory=dict)
    total: int = 0

    @classmethod
    def of(cls, values: Iterable[int]) -> Histogram:
        """Return the histogram of *values*, whole numbers that are not negative."""
        known = [*values]
        return cls(Counter(map(bucket_of, known)), sum(known))

    @cached_property
    def count(self) -> int:
        """How many values were measured."""
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        """Return the mean; 0 if nothing was measured."""
        return self.total / self.count if self.count else 0.0

    def percentile(self, percent: float) -> float:
        """
        Return the least value that *percent* of all values do not exceed, within 4.4 % of itself; 0 if nothing was
        measured. 100 is the largest value. Raises ValueError for a percentage outside of 0 to 100.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"The percentage is {percent!r}; it must be a number from 0 to 100.")
        rank, seen = max(1, ceil(self.count * percent / 100)), 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank:
                return value_of(bucket)
        return 0.0

    def percent_below(self, value: int) -> float:
        """Return the percentage of values that are less than *value*, by 9 % or more; 0 if nothing was measured."""
        bucket = bucket_of(value)
        return 100 * sum(self.counts[each] for each in self.counts if each < bucket) / (self.count or 1)

    def __add__(self, other: Histogram) -> Histogram:
        return Histogram(Counter(self.counts) + Counter(other.counts), self.total + other.total)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured in one slice."""

    #: When the slice begins.
    at: datetime
    histogram: Histogram


def read_histogram(text: bytes) -> Histogram:
    """Return the histogram from the answer of histograms.lua: the sum, then each bucket and its count."""
    numbers = [*map(int, text.split())]
    return Histogram(dict(zip(numbers[1::2], numbers[2::2], strict=True)), numbers[0] if numbers else 0)
