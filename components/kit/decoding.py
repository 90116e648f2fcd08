"""
JSON from users, stored numbers and instants, and replacements for stored bytes that cannot be read.

Whether Python accepts deeply nested JSON depends on its version and on the depth of the call stack. So the depth is
limited when JSON is written, by a check that does not recurse. When JSON is read, Unreadable is raised if it is
nested too deeply or is not JSON. A reader of several entries then shows a placeholder, so one bad entry never breaks
a list.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.dateparse import parse_datetime

from components.kit.translation import gettext_noop

#: How many lists and objects may be nested. Text or a number has depth 0, [] has depth 1.
MAX_DEPTH = 32

#: Shown in place of text that cannot be read, in the language of the reader.
UNREADABLE = gettext_noop("This message cannot be read.")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_INSTANT = datetime(9999, 12, 1, tzinfo=UTC)  # the last instant that every time zone can show


def aware(at: datetime) -> datetime:
    """Return *at*; a naive instant is in the current time zone, as in all of Django: the person's, or the site's."""
    return timezone.make_aware(at) if timezone.is_naive(at) else at


def typed_instant(text: str, *, is_end: bool = False) -> datetime | None:
    """
    Return the instant that somebody has typed, in UTC; None if it is none. One that comes twice, when clocks are set
    back, is the first or, with *is_end*, the second.
    """
    try:
        found = parse_datetime(text)
        if found is None:
            return None
        # It must be a valid date in both time zones.
        return timezone.localtime(aware(found.replace(fold=is_end))).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class Unreadable(ValueError):
    """Stored bytes that no release of this app writes, or that this release cannot read."""


def changed_by_json(value: Any, *, tuples: bool = False) -> str:
    """
    Return what of *value*, which is not too deep, JSON would change in silence; "" if there is nothing. A tuple,
    which becomes a list, counts with *tuples* only.
    """
    left, seen = [value], set[int]()
    while left:
        each = left.pop()
        if id(each) in seen or not isinstance(each, dict | list | tuple):
            continue
        seen.add(id(each))
        if isinstance(each, MultiValueDict):
            return (
                f"a {type(each).__name__}, of which one value for each name would be kept; pass its lists()"
            )
        if isinstance(each, tuple) and tuples:
            return f"the tuple {each!r:.80}, which would become a list"
        for key in each if isinstance(each, dict) else ():
            if not isinstance(key, str):
                return f"the key {key!r:.80}, which would become text"
        left.extend(each.values() if isinstance(each, dict) else each)
    return ""


def is_too_deep(value: Any, most: int = MAX_DEPTH) -> bool:
    """
    Return True if lists, tuples and dicts of *value* are nested more than *most* deep.

    The check goes through one level after another, and looks at each object once per level. So an object that
    contains itself is too deep, and repeated references to the same list cost little.
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
    """Return the message that *what* is nested too deeply."""
    return f"{what} are nested too deeply: at most {MAX_DEPTH} levels of lists and objects are allowed."


def read_json(raw: bytes, *, most: int = MAX_DEPTH) -> Any:
    """
    Return the value of the stored JSON *raw*.

    Raises Unreadable if it is not JSON in UTF-8, if it is nested more than *most* deep, or if it could not be passed
    on: JSON has no NaN and no infinity, and half a surrogate pair cannot be encoded.
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
    # ValueError covers bytes that are not UTF-8 and text that is not JSON
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from None
    return value


def text_of(raw: bytes) -> str:
    """Return the stored text *raw*, with bytes that are not UTF-8 escaped, such as \xff."""
    return raw.decode(errors="backslashreplace")


def number_of(raw: bytes | str | int | float | None, default: int = 0) -> int:
    """Return the whole number *raw*, or *default* if it is missing or not a number."""
    try:
        return default if raw is None else int(raw)
    except (ValueError, OverflowError):
        return default


def from_ms(milliseconds: bytes | str | int) -> datetime:
    """Return the instant that is this many milliseconds after 1970. Raises ValueError or OverflowError."""
    return EPOCH + timedelta(milliseconds=int(milliseconds))


def from_ms_or_none(milliseconds: bytes | str | int | None) -> datetime | None:
    """Return the instant, or None if it is missing or cannot be read."""
    try:
        return from_ms(milliseconds) if milliseconds else None
    except (ValueError, OverflowError):
        return None


def instant_of(milliseconds: float) -> datetime:
    """Return the instant of a stored score, or the last possible one if the calendar has no such instant."""
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except (OverflowError, ValueError):
        return _LAST_INSTANT


def _no_number(name: str) -> NoReturn:
    raise Unreadable(f"{name} is not a valid number in JSON.")
