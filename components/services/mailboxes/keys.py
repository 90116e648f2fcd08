"""The keys of mailboxes. The entity is a bucket of mailboxes, so that one index lists all of a bucket."""

from __future__ import annotations

from components.kit.keyspace import bucket, stem


class MailboxKeys:
    """The keys of the mailbox *name*, by the names that the scripts have for them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bucket = stem("mailboxes", bucket(name))

    @property
    def mailbox(self) -> str:
        """HASH of counters, and when it was last pulled. Expires a year after the last use."""
        return f"{self._bucket}mailbox:{self._name}"

    @property
    def messages(self) -> str:
        """STREAM <id>-0 -> message. An entry goes when it is acknowledged or dropped. Expires as the mailbox."""
        return f"{self._bucket}messages:{self._name}"

    @property
    def handed(self) -> str:
        """ZSET "<id> <pull>" by id: what was handed out and not acknowledged. Expires as the mailbox."""
        return f"{self._bucket}handed:{self._name}"

    @property
    def dropped(self) -> str:
        """ZSET id by id: the last 1,000 that were dropped. Expires a month after the last."""
        return f"{self._bucket}dropped:{self._name}"

    @property
    def sent(self) -> str:
        """
        HASH per day (prefix of it: ends in ":" and the day): what was pushed, and who sent what is gone.

        Expires after two days. One of 10,000 fields, or of two for each message of the limit, takes the place of that
        of the day before.
        """
        return f"{self._bucket}sent:{self._name}"

    @property
    def blocked(self) -> str:
        """HASH sender whose mail is refused -> the millisecond since when; 10,000 at most. Until unblocked."""
        return f"{self._bucket}blocked:{self._name}"

    @property
    def names(self) -> str:
        """ZSET name by the day of its last use, of the bucket. An entry goes after a year. Expires with the last."""
        return f"{self._bucket}names"


def index(tag: str) -> str:
    """ZSET name by the day of its last use, of a bucket. An entry goes after a year. Expires with the last."""
    return f"{stem('mailboxes', tag)}names"
