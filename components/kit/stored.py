"""
What users hand in as JSON, stored numbers and instants, and what becomes of stored bytes that cannot be read.

JSON that is nested very deeply is accepted by one Python and breaks another: where the limit lies depends on the
version, and on how deep the caller is in the stack. So the depth is bounded where JSON is written, by a check that
does not recurse, and what is found to be deeper, or not JSON at all, is told apart where it is read. A reader of
several entries then shows a placeholder, so that one entry never fails a list.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

#: How many lists and objects may lie inside of each other. A text or a number is 0 deep, [] is 1 deep.
MAX_DEPTH = 32
#: What is shown in place of a text that cannot be read.
UNREADABLE = "This message cannot be read."
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_INSTANT = datetime(9999, 12, 1, tzinfo=UTC)  # that every time zone can show


class Unreadable(ValueError):
    """Stored bytes are not what a release of this app writes, or what this one can read."""


def is_too_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """
    Tell whether more than *most* lists, tuples and dicts of *value* lie inside of each other.

    It looks at one level after another, and at each object once a level. So what contains itself is too deep, and
    what has the same list many times does not take long.
    """
    level = [value] if isinstance(value, dict | list | tuple) else []
    for _depth in range(most):
        if not level:
            return False
        below: dict[int, Any] = {}
        for each in level:
            for item in each.values() if isinstance(each, dict) else each:
                if isinstance(item, dict | list | tuple):
                    below[id(item)] = item
        level = list(below.values())
    return bool(level)


def too_deep(what: str) -> str:
    """Say that *what* is nested too deeply."""
    return (
        f"{what} are nested too deeply: at most {MAX_DEPTH} lists and objects may lie inside of each other."
    )


def read_json(raw: bytes, *, most: int = MAX_DEPTH) -> Any:
    """
    Return the value that the stored JSON *raw* is.

    Raises Unreadable if it is not JSON in UTF-8, if it is nested more than *most* deep, or if it could not be passed
    on: JSON has no NaN and no infinity, and half of a surrogate pair cannot be encoded.
    """
    try:
        value = json.loads(raw.decode(), parse_constant=_no_number)
        if not isinstance(value, str | int | None):
            if is_too_deep(value, most):
                raise Unreadable("It is nested too deeply.")
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        elif isinstance(value, str):
            value.encode()
    except Unreadable:
        raise
    except (ValueError, RecursionError) as error:  # not UTF-8 and not JSON are ValueErrors as well
        raise Unreadable(str(error)) from None
    return value


def text_of(raw: bytes) -> str:
    """Return the stored text *raw*, with bytes that are not UTF-8 written out, such as \\xff."""
    return raw.decode(errors="backslashreplace")


def number_of(raw: bytes | str | int | float | None, default: int = 0) -> int:
    """Return the whole number *raw*, or *default* if it is not there or not a number."""
    try:
        return default if raw is None else int(raw)
    except (ValueError, OverflowError):
        return default


def from_ms(milliseconds: bytes | str | int) -> datetime:
    """Return the instant so many milliseconds after 1970. Raises ValueError or OverflowError."""
    return EPOCH + timedelta(milliseconds=int(milliseconds))


def from_ms_or_none(milliseconds: bytes | str | int | None) -> datetime | None:
    """Return the instant, or None if there is none or what is stored cannot be read."""
    try:
        return from_ms(milliseconds) if milliseconds else None
    except (ValueError, OverflowError):
        return None


def instant_of(milliseconds: float) -> datetime:
    """Return the instant of a stored score, or the last one there is if the calendar has no such instant."""
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except (OverflowError, ValueError):
        return _LAST_INSTANT


def _no_number(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not a number of JSON.")
