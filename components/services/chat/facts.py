"""Facts about chats: frozen dataclasses. Instants are aware, in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from components.services.chat.settings import ChatSettings


class Role(StrEnum):
    """What a member may do, from the most to the least."""

    OWNER = "owner"
    MODERATOR = "moderator"
    MEMBER = "member"


class EventKind(StrEnum):
    """What happened to a chat, told in its own sequence."""

    CREATED = "created"
    JOINED = "joined"
    LEFT = "left"
    KICKED = "kicked"
    BLOCKED = "blocked"
    UNBLOCKED = "unblocked"
    ROLE = "role"
    MUTED = "muted"
    UNMUTED = "unmuted"
    DELETED = "deleted"
    ERASED = "erased"
    RENAMED = "renamed"
    CONFIGURED = "configured"
    CLOSED = "closed"
    REOPENED = "reopened"


@dataclass(frozen=True)
class Event:
    """An event of a chat, which takes the place of a text."""

    kind: EventKind
    #: Who did it; "" for the system.
    by: str
    #: To whom; "" if to nobody. ERASED: the person whose earlier messages are gone.
    user: str = ""
    #: ROLE: the new role. RENAMED: the new title. MUTED: until when, ISO 8601. DELETED: the seq. Else "".
    detail: str = ""


@dataclass(frozen=True)
class ChatMessage:
    """A message or an event. Its chat and seq together are its id for ever."""

    chat_id: str
    seq: int
    #: "" for an event.
    sender: str
    text: str
    #: Structured data beside the text, as JSON; None if there is none. A picture is a link in it.
    data: Any
    #: The members that it mentions, as they were at that time.
    mentions: tuple[str, ...]
    sent_at: datetime
    #: The id by which its sender recognises it.
    client_id: str
    event: Event | None = None
    #: The stored message cannot be read by this release: its text is a placeholder, and parts may be missing.
    is_unreadable: bool = False

    @property
    def people(self) -> tuple[str, ...]:
        """The ids of all people whom it names. Some may be empty: an event of the system is nobody's."""
        done = (self.event.by, self.event.user) if self.event else ()
        return (self.sender, *self.mentions, *done)


@dataclass(frozen=True)
class Sent:
    """The result of send()."""

    seq: int
    sent_at: datetime
    #: The message was there already: it was sent before under the same client id.
    is_duplicate: bool
    #: To whom it speaks: the members that it mentions, and in a chat of two the other one. Empty for a duplicate.
    spoken_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class Member:
    user: str
    role: Role
    joined_at: datetime
    #: The seq up to which they have read, and how many messages and mentions they have not read.
    read_seq: int
    unread: int
    mentions: int
    #: None if they are not muted.
    muted_until: datetime | None
    #: The stored membership cannot be read: role and instants are placeholders.
    is_unreadable: bool = False


@dataclass(frozen=True)
class ChatInfo:
    """A chat, as those see it who look after it."""

    id: str
    title: str
    created_at: datetime
    created_by: str
    is_closed: bool
    settings: ChatSettings
    #: The seq of the last message or event, and the first that is still there (last_seq + 1 if none is).
    last_seq: int
    first_seq: int
    messages: int
    bytes: int
    members: int
    #: None if nothing was ever sent.
    last_at: datetime | None
    #: The stored chat cannot be read: all but the id may be a placeholder.
    is_unreadable: bool = False


@dataclass(frozen=True)
class Page:
    """A part of the history, oldest first."""

    messages: Sequence[ChatMessage]
    #: Whether there is more in the direction that was asked for.
    has_more: bool
    #: The first seq that this member may see and that is still there.
    oldest: int


@dataclass(frozen=True)
class Position:
    """How far a client has come in a chat: the last seq it has, and the revision of the reading positions."""

    seq: int
    revision: int = 0


@dataclass(frozen=True)
class ChatNews:
    """A chat as one of its members finds it."""

    chat_id: str
    title: str
    role: Role
    is_closed: bool
    last_seq: int
    read_seq: int
    unread: int
    #: Unread messages that mention the member.
    mentions: int
    members: int
    #: Grows when somebody reads, in chats that tell *reads*, and when counts change because something is gone.
    revision: int
    #: Messages and events after the position asked for, oldest first.
    messages: Sequence[ChatMessage] = ()
    #: Whether there are more of them than were asked for.
    has_more: bool = False
    #: How many seqs the limits of the chat have removed between the position and the first message here.
    missed: int = 0
    #: The first seq that the member may see and that is still there.
    oldest: int = 1
    #: The last message or event that is there; None if there is none.
    last_message: ChatMessage | None = None
    #: The seq up to which each member has read, in chats of up to 50 members; else empty.
    reads: Mapping[str, int] = field(default_factory=dict)
    muted_until: datetime | None = None

    @property
    def position(self) -> Position:
        """The position of a client that has got this."""
        # What was erased after the last message will not come: with nothing more, the client has all.
        return Position(self.messages[-1].seq if self.has_more else self.last_seq, self.revision)


class Chats(list[ChatNews]):
    """The chats of an inbox, newest first."""

    def __init__(self, chats: Iterable[ChatNews] = (), *, unavailable: Sequence[str] = ()) -> None:
        super().__init__(chats)
        #: The ids of chats that the person may be in, and of which nothing can be told now: their node of a cluster
        #: does not answer, or the stored chat cannot be read.
        self.unavailable = unavailable


@dataclass(frozen=True)
class ChatPage:
    """Some of the chats of a person."""

    chats: Sequence[ChatNews]
    #: The argument that asks for the next ones; "" if these are the last.
    next: str
    #: The ids of chats of this page of which nothing can be told now, as Chats.unavailable says.
    unavailable: Sequence[str] = ()


@dataclass(frozen=True)
class Changes:
    """What is new in all chats of a person since the positions that they gave."""

    chats: Sequence[ChatNews]
    #: The chats of the given positions that the person is not in any more.
    gone: Sequence[str]
    #: The positions to ask with next.
    positions: Mapping[str, Position]
    #: Whether more chats have changed than are told of: ask again with the positions.
    has_more: bool = False
    #: Chats of which nothing can be told now, as Chats.unavailable says. Their positions stay as they were.
    unavailable: Sequence[str] = ()
    #: False if the node of a cluster does not answer that knows which chats there are: then new ones are missing.
    is_complete: bool = True


@dataclass(frozen=True)
class Erased:
    """The result of the erasure of a person."""

    chats: int
    messages: int
