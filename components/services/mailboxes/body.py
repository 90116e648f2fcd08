"""
The bytes of a message: a letter for the format, and then the text or, if there are data, text and data as JSON.

A message that cannot be stored is refused before anything is sent. Lua never looks into a body.
"""

from __future__ import annotations

import json
from hashlib import sha1
from typing import Any

from components.exceptions import InvalidMessage
from components.kit.stored import MAX_DEPTH, Unreadable, changed_by_json, is_too_deep, read_json, too_deep
from components.kit.texts import gettext, gettext_noop, grouped
from components.kit.values import is_blank

_TEXT, _JSON = "t", "j"
_DIGITS = 16  # length of the digest: enough to distinguish all pushes of two days
MAX_CLIENT_ID = 64  # characters


def encode(text: str, data: Any, *, max_text: int, max_data: int) -> str:
    """Return the body of a message. Raises InvalidMessage."""
    check_text(text, max_text=max_text)
    if data is None:
        if is_blank(text):
            raise InvalidMessage(gettext("The message is empty: it has neither a text nor data."))
        return _TEXT + text
    shown = _as_json(data)
    if len(shown.encode()) > max_data:
        raise InvalidMessage(
            f"The data are {len(shown.encode()):,} bytes of JSON; a message takes {max_data:,} at most."
        )
    return f"{_JSON}[{_as_json(text)},{shown}]"


def decode(body: bytes) -> tuple[str, Any]:
    """Return the text and data of a message. Raises ValueError if it is damaged, or if a newer release wrote it."""
    form, rest = body[:1].decode(), body[1:]
    if form == _TEXT:
        return rest.decode(), None
    if form == _JSON:
        match read_json(rest, most=MAX_DEPTH + 1):
            case [str(text), data]:
                return text, data
    raise Unreadable(f"A message begins with {form!r}: it was stored by a newer release, or not by this app.")


def digest(sender: str, client_id: str) -> str:
    """Return a digest by which a repeated push is recognised."""
    text = f"{len(sender)}:{sender}{client_id}"
    return sha1(text.encode(), usedforsecurity=False).hexdigest()[:_DIGITS]


def check_text(text: object, *, max_text: int) -> None:
    """Check *text*. Raises InvalidMessage if it is not text, or too long."""
    if not isinstance(text, str):
        raise InvalidMessage(f"The text of a message is {type(text).__name__}; it must be str.")
    if len(text) > max_text:
        said = gettext("The text has %(count)s characters; a message takes %(most)s at most.")
        raise InvalidMessage(said % {"count": grouped(len(text)), "most": grouped(max_text)})
    _check_characters(
        text,
        nul=gettext_noop("The text holds a NUL, at position %(position)s."),
        half=gettext_noop("The text holds half of a character, at position %(position)s."),
    )


def check_client_id(client_id: object) -> str:
    """Return *client_id* if it is valid. Raises InvalidMessage."""
    if not isinstance(client_id, str) or not 1 <= len(client_id) <= MAX_CLIENT_ID:
        raise InvalidMessage(f"A client id is text of 1 to {MAX_CLIENT_ID} characters.")
    _check_characters(
        client_id,
        nul="The client id holds a NUL, at position %(position)s.",
        half="The client id holds half of a character, at position %(position)s.",
    )
    return client_id


def _check_characters(text: str, *, nul: str, half: str) -> None:
    """
    Refuse a NUL, which most databases cannot store or show, and half surrogate pairs, which cannot be sent. *nul* and
    *half* are the sentences that say so.
    """
    for wrong, said in (("\0", nul), *((chr(code), half) for code in _halves(text))):
        if wrong in text:
            raise InvalidMessage(gettext(said) % {"position": text.index(wrong)})


def _halves(text: str) -> list[int]:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return [ord(text[error.start])]
    return []


def _as_json(data: Any) -> str:
    if is_too_deep(data):
        raise InvalidMessage(too_deep("The data"))
    if changed := changed_by_json(data):
        raise InvalidMessage(f"The data hold {changed}.")
    try:
        shown = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        shown.encode()
    except UnicodeEncodeError:
        raise InvalidMessage("The data hold half of a character, which cannot be sent.") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"The data are not JSON: {error}") from None
    return shown
