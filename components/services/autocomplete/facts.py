"""Facts about address books and recent contacts: frozen dataclasses. Instants are aware, in UTC."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Contact:
    """A person or a thing that was contacted or used recently."""

    id: str
    #: The text that is shown; the id if no label was given.
    label: str
    touched_at: datetime


@dataclass(frozen=True)
class Entry:
    """A name in an address book, with its id."""

    id: str
    label: str


class Completions(list[Entry]):
    """The entries that complete() finds, the best first."""

    def __init__(self, entries: Iterable[Entry] = (), *, version: int = 0, is_whole: bool = True) -> None:
        super().__init__(entries)
        #: The version of the book. Answers stay the same while the version does.
        self.version = version
        #: Whether these are all matches. If so, a longer prefix can be searched in this list.
        self.is_whole = is_whole


@dataclass(frozen=True)
class RankedEntry:
    """An entry that was selected."""

    id: str
    label: str
    #: The number of selections. A selection loses half its weight with each half-life.
    weight: float


@dataclass(frozen=True)
class BookInfo:
    """The state of an address book."""

    name: str
    count: int
    #: The number of index members: beginnings of names, and of words in them.
    members: int
    #: The number of entries that were ever selected.
    selected: int
    #: Whether names were folded by the rules of another release. Searches miss those until the book is loaded again.
    is_outdated: bool
    #: Memory, as estimated by the server; None if the user of Redis may not ask for it.
    bytes: int | None
    #: The version: the microsecond of the last change. It grows with each change.
    version: int
    changed_at: datetime
    #: When a load with replace=True last ended; None if there was none.
    loaded_at: datetime | None
    #: The number of entries in the load that is running; None if none is.
    loading: int | None
