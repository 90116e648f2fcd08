"""
Check arguments that several services take: names, whole numbers, numbers of seconds, fencing tokens.

Errors are raised before anything is sent, so the state of Redis does not change.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, TypeVar

from components.exceptions import InvalidName, InvalidValue

MAX_NAME = 500  # characters
#: Seconds: far longer than anybody waits, and small enough for Redis and for floats to count.
LONGEST = 100 * 366 * 86_400
Many = TypeVar("Many", bound=Iterable[Any])
#: White space, control characters, joiners, marks of direction, fillers, and the empty pattern of Braille.
_UNSEEN = re.compile(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)
_SHORTEST = 0.001  # seconds: Redis counts milliseconds
#: The largest number of a 64-bit column. The fences of our locks are microseconds, and reach 2^53 in 2255.
MAX_FENCE = 2**63 - 1


def check_name(kind: str, name: object) -> str:
    """Return *name* if it is a valid name for a *kind*. Raises InvalidName."""
    if not isinstance(name, str) or not is_name(name):
        raise InvalidName(
            f"A {kind} cannot be called {_shown(name)}: a name is text of 1 to {MAX_NAME} characters."
        )
    return name


def is_name(name: object) -> bool:
    """Return True if *name* is a valid name."""
    return isinstance(name, str) and 1 <= len(name) <= MAX_NAME and is_unicode(name)


def is_blank(text: str) -> bool:
    """Return whether nothing of *text* is visible."""
    return _UNSEEN.fullmatch(text) is not None


def check_several(what: str, values: Many) -> Many:
    """Return *values* unless they are one value: the characters of a text are not meant. Raises InvalidValue."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidValue(f"The {what} are {_shown(values)}; give a list, even of one.")
    return values


def check_seconds(what: str, value: object, *, may_be_zero: bool = False) -> float:
    """Return *value* if it is a valid number of seconds. Raises InvalidValue."""
    least = 0.0 if may_be_zero else _SHORTEST
    # A NaN is outside of every range.
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= LONGEST:
        raise InvalidValue(
            f"The {what} is {value!r}; it must be a number of seconds, {least:g} to {LONGEST:,}."
        )
    return value


def check_int(what: str, value: object, least: int, most: float = math.inf) -> int:
    """Return *value* if it is a whole number from *least* to *most*. Raises InvalidValue."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        bounds = f", {least:,} or more" if most == math.inf else f" from {least:,} to {most:,}"
        raise InvalidValue(f"The {what} is {_shown(value)}; it must be a whole number{bounds}.")
    return value


def check_fence(fence: object) -> int:
    """Return *fence* if it is a valid fencing token. Raises InvalidValue."""
    if isinstance(fence, bool) or not isinstance(fence, int) or not 1 <= fence <= MAX_FENCE:
        raise InvalidValue(
            f"The fence is {_shown(fence)}; a fence of a lock is a whole number from 1 to 2^63 - 1."
        )
    return fence


def is_key(value: object) -> bool:
    """Return whether a row may have this primary key: None and an expression are computed by the database later."""
    return value is not None and not hasattr(value, "resolve_expression")


def is_unicode(name: str) -> bool:
    """Return True if the text can be encoded: half a surrogate pair cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: object) -> str:
    shown = repr(name)
    length = len(name) if isinstance(name, str) else len(shown)
    return shown if len(shown) <= 60 else f"{shown[:60]}… ({length:,} characters)"
