"""
RowReader: what is on the schedule, by page, for the control room; and how single rows stand.

A page asks all buckets for the sizes of their schedules, those that it shows for their members, and these for
themselves: a few round trips, however many rows there are. Nothing changes, and of JSON only the head is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from redis import Redis

from components import keys
from components.buckets import BUCKETS, bucket
from components.client import get_client, redis_errors
from components.services.rows.core import check_cache_name, check_key, member, name_and_key
from components.services.rows.records import Failure, RowInfo, instant

_HEAD = re.compile(rb'\[(\d+),(\d+),"[^"]*",(null\])?')
_HEAD_SIZE = 99  # bytes that it has at most, and more
_SIX = 6  # commands for each row


class RowReader:
    """What is on the schedule. Every method raises RedisUnavailable."""

    def count(self) -> int:
        """How many rows there are."""
        return sum(_ask(get_client(), BUCKETS, lambda pipe, tag: pipe.zcard(keys.rows_schedule(tag))))

    def failing(self) -> int:
        """How many rows could not be loaded when that was last tried."""
        return sum(_ask(get_client(), BUCKETS, lambda pipe, tag: pipe.hlen(keys.rows_failures(tag))))

    def lateness(self) -> float:
        """Seconds for which the row has been due that has been for longest; 0 if none is."""
        client = get_client()
        found = _ask(
            client, BUCKETS, lambda pipe, tag: pipe.zrange(keys.rows_schedule(tag), 0, 0, withscores=True)
        )
        now = _now(client)
        return max((max(0.0, now - head[0][1]) / 1e6 for head in found if head), default=0.0)

    def page(self, *, offset: int = 0, limit: int = 50) -> list[RowInfo]:
        """Some of them, from the *offset*-th on, by bucket and by when they are due."""
        client, wanted = get_client(), []
        sizes = _ask(client, BUCKETS, lambda pipe, tag: pipe.zcard(keys.rows_schedule(tag)))
        for tag, size in zip(BUCKETS, sizes, strict=True):
            if offset < size and limit > 0:
                wanted.append((tag, offset, offset + min(limit, size - offset) - 1))
                limit -= min(limit, size - offset)
            offset = max(0, offset - size)
        listed = _ask(
            client, wanted, lambda pipe, each: pipe.zrange(keys.rows_schedule(each[0]), each[1], each[2])
        )
        return look(client, [name.decode() for names in listed for name in names])

    def find(self, name: str, key: str | int) -> RowInfo | None:
        """How the row stands; None if it is neither on the schedule nor stored. Raises InvalidName."""
        [info] = look(get_client(), [member(check_cache_name(name), check_key(key))])
        return None if info.delay is None and info.loaded_at is None else info


def look(client: Redis, members: Sequence[str]) -> list[RowInfo]:
    """How these stand now, in two round trips to each node."""
    if not members:
        return []
    answers = iter(_ask(client, members, _add))
    now = _now(client)
    return [
        _read(each, now, *six) for each, six in zip(members, zip(*[answers] * _SIX, strict=True), strict=True)
    ]


def _add(pipe: Any, each: str) -> None:
    tag = bucket(each)
    pipe.zscore(keys.rows_schedule(tag), each)
    pipe.hget(keys.rows_delays(tag), each)
    pipe.hget(keys.rows_failures(tag), each)
    pipe.strlen(keys.row(tag, each))
    pipe.getrange(keys.row(tag, each), 0, _HEAD_SIZE)
    pipe.exists(keys.row_claim(tag, each))


def _read(
    each: str,
    now: int,
    due: float | None,
    delay: bytes | None,
    failure: bytes | None,
    size: int,
    head: bytes,
    is_claimed: int,
) -> RowInfo:
    name, key = name_and_key(each)
    stored = _HEAD.match(head)
    return RowInfo(
        name=name,
        key=key,
        delay=int(delay) / 1e6 if delay else None,
        due_at=None if due is None else instant(due),
        late=0.0 if due is None or is_claimed else max(0.0, now - due) / 1e6,
        loaded_at=instant(int(stored[1])) if stored else None,
        age=max(0, now - int(stored[1])) / 1e6 if stored else None,
        size=size,
        is_deleted=bool(stored and stored[3]),
        failure=_failure(failure) if failure else None,
    )


def _failure(words: bytes) -> Failure:
    count, at, error = words.decode().split(" ", 2)
    return Failure(int(count), instant(int(at)), error)


def _now(client: Redis) -> int:
    with redis_errors():
        seconds, microseconds = client.time()
    return int(seconds) * 1_000_000 + int(microseconds)


def _ask(client: Redis, things: Sequence[Any], add: Callable[[Any, Any], object]) -> list[Any]:
    """The answers to the commands that *add* puts into a pipeline for each of *things*."""
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        for thing in things:
            add(pipe, thing)
        return list(pipe.execute()) if things else []
