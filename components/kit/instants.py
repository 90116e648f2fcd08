"""Instants: aware datetimes in UTC, and the numbers that Redis has for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_ms(milliseconds: bytes | str | int) -> datetime:
    """Return the instant so many milliseconds after 1970. Raises ValueError or OverflowError."""
    return EPOCH + timedelta(milliseconds=int(milliseconds))


def from_ms_or_none(milliseconds: bytes | str | int | None) -> datetime | None:
    """Return the instant, or None if there is none or what is stored cannot be read."""
    try:
        return from_ms(milliseconds) if milliseconds else None
    except (ValueError, OverflowError):
        return None
