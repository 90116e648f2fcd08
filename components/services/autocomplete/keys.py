"""
The keys of autocomplete. The entity is an address book, since one script reads or changes all of it. For recent
contacts, the entity is a bucket of people.
"""

from __future__ import annotations

from components.kit.keyspace import bucket, stem

#: The single entity of names(): one index lists all books.
ALL = "all"


class BookKeys:
    """The keys of the address book *name*, named as in the scripts."""

    def __init__(self, name: str) -> None:
        self._book = stem("books", name)

    @property
    def book(self) -> str:
        """HASH version, count, time of the last load, version of the folding rules. Goes with the book."""
        return f"{self._book}book"

    @property
    def entries(self) -> str:
        """ZSET search key from its start or from a word on, \\x01, id. A member goes with its entry."""
        return f"{self._book}entries"

    @property
    def rows(self) -> str:
        """HASH first digits of the digest of ids -> the rows of these entries. A row goes with its entry."""
        return f"{self._book}rows"

    @property
    def ranks(self) -> str:
        """ZSET id by the logarithm of its decaying number of selections. A member goes with its entry."""
        return f"{self._book}ranks"

    @property
    def selected(self) -> str:
        """ZSET members as in *entries*, of entries that were ever selected. A member goes with its entry."""
        return f"{self._book}selected"

    @property
    def tops(self) -> str:
        """HASH prefix that many selected entries match -> the best of them. A field goes when only few match."""
        return f"{self._book}tops"

    @property
    def loading(self) -> str:
        """HASH token and count of the running load. Goes when the load ends. Expires after an hour."""
        return f"{self._book}loading"

    @property
    def next_entries(self) -> str:
        """ZSET as *entries*, of the running load. Replaces *entries*, or goes. Expires with the load."""
        return f"{self._book}next-entries"

    @property
    def next_rows(self) -> str:
        """HASH as *rows*, of the running load. Replaces *rows*, or goes. Expires with the load."""
        return f"{self._book}next-rows"

    @property
    def next_selected(self) -> str:
        """ZSET as *selected*, of the running load. Replaces *selected*, or goes. Expires with the load."""
        return f"{self._book}next-selected"

    @property
    def changed(self) -> str:
        """
        SET ids that changed during the load, which must not undo the changes.

        Goes with the load. Expires with it.
        """
        return f"{self._book}changed"

    @property
    def calls(self) -> str:
        """
        STRING answer to a call, in case it is repeated; one per call (prefix of it: ends in ":" and the call).

        Expires after a minute.
        """
        return f"{self._book}calls"


class ContactsKeys:
    """The keys of the recent contacts of a person, named as in the scripts."""

    def __init__(self, person: str) -> None:
        self._person = person
        self._bucket = stem("contacts", bucket(person))

    @property
    def contacts(self) -> str:
        """ZSET contact by the microsecond of its last touch. The newest stay. Expires a year after the last use."""
        return f"{self._bucket}contacts:{self._person}"

    @property
    def labels(self) -> str:
        """
        HASH contact -> the call that touched it, \\x01, its label or "".

        A field goes with its contact. Expires with them.
        """
        return f"{self._bucket}labels:{self._person}"

    @property
    def calls(self) -> str:
        """
        STRING answer to a call, in case it is repeated; one per call (prefix of it: ends in ":" and the call).

        It is the bucket's. Expires after a minute.
        """
        return f"{self._bucket}calls"


def names(tag: str) -> str:
    """ZSET names of all books, with equal scores. One goes when its book is removed."""
    return f"{stem('books', tag)}names"
