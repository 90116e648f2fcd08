"""What mailboxes say: facts, as frozen dataclasses. Instants are aware, in UTC."""

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

    #: One more than that of the message before, and never given anew: the first was the server's microsecond.
    id: int
    sender: str
    text: str
    #: Structured data beside the text, as JSON; None if there is none.
    data: Any
    sent_at: datetime
    #: It was handed out before, and not acknowledged.
    is_again: bool
    #: What is stored cannot be read by this release, or by none: the text is a placeholder.
    is_unreadable: bool = False


class Mails(list[Mail]):
    """What a pull() hands out, oldest first."""

    def __init__(self, mails: Iterable[Mail] = (), *, missed: int = 0) -> None:
        super().__init__(mails)
        #: How many were dropped that the recipient does not know of. It does once it acknowledges something that was
        #: handed out together with this number.
        self.missed = missed


@dataclass(frozen=True)
class Pushed:
    """What became of a push()."""

    id: int
    sent_at: datetime
    #: It was there already: pushed before under the same client id.
    is_duplicate: bool
    #: The ids of those that had to go for it.
    dropped: Sequence[int] = ()


@dataclass(frozen=True)
class Delivery:
    """What the sender can see of his message."""

    id: int
    fate: Fate
    #: When the recipient last pulled; None if never.
    pulled_at: datetime | None


@dataclass(frozen=True)
class MailboxInfo:
    """How a mailbox stands."""

    name: str
    depth: int
    #: Of these, how many were handed out and not acknowledged.
    handed_out: int
    bytes: int
    #: When the oldest that is there was sent; None if it is empty.
    oldest_at: datetime | None
    pulled_at: datetime | None
    #: Since it exists.
    pushed: int
    acknowledged: int
    dropped: int
    #: As the last push declared; None before the first.
    limit: int | None
