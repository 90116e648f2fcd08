"""What chats say about themselves: facts, as frozen dataclasses. Instants are aware, in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


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
    """What happened, in place of a text."""

    kind: EventKind
    #: Who did it; "" for the system.
    by: str
    #: To whom; "" if to nobody. ERASED: whose messages of before are gone.
    user: str = ""
    #: ROLE: the new role. RENAMED: the new title. MUTED: until when, ISO 8601. DELETED: the seq. Else "".
    detail: str = ""


@dataclass(frozen=True)
class ChatMessage:
    """A message or an event: (chat_id, seq) names it for ever."""

    chat_id: str
    seq: int
    #: "" for an event.
    sender: str
    text: str
    #: Structured data beside the text, as JSON; None if there is none. A picture is a link in it.
    data: Any
    #: Whom it mentions, of the members at that time.
    mentions: tuple[str, ...]
    sent_at: datetime
    #: By which its sender recognises it.
    client_id: str
    event: Event | None = None
    #: What is stored cannot be read by this release, or by none: the text is a placeholder, and parts may be missing.
    is_unreadable: bool = False


@dataclass(frozen=True)
class Sent:
    """What became of a send()."""

    seq: int
    sent_at: datetime
    #: It was there already: sent before under the same client id.
    is_duplicate: bool
    #: To whom it speaks: the members that it mentions, and in a chat of two the other one. Nobody, the second time.
    spoken_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChatSettings:
    """How a chat works. Sizes in bytes or characters, durations in seconds."""

    #: How many of the messages before his joining a joiner sees; None for all.
    history: int | None = None
    #: What goes is the oldest, however far the slowest member has read.
    max_messages: int = 10_000
    max_bytes: int = 16 * 1024 * 1024
    max_age: float | None = None
    #: What all members have read goes when it is this old; None: it stays.
    drop_read_after: float | None = None
    max_text: int = 4_000
    max_data: int = 8_192
    max_members: int = 1_000
    #: A member may send this many in rate_period; 0 for any number.
    rate_limit: int = 20
    rate_period: float = 10.0
    #: The least time between two messages of a member who is no moderator.
    slow_mode: float = 0.0
    #: Whether who knows the id may join by himself.
    is_open: bool = False


@dataclass(frozen=True)
class Member:
    user: str
    role: Role
    joined_at: datetime
    #: Up to which seq he has read, and how much is before him.
    read_seq: int
    unread: int
    mentions: int
    #: None if he may speak.
    muted_until: datetime | None
    #: What is stored of the membership cannot be read: role and instants are placeholders.
    is_unreadable: bool = False


@dataclass(frozen=True)
class ChatInfo:
    """A chat, for those who look after it."""

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
    #: None if nothing was ever said.
    last_at: datetime | None
    #: What is stored of the chat itself cannot be read: all but the id may be a placeholder.
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
    #: Unread ones that mention him.
    mentions: int
    members: int
    #: Grows when somebody reads, in chats whose *reads* are told, and when counts change since something is gone.
    revision: int
    #: Messages and events after the position asked for, oldest first.
    messages: Sequence[ChatMessage] = ()
    #: Whether there are more of them than were asked for.
    has_more: bool = False
    #: How many seqs between the position and the first message here retention has taken away.
    missed: int = 0
    #: The first seq that he may see and that is still there.
    oldest: int = 1
    #: The last one that is there, event or not; None if there is none.
    last_message: ChatMessage | None = None
    #: Up to where each member has read, in chats of up to 50 members; else empty.
    reads: Mapping[str, int] = field(default_factory=dict)
    muted_until: datetime | None = None

    @property
    def position(self) -> Position:
        """Where a client is that has got this."""
        # What was erased after the last of them will not come: with nothing more, he has all.
        return Position(self.messages[-1].seq if self.has_more else self.last_seq, self.revision)


class Chats(list[ChatNews]):
    """What an inbox finds, newest first."""

    def __init__(self, chats: Iterable[ChatNews] = (), *, unavailable: Sequence[str] = ()) -> None:
        super().__init__(chats)
        #: The ids of chats that the person may be in, and of which nothing can be told now: their node of a cluster
        #: does not answer, or what is stored of them cannot be read.
        self.unavailable = unavailable


@dataclass(frozen=True)
class ChatPage:
    """Some of the chats of a person."""

    chats: Sequence[ChatNews]
    #: What to ask for the next ones with; "" if these are the last.
    next: str
    #: The ids of chats of this page of which nothing can be told now, as Chats.unavailable says.
    unavailable: Sequence[str] = ()


@dataclass(frozen=True)
class Changes:
    """What is new in all chats of a person since the positions that they gave."""

    chats: Sequence[ChatNews]
    #: Chats of the given positions that the person is in no more.
    gone: Sequence[str]
    #: What to ask with next.
    positions: Mapping[str, Position]
    #: Whether more chats than were asked for have changed: ask again with the positions.
    has_more: bool = False
    #: Chats of which nothing can be told now, as Chats.unavailable says. Their positions stay as they were.
    unavailable: Sequence[str] = ()
    #: False if the node of a cluster does not answer that knows which chats there are: then new ones are missing.
    is_complete: bool = True


@dataclass(frozen=True)
class Erased:
    """What the erasure of a person took away."""

    chats: int
    messages: int
