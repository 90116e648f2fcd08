"""
Arguments that several services take, checked alike: names, whole numbers, numbers of seconds, fencing tokens.

What is wrong is said before anything is sent, so the state of Redis is as it was.
"""

from __future__ import annotations

import math

from components.exceptions import InvalidDuration, InvalidFence, InvalidLimit, InvalidName

MAX_NAME = 500  # characters
#: Seconds: far above what anybody waits, far below what Redis and floats can count.
LONGEST = 100 * 366 * 86_400
_SHORTEST = 0.001  # seconds: Redis counts milliseconds
#: The largest number of a column of 64 bits; the fences of our locks are microseconds, and reach 2^53 in 2255.
MAX_FENCE = 2**63 - 1


def check_name(kind: str, name: object) -> str:
    """*name*, if a *kind* can be called so. Raises InvalidName."""
    if not isinstance(name, str) or not is_name(name):
        raise InvalidName(
            f"A {kind} cannot be called {_shown(name)}: a name is text of 1 to {MAX_NAME} characters."
        )
    return name


def is_name(name: object) -> bool:
    """Tell whether something can be called *name*."""
    return isinstance(name, str) and 1 <= len(name) <= MAX_NAME and _is_unicode(name)


def check_seconds(what: str, value: object, *, may_be_zero: bool = False) -> float:
    """*value*, if it is a number of seconds. Raises InvalidDuration."""
    least = 0.0 if may_be_zero else _SHORTEST
    # A NaN is not in any range.
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= LONGEST:
        raise InvalidDuration(
            f"The {what} is {value!r}; it must be a number of seconds, {least:g} to {LONGEST:,}."
        )
    return value


def check_int(
    what: str, value: object, least: int, most: float = math.inf, error: type[Exception] = InvalidLimit
) -> int:
    """*value*, if it is a whole number from *least* to *most*. Raises *error*."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        bounds = f", {least:,} or more" if most == math.inf else f" from {least:,} to {most:,}"
        raise error(f"The {what} is {_shown(value)}; it must be a whole number{bounds}.")
    return value


def check_fence(fence: object) -> int:
    """*fence*, if it can be a fencing token. Raises InvalidFence."""
    if isinstance(fence, bool) or not isinstance(fence, int) or not 1 <= fence <= MAX_FENCE:
        raise InvalidFence(
            f"The fence is {_shown(fence)}; it must be what a lock gave: a whole number from 1 to 2^63 - 1."
        )
    return fence


def _is_unicode(name: str) -> bool:
    """Whether it can be sent: half surrogate pairs cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: object) -> str:
    shown = repr(name)
    length = len(name) if isinstance(name, str) else len(shown)
    return shown if len(shown) <= 60 else f"{shown[:60]}… ({length:,} characters)"
