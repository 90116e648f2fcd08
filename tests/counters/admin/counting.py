"""Counters that have counted for a while."""

from __future__ import annotations

from redis import Redis

from components.services.counters import Counter
from tests.support.counters import count_at, seconds


def this_minute(redis: Redis) -> int:
    """The second at which it began."""
    return seconds(redis) // 60 * 60


def counted(redis: Redis, name: str, *counts: int, now: int = 0, minute: int | None = None) -> int:
    """
    It counted *now* in this minute, and *counts* in those before it, the latest first. Returns the second at which
    this minute began: it may be over when a page is made. Counters that are compared are given the same one.
    """
    Counter(name).update(0)  # so that it is listed
    minute = this_minute(redis) if minute is None else minute
    for ago, count in enumerate([now, *counts]):
        count_at(redis, name, minute - ago * 60, count)
    return minute
