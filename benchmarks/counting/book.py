"""
The counters of chapter 5 of "Redis in Action", built anew from their description: same commands, same round trips.

An update sends one transaction: for each of seven precisions, the name into a sorted set of all that are known, and
an increment of the slice in a hash. A cleaner goes through the sorted set, by rank, and removes what is too old.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from redis import Redis

from benchmarks.counting.base import Guarantees, System
from components.kit.client import get_client

PRECISIONS = (1, 5, 60, 300, 3_600, 18_000, 86_400)
SAMPLES = 100


def update(redis: Redis, name: str, count: int = 1) -> None:
    now = time.time()
    with redis.pipeline(transaction=True) as pipe:
        for precision in PRECISIONS:
            slice_ = int(now / precision) * precision
            member = f"{precision}:{name}"
            pipe.zadd("known:", {member: 0})
            pipe.hincrby(f"count:{member}", str(slice_), count)
        pipe.execute()


def read(redis: Redis, name: str, precision: int) -> list[tuple[int, int]]:
    found: Any = redis.hgetall(f"count:{precision}:{name}")
    return sorted((int(at), int(count)) for at, count in found.items())


def clean_all(redis: Redis) -> None:
    """One pass of the cleaner, in the first minute, when each counter is due."""
    index = 0
    while index < redis.zcard("known:"):  # type: ignore[operator]
        [member] = redis.zrange("known:", index, index)  # type: ignore[misc]
        index += 1
        precision = int(member.partition(b":")[0])
        key = b"count:" + member
        cutoff = time.time() - SAMPLES * precision
        samples = sorted(map(int, redis.hkeys(key)))  # type: ignore[arg-type]
        too_old = bisect_right(samples, cutoff)
        if too_old:
            redis.hdel(key, *map(str, samples[:too_old]))
            if too_old == len(samples):
                redis.zrem("known:", member)
                index -= 1


class Book(System):
    guarantees = Guarantees("7 precisions", "nothing", "counts again", "by a process")

    def counting(self, name: str) -> Callable[[], object]:
        redis = get_client()
        return lambda: update(redis, name)

    def total(self, name: str) -> int:
        return sum(count for _at, count in read(get_client(), name, 86_400))
