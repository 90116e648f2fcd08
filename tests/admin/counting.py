"""Counters that have counted for a while."""

from __future__ import annotations

from redis import Redis

from components.services.counters import Counter
from tests.support.counters import count_at, seconds


def counted(redis: Redis, name: str, *counts: int, now: int = 0) -> None:
    """It counted *counts* in the minutes before this one, the latest first, and *now* in this one."""
    Counter(name).update(now)
    minute = seconds(redis) // 60 * 60
    for ago, count in enumerate(counts, 1):
        count_at(redis, name, minute - ago * 60, count)
