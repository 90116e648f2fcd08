"""Facts about chats: frozen dataclasses. Instants are aware, in UTC."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import Any

from components.services.chat.settings import ChatSettings


class Role(StrEnum):
    """The roles of members, from the most rights to the fewest."""

    OWNER = "owner"
    MODERATOR = "moderator"
    MEMBER = "member"


class EventKind(StrEnum):
    """The kinds of events in the sequence of a chat."""

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
    """The event that an entry of a chat has instead of a text."""

    kind: EventKind
    #: The person who did it; "" for the system.
    by: str
    #: The person concerned; "" if there is none. ERASED: the person whose earlier messages were deleted.
    user: str = ""
    #: ROLE: the new role. RENAMED: the new title. MUTED: until when, ISO 8601. DELETED: the seq. Else "".
    detail: str = ""


@dataclass(frozen=True)
class Quote:
    """The message that a reply replies to, as it was when the reply was read."""

    seq: int
    #: Both are "" if that message is gone, or if the reader may not see it.
    sender: str = ""
    text: str = ""


@dataclass(frozen=True)
class ChatMessage:
    """A message or an event. The chat's id and the seq identify it forever."""

    chat_id: str
    seq: int
    #: "" for an event.
    sender: str
    text: str
    #: Structured data besides the text, as JSON; None if there is none. A picture is a link in these data.
    data: Any
    #: The members whom it mentions, as of the time when it was sent.
    mentions: tuple[str, ...]
    sent_at: datetime
    #: The id by which its sender recognises it.
    client_id: str
    event: Event | None = None
    #: Whether this release cannot read the stored message. Then the text is a placeholder, and parts may be missing.
    is_unreadable: bool = False
    #: The message that it replies to; None if it is no reply.
    reply_to: Quote | None = None
    #: When its sender last edited it; None if never.
    edited_at: datetime | None = None
    #: Who has reacted with which emoji, both in the order of time.
    reactions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def people(self) -> tuple[str, ...]:
        """The ids of all people whom the message names. Some may be empty, because the system has no id."""
        done = (self.event.by, self.event.user) if self.event else ()
        quoted = (self.reply_to.sender,) if self.reply_to else ()
        reacted = chain.from_iterable(self.reactions.values())
        return (self.sender, *self.mentions, *done, *quoted, *reacted)


@dataclass(frozen=True)
class Sent:
    """The result of send()."""

    seq: int
    sent_at: datetime
    #: Whether the message was already stored, because it was sent before with the same client id.
    is_duplicate: bool
    #: The members whom it addresses: those whom it mentions, and in a chat of two the other one. Empty for a
    #: duplicate.
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
    #: Whether the stored membership cannot be read. Then role and instants are placeholders.
    is_unreadable: bool = False
    #: When they last had the chat open, None if it is not known; and whether they have it open now.
    seen_at: datetime | None = None
    is_here: bool = False


@dataclass(frozen=True)
class Present:
    """The people who have a chat open at the moment, without the one who asks."""

    #: At most 50 of them, those with the latest sign of life first; and how many there are.
    here: Sequence[str]
    count: int
    #: Those who are typing, at most five.
    typing: Sequence[str]


@dataclass(frozen=True)
class ChatInfo:
    """The state of a chat for the control room."""

    id: str
    title: str
    created_at: datetime
    created_by: str
    is_closed: bool
    settings: ChatSettings
    #: The seq of the last message or event, and of the first that still exists (last_seq + 1 if none does).
    last_seq: int
    first_seq: int
    messages: int
    bytes: int
    members: int
    #: None if nothing was ever sent.
    last_at: datetime | None
    #: Whether the stored chat cannot be read. Then everything but the id may be a placeholder.
    is_unreadable: bool = False


@dataclass(frozen=True)
class Page:
    """A part of the history, oldest first."""

    messages: Sequence[ChatMessage]
    #: Whether there are more messages in the requested direction.
    has_more: bool
    #: The first seq that still exists and that this member may see.
    oldest: int
    #: Whether there are more messages after a page *around* a message.
    has_newer: bool = False


@dataclass(frozen=True)
class Found:
    """Messages that a search has found, the newest first."""

    messages: Sequence[ChatMessage]
    #: The seq *before* which to search on; None if the whole history has been searched.
    next: int | None


@dataclass(frozen=True)
class Position:
    """The position of a client in a chat: the last seq that it has, and the revision up to which it knows changes."""

    seq: int
    revision: int = 0


@dataclass(frozen=True)
class ChatNews:
    """The state of a chat for one of its members."""

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
    #: Grows when a member reads, in chats that have *reads*; when a message is changed; and when removed messages
    #: change the counts.
    revision: int
    #: Messages and events after the given position, oldest first.
    messages: Sequence[ChatMessage] = ()
    #: Messages up to the given position that were changed after its revision, as they are now.
    changed: Sequence[ChatMessage] = ()
    #: Whether there are more messages than were requested.
    has_more: bool = False
    #: How many seqs between the position and the first of *messages* were removed by the limits of the chat.
    missed: int = 0
    #: The first seq that still exists and that the member may see.
    oldest: int = 1
    #: The last message or event; None if there is none.
    last_message: ChatMessage | None = None
    #: The seq up to which each member has read, in chats of up to 50 members; else empty.
    reads: Mapping[str, int] = field(default_factory=dict)
    muted_until: datetime | None = None

    @property
    def position(self) -> Position:
        """The position of a client that has received this."""
        # Erased messages after the last one will never arrive: if there are no more, the client has everything.
        return Position(self.messages[-1].seq if self.has_more else self.last_seq, self.revision)


class Chats(list[ChatNews]):
    """The chats of an inbox, newest first."""

    def __init__(self, chats: Iterable[ChatNews] = (), *, unavailable: Sequence[str] = ()) -> None:
        super().__init__(chats)
        #: The ids of chats that the person may be in, but whose state is unknown: their cluster node does not answer,
        #: or the stored chat cannot be read.
        self.unavailable = unavailable


@dataclass(frozen=True)
class ChatPage:
    """Some of the chats of a person."""

    chats: Sequence[ChatNews]
    #: The argument *after* for the next page; "" if this is the last page.
    next: str
    #: The ids of chats of this page whose state is unknown, as in Chats.unavailable.
    unavailable: Sequence[str] = ()


@dataclass(frozen=True)
class Changes:
    """The news in all chats of a person since the given positions."""

    chats: Sequence[ChatNews]
    #: The given chats that the person is not in any more.
    gone: Sequence[str]
    #: The positions for the next request.
    positions: Mapping[str, Position]
    #: Whether more chats have changed than are listed. If so, ask again with *positions*.
    has_more: bool = False
    #: The ids of chats whose state is unknown, as in Chats.unavailable. Their positions do not change.
    unavailable: Sequence[str] = ()
    #: False if the cluster node with the person's inbox does not answer. Then new chats are missing.
    is_complete: bool = True


@dataclass(frozen=True)
class Unread:
    """What a person has not read in all their chats."""

    messages: int
    #: Messages that mention the person, and chats in which something is unread.
    mentions: int
    chats: int


@dataclass(frozen=True)
class Erased:
    """The result of the erasure of a person."""

    chats: int
    messages: int
