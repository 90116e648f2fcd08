"""
ChatSettings: the settings of a chat. Each is a field of the chat's HASH with the same name.

Durations are stored in milliseconds, 0 for None; a history of all messages as "all".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from components.exceptions import InvalidValue
from components.kit.validation import check_int, check_seconds

_MOST = 2**31 - 1
_DURATIONS = ("max_age", "drop_read_after", "rate_period", "slow_mode")
_MAY_BE_NONE = ("history", "max_age", "drop_read_after")
#: The settings that may be less than 1.
_LEAST = {"history": 0, "rate_limit": 0, "max_data": 0, "max_reactions": 0}


@dataclass(frozen=True)
class ChatSettings:
    """The settings of a chat. Sizes are in bytes or characters, durations in seconds."""

    #: How many earlier messages a new member sees; None for all.
    history: int | None = None
    #: The limits of the history. The oldest messages are removed first, however far the slowest member has read.
    max_messages: int = 10_000
    max_bytes: int = 16 * 1024 * 1024
    max_age: float | None = None
    #: Messages that all members have read are removed at this age; None if they stay.
    drop_read_after: float | None = None
    max_text: int = 4_000
    max_data: int = 8_192
    max_members: int = 1_000
    #: How many messages a member may send in rate_period; 0 for any number.
    rate_limit: int = 20
    rate_period: float = 10.0
    #: The least time between two messages of a member who is not a moderator.
    slow_mode: float = 0.0
    #: How many reactions a message may have; 0 for none.
    max_reactions: int = 200
    #: Whether anyone who knows the id may join.
    is_open: bool = False


#: The names of all settings.
SETTINGS = tuple(field.name for field in fields(ChatSettings))


def write_settings(settings: ChatSettings) -> dict[str, str]:
    """Return the fields of the HASH for *settings*."""
    return {name: write_setting(name, getattr(settings, name)) for name in SETTINGS}


def write_setting(name: str, value: Any) -> str:
    """Return the stored form of the setting *name*."""
    if name in _DURATIONS:
        return str(math.ceil((value or 0) * 1000))
    return "all" if value is None else str(int(value))


def read_settings(stored: Mapping[str, bytes | None]) -> ChatSettings:
    """Return the settings stored in fields of the HASH. Missing fields have their defaults. Raises ValueError."""
    return ChatSettings(**{name: _read(name, text) for name, text in stored.items() if text is not None})


def _read(name: str, text: bytes) -> Any:
    if name == "history" and text == b"all":
        return None
    value = int(text)
    if name == "is_open":
        return bool(value)
    if name in _DURATIONS:
        return None if name in _MAY_BE_NONE and not value else value / 1000
    return value


def check_settings(settings: ChatSettings) -> ChatSettings:
    """Return *settings* if they are valid. Raises InvalidValue."""
    for name in SETTINGS:
        check_setting(name, getattr(settings, name))
    return settings


def check_setting(name: str, value: Any) -> None:
    """Check the value of the setting *name*. Raises InvalidValue."""
    if value is None and name in _MAY_BE_NONE:
        return
    if name in _DURATIONS:
        check_seconds(name, value, may_be_zero=name == "slow_mode")
    elif name == "is_open":
        if not isinstance(value, bool):
            raise InvalidValue(f"is_open is {value!r}; it must be True or False.")
    else:
        least, most = _LEAST.get(name, 1), 10**13 if name == "max_bytes" else _MOST
        check_int(name, value, least, most)
