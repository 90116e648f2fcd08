"""Facts about mailboxes: frozen dataclasses. Instants are aware, in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

#: What a push to a full mailbox does.
WhenFull = Literal["refuse", "drop_oldest"]


class Fate(StrEnum):
    """What became of a message."""

    WAITING = "waiting"
    HANDED_OUT = "handed out"
    ACKNOWLEDGED = "acknowledged"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Mail:
    """A message in a mailbox."""

    #: One more than the id of the message before; the first is the server's microsecond. Ids are never reused.
    id: int
    sender: str
    text: str
    #: JSON beside the text; None if there is none.
    data: Any
    sent_at: datetime
    #: The message was handed out before, and not acknowledged.
    is_again: bool
    #: The stored message cannot be read by this release: its text is a placeholder.
    is_unreadable: bool = False


class Mails(list[Mail]):
    """The messages that a pull() hands out, oldest first."""

    def __init__(self, mails: Iterable[Mail] = (), *, missed: int = 0) -> None:
        super().__init__(mails)
        #: How many messages were dropped that the recipient was not told of. They count as told when the recipient
        #: acknowledges a message that was handed out together with this number.
        self.missed = missed


@dataclass(frozen=True)
class Pushed:
    """What became of a push()."""

    id: int
    sent_at: datetime
    #: The message was there already: it was pushed before under the same client id.
    is_duplicate: bool
    #: The ids of the messages that were dropped to make room.
    dropped: Sequence[int] = ()


@dataclass(frozen=True)
class Delivery:
    """What a sender can see of their message."""

    id: int
    fate: Fate
    #: When the recipient last pulled; None if never.
    pulled_at: datetime | None


@dataclass(frozen=True)
class MailboxInfo:
    """How a mailbox stands."""

    name: str
    #: How many messages are there, and how many of them were handed out and not acknowledged.
    depth: int
    handed_out: int
    bytes: int
    #: When the oldest message was sent; None if the mailbox is empty.
    oldest_at: datetime | None
    pulled_at: datetime | None
    #: How many, since the mailbox exists.
    pushed: int
    acknowledged: int
    dropped: int
    #: As the last push declared; None before the first.
    limit: int | None
