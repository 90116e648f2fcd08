"""What is told about cached rows: facts of one moment, by the server's clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from components.exceptions import RedisUnavailable
from components.kit.stored import instant_of
from components.services.rows.shapes import Shape


class Row(Mapping[str, Any]):
    """
    A row as it was when it was loaded: its values by the names of its columns, typed. It cannot be changed.

    A row that was deleted has none. Each value is converted when it is asked for, since most are not.
    """

    __slots__ = ("_now", "_shape", "_stored", "key")

    def __init__(self, shape: Shape, key: str, now: int, stored: Sequence[Any]) -> None:
        self.key = key
        self._shape, self._now = shape, now
        self._stored = stored  # what the JSON says: since when, until when it is good, shape, values or None

    def __getitem__(self, name: str) -> Any:
        values = self._stored[3]
        if values is None:
            raise KeyError(name)
        at = self._shape.places[name]
        value = values[at]
        return None if value is None else self._shape.decoders[at](value)

    def __iter__(self) -> Iterator[str]:
        return iter(() if self._stored[3] is None else self._shape.names)

    def __len__(self) -> int:
        return 0 if self._stored[3] is None else len(self._stored[3])

    def __repr__(self) -> str:
        return f"<Row {self.key}{' deleted' if self.is_deleted else ''}, {self.age:.3f} s old>"

    @property
    def is_deleted(self) -> bool:
        """The database had no such row."""
        return self._stored[3] is None

    @property
    def since(self) -> int:
        """loaded_at as a number of microseconds, which grows with each load of the row."""
        return int(self._stored[0])

    @property
    def loaded_at(self) -> datetime:
        """When its load began: what was committed before is in it."""
        return instant(self.since)

    @property
    def age(self) -> float:
        """Seconds from then until it was read from Redis, both by the server's clock."""
        return max(0, self._now - self.since) / 1e6

    @property
    def is_stale(self) -> bool:
        """It should have been loaded anew before it was read from Redis: who asks for stale rows must look."""
        return bool(self._stored[1] <= self._now)


@dataclass(frozen=True)
class Claim:
    """Rows that one loader has claimed with one call, all of one bucket."""

    tag: str
    token: str
    #: The microsecond of the claim.
    since: int
    members: tuple[str, ...]


@dataclass(frozen=True)
class Claims:
    """What a daemon has claimed at once."""

    claims: tuple[Claim, ...]
    #: Seconds until another row is due; 0 if one is, None if none is on the schedule.
    pause: float | None
    #: Why rows of some nodes of a cluster could not be asked for, if that is so.
    error: RedisUnavailable | None = None

    def __len__(self) -> int:
        return sum(len(claim.members) for claim in self.claims)


@dataclass(frozen=True)
class Failure:
    """How often the loading of a row has failed since it last did not."""

    count: int
    last_at: datetime
    error: str


@dataclass(frozen=True)
class RowInfo:
    """How a row stands."""

    name: str
    key: str
    #: Seconds between two loads, and when the next is due; None if it is not on the schedule.
    delay: float | None
    due_at: datetime | None
    #: Seconds for which it has been due; 0 if it is not yet. While it is being loaded, this is not known, and 0.
    late: float
    #: Of what is stored; None if nothing is.
    loaded_at: datetime | None
    age: float | None
    #: Bytes of JSON; 0 if nothing is stored.
    size: int
    is_deleted: bool
    failure: Failure | None


@dataclass(frozen=True)
class CacheInfo:
    """How the rows of one name stand that are on the schedule."""

    name: str
    count: int
    #: How many could not be loaded when that was last tried.
    failing: int
    #: Seconds for which the one has been due that has been for longest; 0 if none is.
    late: float
    #: It is not known exactly, and at most *late*: too many of other names have been due for longer.
    is_at_most: bool


@dataclass(frozen=True)
class Listed:
    """Members in the order of a list."""

    members: list[str]
    #: There are others, which were not looked for.
    is_cut: bool


def instant(microseconds: float) -> datetime:
    """Return the instant, or the last there is if the calendar has no such instant."""
    return instant_of(microseconds / 1000)
