"""What address books and recent contacts say: facts, as frozen dataclasses. Instants are aware, in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Contact:
    """Somebody, or something, that was used lately."""

    id: str
    #: What is shown; the id if nothing else was given.
    label: str
    touched_at: datetime


@dataclass(frozen=True)
class Entry:
    """A name in an address book, and whose it is."""

    id: str
    label: str


class Completions(list[Entry]):
    """What complete() finds, best first."""

    def __init__(self, entries: Iterable[Entry] = (), *, version: int = 0, is_whole: bool = True) -> None:
        super().__init__(entries)
        #: That of the book: as long as it is the same, so are all its answers.
        self.version = version
        #: Nothing else matches, so a longer prefix can be looked for in this list.
        self.is_whole = is_whole


@dataclass(frozen=True)
class RankedEntry:
    """An entry that was selected."""

    id: str
    label: str
    #: How often, where a selection counts half as much after each half-life.
    weight: float


@dataclass(frozen=True)
class BookInfo:
    """How an address book stands."""

    name: str
    count: int
    #: Beginnings of names and of words in them, under which its entries are found.
    members: int
    #: How many entries were ever selected.
    selected: int
    #: Its names, or some of them, were folded by the rules of another release: load it anew, or they are missed.
    is_outdated: bool
    #: An estimate by the server.
    bytes: int
    #: Grows with each change; it is the microsecond of the last.
    version: int
    changed_at: datetime
    #: When a load of the whole last ended; None if there was none.
    loaded_at: datetime | None
    #: How many entries the load has that runs now; None if none does.
    loading: int | None


def instant(microseconds: bytes | int | float) -> datetime:
    """Return the instant; that of 1970 for a number that none has."""
    try:
        return _EPOCH + timedelta(microseconds=int(microseconds))
    except (ValueError, OverflowError):
        return _EPOCH
