"""What counters say: facts, as frozen dataclasses. Instants are aware, in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: What stands in a slice in which nothing was counted: a number, None, or "skip" where it is to be left out.
Fill: TypeAlias = int | Literal["skip"] | None


@dataclass(frozen=True, slots=True)
class Sample:
    """What was counted in one slice."""

    #: When the slice begins.
    at: datetime
    #: None if nothing was counted, where that is asked for.
    count: int | None


class Series(list[Sample]):
    """The samples of one counter, oldest first."""

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
        #: Seconds of each slice.
        self.precision = precision
        #: When the first slice begins, and when the last one ends, or the server's now in it.
        self.since, self.until = since, until
        #: What was counted in all that time, whatever fills the gaps.
        self.total = total

    @property
    def rate(self) -> float:
        """What was counted in a second of that time, on average."""
        seconds = (self.until - self.since).total_seconds()
        return self.total / seconds if seconds > 0 else 0.0


@dataclass(frozen=True)
class Ranked:
    """A counter among those of its family."""

    name: str
    count: int


@dataclass(frozen=True)
class CounterInfo:
    """That a counter is there."""

    name: str
    #: When it was first counted in the slot of the coarsest stored precision in which it was last counted.
    seen_at: datetime


def instant(seconds: float) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)


def is_time(name: str) -> bool:
    """Return whether what is called *name* counts microseconds: "pay-us:card", as timed() has it."""
    return name.partition(":")[0].endswith("-us")


def family_of(name: str) -> str | None:
    """What stands before the first colon of a name; None if nothing does."""
    return name.partition(":")[0] or None if ":" in name else None
