"""
Members: the names of rows in Redis.

A member is the name of a cache and the key of a row, with a colon between. It falls into one of 32 buckets, and a
call of a script is for members of one bucket.
"""

from collections.abc import Hashable, Iterable
from functools import lru_cache

from components.exceptions import InvalidName, InvalidValue
from components.kit.keyspace import escaped
from components.kit.validation import LONGEST, check_name, check_seconds, check_several

#: Seconds that a load may take by default. After that, another loader may load the row, with twice the time.
LEASE = 5.0
MAX_CACHE_NAME = 200  # characters; together with a key as long as any name
MAX_KEY = 290
SHORTEST_DELAY = 0.01  # seconds: with a shorter delay, a cache does not help
AT_ONCE = 500  # members in a call: a millisecond or two of the server


def check_cache_name(name: object) -> str:
    """Return *name* if it can be the name of a row cache. Raises InvalidName."""
    checked = check_name("row cache", name)
    if len(checked) > MAX_CACHE_NAME or ":" in checked:
        raise InvalidName(
            f"A row cache cannot be called {checked[:60]!r}: its name is 1 to {MAX_CACHE_NAME} characters, "
            "without a colon."
        )
    return checked


@lru_cache(maxsize=16_384, typed=True)  # the same keys are read again and again
def check_key(key: Hashable) -> str:
    """Return the key of a row as text. It is given as text or as a whole number. Raises InvalidName."""
    text = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
    checked = check_name("row", text)
    if len(checked) > MAX_KEY:
        raise InvalidName(f"A row cannot be called {checked[:60]!r}…: its key is 1 to {MAX_KEY} characters.")
    return checked


def check_delay(delay: object) -> float:
    """Return *delay* if it is a valid delay; 0, which means never, if it is 0 or less. Raises InvalidValue."""
    is_number = isinstance(delay, int | float) and not isinstance(delay, bool)
    if is_number and delay <= 0:  # type: ignore[operator]
        return 0.0
    checked = check_seconds("delay", delay)
    if checked < SHORTEST_DELAY:
        raise InvalidValue(
            f"The delay is {delay!r}; it must be {SHORTEST_DELAY:g} to {LONGEST:,} seconds, or 0 to unschedule."
        )
    return checked


def micro(seconds: float) -> int:
    """Return *seconds* in microseconds."""
    return round(seconds * 1_000_000)


def member(name: str, key: str) -> str:
    """Return the member for the row *key* of the cache *name*."""
    return f"{name}:{key}"


def name_and_key(member: str) -> tuple[str, str]:
    """Return the name of the cache and the key of the row."""
    name, _colon, key = member.partition(":")
    return name, key


def each_once(keys: Iterable[Hashable]) -> list[str]:
    """Return the keys as text, each once and in order. Raises InvalidName."""
    return list(dict.fromkeys(map(check_key, check_several("keys", keys))))


def members_of(name: str, keys: Iterable[Hashable]) -> list[str]:
    """Return the members for these keys, each once and in order. Raises InvalidName."""
    return [member(name, key) for key in each_once(keys)]


def pattern_of(name: str) -> str:
    """Return the pattern that matches all members of the cache *name*, and no others."""
    return member(escaped(name), "*")
