"""
SemaphoreReader: all semaphores, by page, for the control room.

The names lie in an index for each bucket. A page asks all buckets for their sizes, those that it shows for their
names, and these for themselves: four round trips, whatever the number of semaphores. Nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redis import Redis

from components.kit.buckets import BUCKETS, bucket
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.stored import text_of
from components.services.semaphores import keys
from components.services.semaphores.records import FIGURES, SemaphoreInfo, read_info


class SemaphoreReader:
    """What was used within a month, or has a limit that was set by hand. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """How many there are."""
        return sum(_sizes(get_client()))

    def page(self, *, offset: int = 0, limit: int = 50) -> list[SemaphoreInfo]:
        """Some of them, from the *offset*-th on, by name. Use moves them to other pages, once a day at most."""
        client = get_client()
        wanted = []
        for tag, size in zip(BUCKETS, _sizes(client), strict=True):
            if offset < size and limit > 0:
                wanted.append((tag, offset, offset + min(limit, size - offset) - 1))
                limit -= min(limit, size - offset)
            offset = max(0, offset - size)
        listed = _ask(client, wanted, lambda pipe, each: _add_names(pipe, *each))
        return look(client, sorted(text_of(name) for names in listed for name in names))

    def find(self, name: str) -> SemaphoreInfo | None:
        """The one of this name; None if it was never used, or not for a month."""
        [info] = look(get_client(), [name])
        return info if info.limit is not None else None


def look(client: Redis, names: Sequence[str]) -> list[SemaphoreInfo]:
    """How these stand now, in two round trips."""
    if not names:
        return []
    now = server_time(client)
    answers = iter(_ask(client, names, lambda pipe, name: _add_semaphore(pipe, name, now)))
    return [read_info(name, *six) for name, six in zip(names, zip(*[answers] * 6, strict=True), strict=True)]


def server_time(client: Redis) -> int:
    """Microseconds, by the server."""
    with redis_errors():
        seconds, microseconds = client.time()
    return int(seconds) * 1_000_000 + int(microseconds)


def _add_semaphore(pipe: Any, name: str, now: int) -> None:
    tag = bucket(name)
    pipe.zcount(keys.semaphore_holders(tag, name), f"({now}", "+inf")
    pipe.zrangebyscore(keys.semaphore_holders(tag, name), "-inf", now)  # what nobody has cleared away yet
    pipe.zrange(keys.semaphore_heavy(tag, name), 0, -1, withscores=True)
    pipe.zcount(keys.semaphore_beats(tag, name), f"({now}", "+inf")
    pipe.hget(keys.semaphore_limits(tag), name)
    pipe.hmget(keys.semaphore_stats(tag, name), FIGURES)


def _add_names(pipe: Any, tag: str, first: int, last: int) -> None:
    pipe.zrange(keys.semaphore_names(tag), first, last, desc=True)


def _sizes(client: Redis) -> list[int]:
    return _ask(client, BUCKETS, lambda pipe, tag: pipe.zcard(keys.semaphore_names(tag)))


def _ask(client: Redis, things: Sequence[Any], add: Callable[[Any, Any], object]) -> list[Any]:
    """The answers to the commands that *add* puts into a pipeline for each of *things*."""
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        for thing in things:
            add(pipe, thing)
        return list(pipe.execute())
