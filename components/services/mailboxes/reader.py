"""
MailboxReader: the list of all mailboxes, in pages, for the control room.

Each bucket has an index of names. A page takes three round trips, however many mailboxes there are: for the sizes of
all buckets, for the names in the buckets that it shows, and for the figures of these mailboxes. Reading changes
nothing.
"""

from __future__ import annotations

from components.kit.buckets import Index
from components.kit.client import get_client
from components.kit.twins import at_once
from components.services.mailboxes.facts import Mail, MailboxInfo
from components.services.mailboxes.keys import index
from components.services.mailboxes.mailbox import check_limit, look, peek

_ALL = Index(index)


class MailboxReader:
    """The mailboxes that were used within a year. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """Return how many mailboxes there are."""
        return sum(_ALL.sizes())

    def page(self, *, offset: int = 0, limit: int = 50) -> list[MailboxInfo]:
        """
        Return a page of the mailboxes, ordered by name within each bucket, from the *offset*-th on.

        Using a mailbox may move it to another page, at most once a day.
        """
        return at_once(look(get_client(), sorted(_ALL.page(offset, limit))))

    def find(self, name: str) -> MailboxInfo | None:
        """Return the mailbox with this name; None if it was never used, or not within a year."""
        if not name:
            return None
        [info] = at_once(look(get_client(), [name]))
        return info if info.pushed or info.pulled_at else None

    def messages(self, name: str, *, first: int = 0, limit: int = 50) -> list[Mail]:
        """Return a page of the messages of a mailbox, from the id *first* on, without handing them out."""
        return at_once(peek(get_client(), name, first=first, limit=check_limit(limit)))
