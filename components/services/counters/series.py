"""Series: the counts of one counter, slice by slice. Instants are aware, in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Self, TypeAlias

from components.kit.decoding import EPOCH

#: The value for a slice in which nothing was counted: a number, None, or "skip" to leave it out.
Fill: TypeAlias = int | Literal["skip"] | None
#: What a counter counts: microseconds, bytes, or events.
Unit: TypeAlias = Literal["", "us", "bytes"]

#: Marks a family among names: "requests:*" is the family "requests".
EVERY = ":*"
#: The families whose counters are events of a service (tally()): "tasks:enqueued", "tasks:failed".
_OF_EVENTS = frozenset(
    ("autocomplete", "chat", "counters", "locks", "mailboxes", "rates", "rows", "runs", "semaphores", "tasks")
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The count of one slice."""

    #: When the slice begins.
    at: datetime
    #: None if nothing was counted, where that is asked for.
    count: int | None


class Series(list[Sample]):
    """The samples of one counter, oldest first."""

    #: Whether it is a percentile, or the highest number of each slice: a sum of these means nothing.
    is_level = is_gauge = False
    #: The name of the family that it is the sum of.
    family: str | None = None

    def __init__(
        self,
        samples: Iterable[Sample],
        *,
        name: str,
        precision: int,
        since: datetime,
        until: datetime,
        total: int,
    ) -> None:
        super().__init__(samples)
        self.name = name
        #: What the counts are: "us" for microseconds, "bytes", or "" for events.
        self.unit = unit_of(name)
        #: Seconds of each slice.
        self.precision = precision
        #: When the first slice begins, and when the last one ends, or the server's time if that is earlier.
        self.since, self.until = since, until
        #: The sum of all counts, regardless of the value that fills gaps.
        self.total = total

    @classmethod
    def _like(cls, other: Series, name: str, counts: Iterable[int | None], total: int) -> Self:
        return cls(
            [Sample(each.at, count) for each, count in zip(other, counts, strict=True)],
            name=name,
            precision=other.precision,
            since=other.since,
            until=other.until,
            total=total,
        )

    @property
    def rate(self) -> float:
        """The average count in a second."""
        seconds = (self.until - self.since).total_seconds()
        return self.total / seconds if seconds > 0 else 0.0


def instant(seconds: float) -> datetime:
    """Return the instant this many seconds after 1970."""
    return EPOCH + timedelta(seconds=seconds)


def unit_of(name: str) -> Unit:
    """Return the unit of the counter *name*: "us" for "pay-us:card", "bytes" for "upload-bytes", "" for "pay"."""
    ending = name.partition(":")[0].rpartition("-")[2]
    return "us" if ending == "us" else "bytes" if ending == "bytes" else ""


def is_of_events(family: str) -> bool:
    """Return whether the counters of a family count different events, so that their sum means nothing: "tasks"."""
    return family in _OF_EVENTS


def is_time(name: str) -> bool:
    """Return whether the counter *name* counts microseconds: "pay-us:card", as timed() names it."""
    return unit_of(name) == "us"


def family_of(name: str) -> str | None:
    """Return the part of a name before its first colon; None if there is none."""
    return name.partition(":")[0] or None if ":" in name else None


def split_families(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names of counters, and the families that the other *names* mean: "requests" for "requests:*"."""
    several = [*names]
    counters = [name for name in several if not name.endswith(EVERY)]
    return counters, [name.removesuffix(EVERY) for name in several if name.endswith(EVERY)]
