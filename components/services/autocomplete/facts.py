"""Facts about address books and recent contacts: frozen dataclasses. Instants are aware, in UTC."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from components.kit.stored import EPOCH


@dataclass(frozen=True)
class Contact:
    """A person, or a thing, that was used lately."""

    id: str
    #: The text that is shown; the id if no label was given.
    label: str
    touched_at: datetime


@dataclass(frozen=True)
class Entry:
    """A name in an address book, and whose it is."""

    id: str
    label: str


class Completions(list[Entry]):
    """The entries that complete() finds, the best first."""

    def __init__(self, entries: Iterable[Entry] = (), *, version: int = 0, is_whole: bool = True) -> None:
        super().__init__(entries)
        #: The version of the book. While it stays the same, so do all answers.
        self.version = version
        #: Nothing else matches, so a longer prefix can be looked for in this list.
        self.is_whole = is_whole


@dataclass(frozen=True)
class RankedEntry:
    """An entry that was selected."""

    id: str
    label: str
    #: The number of selections, each of which counts half as much after each half-life.
    weight: float


@dataclass(frozen=True)
class BookInfo:
    """The state of an address book."""

    name: str
    count: int
    #: Beginnings of names and of words in them, under which the entries are found.
    members: int
    #: The number of entries that were ever selected.
    selected: int
    #: Some of its names were folded by the rules of another release. Load it again, or searches miss them.
    is_outdated: bool
    #: An estimate by the server.
    bytes: int
    #: The microsecond of the last change; it grows with each.
    version: int
    changed_at: datetime
    #: When a load with replace=True last ended; None if there was none.
    loaded_at: datetime | None
    #: The number of entries in the load that is running; None if none is.
    loading: int | None


def instant(microseconds: bytes | int | float) -> datetime:
    """Return the instant so many microseconds after 1970, or 1970 itself if the calendar has no such instant."""
    try:
        return EPOCH + timedelta(microseconds=int(microseconds))
    except (ValueError, OverflowError):
        return EPOCH
