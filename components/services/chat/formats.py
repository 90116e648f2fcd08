"""
The stored format of a chat: conversion to bytes and back.

An entry of the stream has the fields s (sender, "" of an event), c (client id or call), t (millisecond), n (how many
messages there were up to here), m (mentions) and b (body); a reply also has r (the seq that it replies to). A body
is that of a message (kit/bodies.py), or "e" and an event. What was changed of a message is stored beside it: the
millisecond of the edit, mentions and body since then, and emoji and person of each reaction. Each of these is
preceded by its length, as each part of an event and each mention is, because Lua writes some of them. The answers of
scripts about chats and members are read here as well.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from components.exceptions import InvalidMessage
from components.kit.bodies import read_body
from components.kit.decoding import (
    EPOCH,
    UNREADABLE,
    Unreadable,
    from_ms,
    from_ms_or_none,
    number_of,
    text_of,
)
from components.kit.lua_headers import record
from components.kit.translation import gettext
from components.kit.validation import is_blank
from components.services.chat.emoji import qualified
from components.services.chat.facts import ChatMessage, ChatNews, Event, EventKind, Member, Quote, Role
from components.services.counters import tally

MAX_CLIENT_ID = 64  # characters
LEASE = 60_000  # milliseconds that a sign of life counts, as in _present.lua

ROLES = {"o": Role.OWNER, "m": Role.MODERATOR, "u": Role.MEMBER}
LETTERS = {role: letter for letter, role in ROLES.items()}


_MEMBER, _NEWS = record("chat", "member"), record("chat", "news")


def muted_until(word: str) -> datetime | None:
    """Return when a mute ends: None for "0", which is no mute. "-1" is a mute without end."""
    if word == "0":
        return None
    return datetime.max.replace(tzinfo=UTC) if word == "-1" else from_ms(word)


def check_client_id(client_id: object) -> str:
    """Return *client_id* if it is valid. Raises InvalidMessage."""
    if (
        isinstance(client_id, str)
        and 0 < len(client_id) <= MAX_CLIENT_ID
        and client_id.isprintable()  # False for half a surrogate pair
    ):
        return client_id
    raise InvalidMessage(
        f"The client id is {repr(client_id)[:80]}; it must be 1 to {MAX_CLIENT_ID} printable characters."
    )


def check_title(title: object) -> str:
    """Return *title* if it is valid. Raises InvalidMessage."""
    if title == "" or (
        isinstance(title, str) and len(title) <= 200 and title.isprintable() and not is_blank(title)
    ):
        return title
    wrong = gettext("The title is %(title)s; it must be up to 200 printable characters.")
    raise InvalidMessage(wrong % {"title": repr(title)[:80]})


def write_event(kind: EventKind, by: str, user: str = "", detail: str | None = "") -> bytes:
    """Return the body of an event. If *detail* is None, that part is missing, and a script appends it."""
    parts = [kind, by, user] if detail is None else [kind, by, user, detail]
    return b"e" + b"".join(b"%d:%s" % (len(part), part) for part in map(str.encode, parts))


def _parts(packed: bytes) -> Iterator[str]:
    """Yield packed parts: those of an event or of an edit, or mentions. Raises Unreadable."""
    at = 0
    while at < len(packed):
        colon = packed.index(b":", at)
        length = int(packed[at:colon])
        at = colon + 1 + length
        if length < 0 or at > len(packed):
            raise Unreadable("A length is wrong.")
        yield packed[colon + 1 : at].decode()


def read_message(chat_id: str, entry: Sequence[Any]) -> ChatMessage:
    """
    Return the message of a stream entry, given as its id, the values of its fields, and what was changed of it; of a
    reply, also the seq, sender, body and changes of the message that it replies to.

    An entry that cannot be read, because a newer release wrote it or because it is damaged, becomes a placeholder.
    """
    key, sender, client_id, sent_at, _ordinal, mentions, body, altered, *quoted = entry
    seq, is_unreadable = int(key.partition(b"-")[0]), False
    edited_at, reactions = None, dict[str, list[str]]()
    try:
        edited, reactions = _read_altered(altered) if altered else (None, reactions)
        if edited:
            edited_at, mentions, body = edited
        text, data, event = _read_body(body)
        named = tuple(_parts(mentions)) if mentions else ()
        at = from_ms(sent_at)
        who, known_by = sender.decode(), client_id.decode()
        reply_to = _read_quote(*quoted) if quoted else None
    except (ValueError, OverflowError):
        text, data, event, named, is_unreadable = gettext(UNREADABLE), None, None, (), True
        reply_to = None
        at, who, known_by = from_ms_or_none(sent_at) or EPOCH, text_of(sender), text_of(client_id)
    return ChatMessage(
        chat_id=chat_id,
        seq=seq,
        sender=who,
        text=text,
        data=data,
        mentions=named,
        sent_at=at,
        client_id=known_by,
        event=event,
        is_unreadable=is_unreadable,
        reply_to=reply_to,
        edited_at=edited_at,
        reactions=reactions,
    )


def _read_altered(altered: bytes) -> tuple[tuple[datetime, bytes, bytes] | None, dict[str, list[str]]]:
    """
    Return when a message was edited, its mentions and body since then; None if it was not. Also return the reactions.
    Raises ValueError.
    """
    edited_at, mentions, body, *pairs = _parts(altered)
    reactions: dict[str, list[str]] = {}
    for emoji, person in zip(pairs[::2], pairs[1::2], strict=True):
        people = reactions.setdefault(qualified(emoji), [])
        if person not in people:  # earlier releases took an emoji with and without variation selectors as two
            people.append(person)
    return (from_ms(edited_at), mentions.encode(), body.encode()) if edited_at else None, reactions


def _read_quote(seq: int, sender: bytes, body: bytes, altered: bytes) -> Quote:
    try:
        if altered:
            edited, _reactions = _read_altered(altered)
            body = edited[2] if edited else body
        text = _read_body(body)[0] if sender else ""
    except ValueError:
        text = gettext(UNREADABLE)
    return Quote(seq, text_of(sender), text)


def _read_body(body: bytes) -> tuple[str, Any, Event | None]:
    if body[:1] == b"e":
        return "", None, _read_event(body[1:])
    return (*read_body(body), None)


def _read_event(packed: bytes) -> Event:
    kind, by, user, detail = _parts(packed)
    if kind == EventKind.MUTED and detail:
        detail = from_ms(detail).isoformat()
    return Event(EventKind(kind), by, user, detail)


def read_news(chat_id: str, found: Any) -> ChatNews:
    """
    Return the state of a chat for its member, from the answer of look.lua.

    Raises ValueError if the stored chat or membership cannot be read.
    """
    title, words, reads, last, entries, changed = found
    tally("chat:fetched", len(entries))
    its = _NEWS.read(words)
    if its["role"] not in ROLES:
        raise ValueError(f"The role {its['role']!r} in the chat {chat_id!r} is not known.")
    return ChatNews(
        chat_id=chat_id,
        title=text_of(title or b""),
        role=ROLES[its["role"]],
        is_closed=its["is_closed"] == "1",
        last_seq=int(its["last_seq"]),
        read_seq=int(its["read_seq"]),
        unread=int(its["unread"]),
        mentions=int(its["mentions"]),
        members=int(its["members"]),
        revision=int(its["revision"]),
        messages=[read_message(chat_id, entry) for entry in entries],
        changed=[read_message(chat_id, entry) for entry in changed],
        has_more=its["has_more"] == "1",
        missed=int(its["missed"]),
        oldest=int(its["oldest"]),
        last_message=read_message(chat_id, last) if last else None,
        reads={text_of(who): number_of(seq) for who, seq in zip(reads[::2], reads[1::2], strict=True)},
        muted_until=muted_until(its["muted_until"]),
    )


def read_members(found: Sequence[Any]) -> list[Member]:
    """Return the members that members.lua found: owners first, then moderators, then in the order of joining."""
    now, *rows = found
    placed = []
    for person, words, read_seq, unread, mentions, seen in rows:
        its = _MEMBER.read(words)
        try:
            until = muted_until(its["muted_until"])
            if until and until <= from_ms(now):
                until = None
            role, joined_at, place = ROLES[its["role"]], from_ms(its["joined_at"]), int(its["number"])
            member = Member(
                person.decode(),
                role,
                joined_at,
                read_seq,
                unread,
                mentions,
                until,
                seen_at=from_ms(seen) if seen else None,
                is_here=bool(seen) and 0 <= now - int(seen) < LEASE,
            )
            placed.append((list(ROLES).index(its["role"]), place, member))
        except (ValueError, KeyError, OverflowError):
            nothing = (Role.MEMBER, EPOCH, number_of(read_seq), 0, 0, None, True)
            placed.append((len(ROLES), 0, Member(text_of(person), *nothing)))
    return [member for _rank, _place, member in sorted(placed, key=lambda each: each[:2])]
