"""Facts about mailboxes: frozen dataclasses. Instants are aware, in UTC."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

#: The effect of a push to a full mailbox.
WhenFull = Literal["refuse", "drop_oldest"]


class Fate(StrEnum):
    """The fate of a message."""

    WAITING = "waiting"
    HANDED_OUT = "handed out"
    ACKNOWLEDGED = "acknowledged"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Mail:
    """A message in a mailbox."""

    #: One more than the id of the previous message; the first is the server's microsecond. Ids are never reused.
    id: int
    sender: str
    text: str
    #: JSON data besides the text; None if there are none.
    data: Any
    sent_at: datetime
    #: Whether the message was handed out before and not acknowledged.
    is_again: bool
    #: Whether this release cannot read the stored message. Then the text is a placeholder.
    is_unreadable: bool = False


class Mails(list[Mail]):
    """The messages that a pull() hands out, oldest first."""

    def __init__(self, mails: Iterable[Mail] = (), *, missed: int = 0) -> None:
        super().__init__(mails)
        #: The number of dropped messages that the recipient does not know of. It becomes known when they acknowledge
        #: a message that was handed out together with it.
        self.missed = missed


@dataclass(frozen=True)
class Pushed:
    """The result of a push()."""

    id: int
    sent_at: datetime
    #: Whether the message was already stored, because it was pushed before with the same client id.
    is_duplicate: bool
    #: The ids of the messages that were dropped to make room.
    dropped: Sequence[int] = ()


@dataclass(frozen=True)
class Delivery:
    """The facts that a sender can see about their message."""

    id: int
    fate: Fate
    #: When the recipient last pulled; None if never.
    pulled_at: datetime | None


@dataclass(frozen=True)
class MailboxInfo:
    """The state of a mailbox."""

    name: str
    #: The number of messages, and of those that were handed out and not acknowledged.
    depth: int
    handed_out: int
    #: Memory, as estimated by the server; None if the user of Redis may not ask for it.
    bytes: int | None
    #: When the oldest message was sent; None if the mailbox is empty.
    oldest_at: datetime | None
    pulled_at: datetime | None
    #: The totals since the mailbox was created.
    pushed: int
    acknowledged: int
    dropped: int
    #: The limit that the last push declared; None before the first push.
    limit: int | None
