"""Rows for the templates of the chat page: chats, messages and members, ready to be shown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from components.people import names_of
from components.services.chat import ChatMessage, ChatNews, Member, Quote, Role
from components.services.chat.page import texts
from components.services.chat.page.texts import NameOf
from components.services.chat.rich import plain, rich
from components.services.chat.search import Search

_QUOTED = 200  # characters of a quoted message
_RANKS = list(Role)  # from the most to the least
_ROLES = {Role.OWNER: _("owner"), Role.MODERATOR: _("moderator"), Role.MEMBER: _("member")}


@dataclass(frozen=True)
class ChatRow:
    """A chat in the list, or the one that is open."""

    id: str
    title: str
    initials: str
    tone: int
    preview: str
    last_at: datetime | None
    unread: int
    mentions: int
    members: int
    last_seq: int


@dataclass(frozen=True)
class QuoteRow:
    """The message that a reply replies to. The name is "" if it is gone."""

    seq: int
    name: str
    text: str


@dataclass(frozen=True)
class ReactionRow:
    """An emoji, the names of those who have reacted with it, and whether the viewer is among them."""

    emoji: str
    names: str
    count: int
    is_mine: bool


@dataclass(frozen=True)
class MessageRow:
    """A message, an event, or the line above new messages. Only one of the three is set."""

    seq: int = 0
    is_divider: bool = False
    event: str = ""
    name: str = ""
    initials: str = ""
    tone: int = 0
    text: SafeString | str = ""
    sent_at: datetime | None = None
    is_mine: bool = False
    mentions_me: bool = False
    edited_at: datetime | None = None
    quote: QuoteRow | None = None
    reactions: Sequence[ReactionRow] = ()


@dataclass(frozen=True)
class FoundRow:
    """A message that a search has found: a part of it, in pieces, each with whether it was looked for."""

    seq: int
    name: str
    initials: str
    tone: int
    sent_at: datetime
    pieces: Sequence[tuple[str, bool]]


@dataclass(frozen=True)
class MemberRow:
    """A member, and what the viewer may do to them: pairs of an action and its label."""

    user: str
    name: str
    initials: str
    tone: int
    role: str
    muted_until: datetime | None
    is_here: bool
    seen_at: datetime | None
    actions: Sequence[tuple[str, str]]


def naming(ids: Iterable[str]) -> NameOf:
    """Return a function from these ids to names. A person who no longer exists is shown by their id."""
    names = names_of(ids)
    return lambda id: names.get(id, id)


def ids_in(chats: Iterable[ChatNews], messages: Iterable[ChatMessage] = ()) -> Iterator[str]:
    """Yield the ids of all persons in the chats and messages."""
    for chat in chats:
        yield from chat.reads
        yield from chat.last_message.people if chat.last_message else ()
    for message in messages:
        yield from message.people


def chat_row(chat: ChatNews, me: str, name_of: NameOf) -> ChatRow:
    title = texts.title_of(chat, me, name_of)
    last = chat.last_message
    return ChatRow(
        id=chat.chat_id,
        title=title,
        initials=texts.initials(title),
        tone=texts.tone(chat.chat_id),
        preview=texts.preview(last, me, name_of),
        last_at=last.sent_at if last else None,
        unread=chat.unread,
        mentions=chat.mentions,
        members=chat.members,
        last_seq=chat.last_seq,
    )


def message_rows(
    chat: ChatNews, messages: Iterable[ChatMessage], me: str, name_of: NameOf
) -> Iterator[MessageRow]:
    """Yield the rows of a conversation, with a line above the first new message."""
    is_new = not chat.unread
    for message in messages:
        if message.event:
            yield MessageRow(message.seq, event=texts.sentence(message.event, name_of))
            continue
        is_mine = message.sender == me
        if not is_new and message.seq > chat.read_seq and not is_mine:
            is_new = True
            yield MessageRow(is_divider=True)
        name = name_of(message.sender)
        yield MessageRow(
            message.seq,
            name=name,
            initials=texts.initials(name),
            tone=texts.tone(message.sender),
            text=texts.formatted(rich(message.text)) or _picture(message),
            sent_at=message.sent_at,
            is_mine=is_mine,
            mentions_me=me in message.mentions,
            edited_at=message.edited_at,
            quote=quote_row(message.reply_to, name_of) if message.reply_to else None,
            reactions=[
                ReactionRow(emoji, ", ".join(map(name_of, who)), len(who), me in who)
                for emoji, who in message.reactions.items()
            ],
        )


def quote_row(quote: Quote, name_of: NameOf) -> QuoteRow:
    name = name_of(quote.sender) if quote.sender else ""
    return QuoteRow(
        quote.seq, name, plain(rich(quote.text))[:_QUOTED] or (str(texts.PICTURE) if name else "")
    )


def found_rows(messages: Iterable[ChatMessage], search: Search, name_of: NameOf) -> Iterator[FoundRow]:
    for message in messages:
        name = name_of(message.sender)
        pieces = search.excerpt(plain(rich(message.text)))
        tone = texts.tone(message.sender)
        yield FoundRow(message.seq, name, texts.initials(name), tone, message.sent_at, pieces)


def _picture(message: ChatMessage) -> SafeString:
    url = message.data.get("url") if isinstance(message.data, dict) else None
    return texts.formatted(rich(url if isinstance(url, str) else ""))


def member_rows(
    members: Iterable[Member], me: str, my_role: Role, name_of: NameOf, now: datetime
) -> Iterator[MemberRow]:
    for member in members:
        name = name_of(member.user)
        is_muted = member.muted_until is not None and member.muted_until > now
        yield MemberRow(
            user=member.user,
            name=name,
            initials=texts.initials(name),
            tone=texts.tone(member.user),
            role=str(_ROLES[member.role]),
            muted_until=member.muted_until if is_muted else None,
            is_here=member.is_here and member.user != me,
            seen_at=None if member.user == me else member.seen_at,
            actions=() if member.user == me else tuple(_actions(my_role, member.role, is_muted)),
        )


def _actions(mine: Role, theirs: Role, is_muted: bool) -> Iterator[tuple[str, str]]:
    if mine == Role.OWNER:
        if theirs != Role.OWNER:
            yield "owner", gettext("Make owner")
        if theirs != Role.MODERATOR:
            yield "moderator", gettext("Make moderator")
        if theirs != Role.MEMBER:
            yield "member", gettext("Make member")
    if _RANKS.index(mine) < _RANKS.index(theirs):
        yield ("unmute", gettext("Unmute")) if is_muted else ("mute", gettext("Mute for an hour"))
        yield "kick", gettext("Remove")
        yield "block", gettext("Remove and block")
