"""
The cached rows of chapter 2.4 of "Redis in Action", built anew from their description: same commands and round trips.

A sorted set has the rows by when they are due, another has their delays. The daemon looks at the first of the
schedule: if it is due, it asks for its delay, loads that one row, lets it be due again, and writes its JSON, all
values as text. It naps when nothing is due, which is in no figure here.
"""

from __future__ import annotations

import json
import time
from typing import Any

from redis import Redis

from benchmarks.caching.models import Item


def schedule(redis: Redis, pk: int, delay: float) -> None:
    redis.zadd("delay:", {str(pk): delay})
    redis.zadd("schedule:", {str(pk): time.time()})


def load_next(redis: Redis) -> bool:
    """One turn of the daemon's loop; False if nothing is due."""
    found: Any = redis.zrange("schedule:", 0, 0, withscores=True)
    now = time.time()
    if not found or found[0][1] > now:
        return False
    member = found[0][0]
    delay: Any = redis.zscore("delay:", member)
    if delay is None or delay <= 0:
        for key in ("delay:", "schedule:"):
            redis.zrem(key, member)
        redis.delete(_key(int(member)))
        return True
    row = Item.objects.get(pk=int(member))
    redis.zadd("schedule:", {member: now + delay})
    values = {field.attname: str(getattr(row, field.attname)) for field in Item._meta.concrete_fields}
    redis.set(_key(row.pk), json.dumps(values))
    return True


def read(redis: Redis, pk: int) -> dict[str, str] | None:
    found: Any = redis.get(_key(pk))
    return json.loads(found) if found else None


def read_many(redis: Redis, pks: list[int]) -> dict[int, dict[str, str]]:
    found: Any = redis.mget([_key(pk) for pk in pks])
    return {pk: json.loads(text) for pk, text in zip(pks, found, strict=True) if text}


def _key(pk: int) -> str:
    return f"inv:{pk}"
