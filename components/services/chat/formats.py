"""
What is stored of a chat, to bytes and back.

An entry of the stream has the fields s (sender, "" of an event), c (client id or call), t (millisecond), n (how many
messages there were up to here), m (mentions) and b (body). A body begins with a letter: "t" and the text; "j" and
JSON of text and data; "e" and an event. Its parts each have their length before them, as mentions have: Lua writes
some of these.
Settings are words with blanks between, durations in milliseconds; "-" and 0 stand for None.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from components.exceptions import InvalidLimit, InvalidMessage
from components.kit.stored import MAX_DEPTH, UNREADABLE, Unreadable, is_too_deep, read_json, text_of, too_deep
from components.kit.values import check_seconds
from components.services.chat.records import ChatMessage, ChatSettings, Event, EventKind, Role

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = 2**31 - 1
_DURATIONS = ("max_age", "drop_read_after", "rate_period", "slow_mode")
MAX_CLIENT_ID = 64  # characters

ROLES = {"o": Role.OWNER, "m": Role.MODERATOR, "u": Role.MEMBER}
LETTERS = {role: letter for letter, role in ROLES.items()}


def instant(milliseconds: bytes | float) -> datetime:
    return _EPOCH + timedelta(milliseconds=int(milliseconds))


def muted_until(word: str) -> datetime | None:
    """0: he may speak; -1: until that is taken back."""
    if word == "0":
        return None
    return datetime.max.replace(tzinfo=UTC) if word == "-1" else instant(int(word))


def write_body(text: str, data: Any) -> tuple[bytes, int]:
    """The body of a message, and how many bytes its data are. Raises InvalidMessage."""
    if not isinstance(text, str):
        raise InvalidMessage(f"The text is {type(text).__name__}; it must be str.")
    try:
        raw = text.encode()
        if data is None:
            if not text.strip():
                raise InvalidMessage("The message is empty: it needs a text, or data.")
            if "\0" in text:
                raise InvalidMessage("The text holds a NUL character, which is no text.")
            return b"t" + raw, 0
        if is_too_deep(data):
            raise InvalidMessage(too_deep("The data of the message"))
        size = len(_json(data))
        return b"j" + _json([text, data]), size
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"The message holds half a surrogate pair, which is no text: {error}.") from None
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidMessage):
            raise
        raise InvalidMessage(f"The data of the message are not JSON: {error}.") from None


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def check_client_id(client_id: object) -> str:
    """*client_id*, if a message can have it. Raises InvalidMessage."""
    if (
        isinstance(client_id, str)
        and 0 < len(client_id) <= MAX_CLIENT_ID
        and client_id.isprintable()  # no half surrogate pair is
    ):
        return client_id
    raise InvalidMessage(
        f"The client id is {repr(client_id)[:80]}; it must be 1 to {MAX_CLIENT_ID} printable characters."
    )


def check_title(title: object) -> str:
    """*title*, if a chat can have it. Raises InvalidMessage."""
    if isinstance(title, str) and len(title) <= 200 and (title.isprintable() or not title):
        return title
    raise InvalidMessage(f"The title is {repr(title)[:80]}; it must be up to 200 printable characters.")


def write_event(kind: EventKind, by: str, user: str = "", detail: str | None = "") -> bytes:
    """The body of an event; without a *detail* that a script will append if it is None."""
    parts = [kind, by, user] if detail is None else [kind, by, user, detail]
    return b"e" + b"".join(b"%d:%s" % (len(part), part) for part in map(str.encode, parts))


def _parts(packed: bytes) -> Iterator[str]:
    """What write_event() has put together, and the mentions of an entry."""
    at = 0
    while at < len(packed):
        colon = packed.index(b":", at)
        length = int(packed[at:colon])
        at = colon + 1 + length
        if length < 0 or at > len(packed):
            raise Unreadable("A length is wrong.")
        yield packed[colon + 1 : at].decode()


def read_message(chat_id: str, entry: Sequence[bytes]) -> ChatMessage:
    """
    Return an entry of the stream, given as its id and the values of its fields.

    What cannot be read, since a newer release has written it or since it is damaged, becomes a placeholder.
    """
    key, sender, client_id, sent_at, _ordinal, mentions, body = entry
    seq, is_unreadable = int(key.partition(b"-")[0]), False
    try:
        text, data, event = _read_body(body)
        named = tuple(_parts(mentions)) if mentions else ()
        at = instant(sent_at)
        who, known_by = sender.decode(), client_id.decode()
    except (ValueError, OverflowError):
        text, data, event, named, is_unreadable = UNREADABLE, None, None, (), True
        at, who, known_by = _instant_or_epoch(sent_at), text_of(sender), text_of(client_id)
    return ChatMessage(chat_id, seq, who, text, data, named, at, known_by, event, is_unreadable)


def _read_body(body: bytes) -> tuple[str, Any, Event | None]:
    """Return text, data and event. Raises ValueError."""
    kind, rest = body[:1], body[1:]
    if kind == b"t":
        return rest.decode(), None, None
    if kind == b"e":
        return "", None, _read_event(rest)
    if kind == b"j":
        match read_json(rest, most=MAX_DEPTH + 1):
            case [str(text), data]:
                return text, data, None
    raise Unreadable("It was written by a newer release, or by none.")


def _read_event(packed: bytes) -> Event:
    kind, by, user, detail = _parts(packed)
    if kind == EventKind.MUTED and detail:
        detail = instant(int(detail)).isoformat()
    return Event(EventKind(kind), by, user, detail)


def _instant_or_epoch(milliseconds: bytes) -> datetime:
    try:
        return instant(milliseconds)
    except (ValueError, OverflowError):
        return _EPOCH


def write_settings(settings: ChatSettings) -> str:
    words = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name == "history":
            words.append("-" if value is None else str(value))
        elif field.name in _DURATIONS:
            words.append(str(math.ceil((value or 0) * 1000)))
        else:
            words.append(str(int(value)))
    return " ".join(words)


def read_settings(words: str) -> ChatSettings:
    found: dict[str, Any] = {}
    for field, word in zip(fields(ChatSettings), words.split(), strict=True):
        if field.name == "history":
            found[field.name] = None if word == "-" else int(word)
        elif field.name == "is_open":
            found[field.name] = word == "1"
        elif field.name in _DURATIONS:
            found[field.name] = int(word) / 1000
        else:
            found[field.name] = int(word)
    settings = ChatSettings(**found)
    return replace(
        settings, max_age=settings.max_age or None, drop_read_after=settings.drop_read_after or None
    )


def check_settings(settings: ChatSettings) -> ChatSettings:
    """*settings*, if a chat can have them. Raises InvalidLimit, InvalidDuration."""
    least = {"history": 0, "rate_limit": 0, "max_data": 0}
    for field in fields(settings):
        name, value = field.name, getattr(settings, field.name)
        if value is None and name in ("history", "max_age", "drop_read_after"):
            continue
        if name in _DURATIONS:
            check_seconds(name, value, may_be_zero=name == "slow_mode")
        elif name == "is_open":
            if not isinstance(value, bool):
                raise InvalidLimit(f"is_open is {value!r}; it must be True or False.")
        elif (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not least.get(name, 1) <= value <= (10**13 if name == "max_bytes" else _MOST)
        ):
            raise InvalidLimit(
                f"{name} is {value!r}; it must be a whole number from {least.get(name, 1)} on."
            )
    return settings
