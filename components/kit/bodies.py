"""
The stored body of a message between people: "t" and its text, or "j" and JSON of its text and data.

A message that cannot be stored is refused before anything is sent. Lua never looks into a body.
"""

import json
from typing import Any

from components.exceptions import InvalidMessage
from components.kit.decoding import MAX_DEPTH, Unreadable, changed_by_json, is_too_deep, read_json, too_deep
from components.kit.translation import gettext
from components.kit.validation import is_blank


def write_body(text: str, data: Any) -> tuple[bytes, int]:
    """Return the body of a message, and the size of its data in bytes. Raises InvalidMessage."""
    if not isinstance(text, str):
        raise InvalidMessage(f"The text is {type(text).__name__}; it must be str.")
    try:
        raw = text.encode()
        if "\0" in text:
            raise InvalidMessage(
                gettext("The text holds a NUL character, which cannot be stored. Remove it.")
            )
        if data is None:
            if is_blank(text):
                raise InvalidMessage(gettext("The message is empty: it needs a text, or data."))
            return b"t" + raw, 0
        if is_too_deep(data):
            raise InvalidMessage(too_deep("The data of the message"))
        if changed := changed_by_json(data):
            raise InvalidMessage(f"The data of the message hold {changed}.")
        size = len(_json(data))
        return b"j" + _json([text, data]), size
    except UnicodeEncodeError as error:
        raise InvalidMessage(
            f"The message holds half a surrogate pair, which cannot be stored: {error}."
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidMessage):
            raise
        raise InvalidMessage(f"The data of the message are not JSON: {error}.") from None


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def read_body(body: bytes) -> tuple[str, Any]:
    """Return the text and the data of a message. Raises ValueError."""
    kind, rest = body[:1], body[1:]
    if kind == b"t":
        return rest.decode(), None
    if kind == b"j":
        match read_json(rest, most=MAX_DEPTH + 1):
            case [str(text), data]:
                return text, data
    raise Unreadable("It is damaged, or was written by a newer release.")
