"""
Reading rows: all that are asked for in one round trip to each node, and the server's clock with them.

A server that is no cluster is asked for the time and then for all rows, whatever their buckets: half the time of a
script. A node of a cluster, and a server that many coroutines ask together, runs a script for each bucket or reader.
Many rows are parsed as one text, which costs Python less than many texts would.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from redis import Redis, RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster

from components.kit.buckets import BUCKETS, bucket
from components.kit.client import AnyRedis
from components.kit.errors import REPLY_LOST, redis_errors
from components.kit.scripts import Call, Script
from components.kit.together import together
from components.services.rows import keys
from components.services.rows.core import by_bucket, member, micro, parts
from components.services.rows.records import Row
from components.services.rows.shapes import Shape

read_script = Script("rows/read")

_loads = json.JSONDecoder().decode


class Found(NamedTuple):
    """Rows by their keys, in the order in which they were asked for."""

    good: dict[str, Row]
    #: Those that are too old by now.
    stale: dict[str, Row]
    #: The microsecond of that.
    now: int


class Reading:
    """What is asked for: rows of one cache, of one shape, none older than *max_age*."""

    def __init__(self, name: str, shape: Shape, *, max_age: float | None = None) -> None:
        self._name, self._shape = name, shape
        self._oldest = float("inf") if max_age is None else micro(max_age)

    async def read(self, client: AnyRedis, wanted: Sequence[str]) -> Found:
        """Those of *wanted*, each of them once, that are there."""
        found = Found({}, {}, 0)
        if not wanted:
            return found
        is_cluster = isinstance(client, RedisCluster | AsyncRedisCluster)
        groups = self._by_bucket(wanted) if is_cluster else [wanted]
        asked = [some for group in groups for some in parts(group)]
        name, spelling = self._name, keys.row(BUCKETS[0], "")
        calls: list[Call] = [([_key_of(spelling, name, key) for key in some], ()) for some in asked]
        for some, (now, text) in zip(asked, await _ask(client, calls), strict=True):
            found = found._replace(now=int(now))
            if not self._take(found, some, text):
                await self._take_singly(client, found, some)
        return found if len(calls) == 1 else _in_order(found, wanted)

    def _by_bucket(self, wanted: Sequence[str]) -> list[list[str]]:
        members = {member(self._name, key): key for key in wanted}
        return [[members[each] for each in group] for group in by_bucket(members).values()]

    async def _take_singly(self, client: AnyRedis, found: Found, wanted: Sequence[str]) -> None:
        """Read each for itself: one of them is damaged, and is as one that is not there. So it is loaded anew."""
        spelling = keys.row(BUCKETS[0], "")
        for key in wanted:
            [(now, text)] = await _ask(client, [([_key_of(spelling, self._name, key)], ())])
            self._take(found._replace(now=int(now)), [key], text)

    def _take(self, found: Found, wanted: Sequence[str], text: bytes) -> bool:
        """Add these rows; whether all could be read."""
        try:
            self._add(found, wanted, text)
        except (ValueError, RecursionError, TypeError, LookupError):
            return False
        return True

    def _add(self, found: Found, wanted: Sequence[str], text: bytes) -> None:
        good, too_old, now = found
        shape, print_, oldest = self._shape, self._shape.fingerprint, now - self._oldest
        for key, stored in zip(wanted, _loads(text.decode()), strict=True):
            if stored is not None and stored[2] == print_:
                row = Row(shape, key, now, stored)
                if stored[1] > now and stored[0] >= oldest:
                    good[key] = row
                else:
                    too_old[key] = row


@lru_cache(maxsize=16_384)
def _key_of(spelling: str, name: str, key: str) -> str:
    """
    The key of a row in Redis; remembered, since making it takes as long as all else that is done to read one.

    *spelling* is how some key is written, which changes with the prefix.
    """
    each = member(name, key)
    return keys.row(bucket(each), each)


async def _ask(client: AnyRedis, calls: Sequence[Call]) -> list[Any]:
    """Of each call the microsecond, and the rows as one text."""
    if isinstance(client, AsyncRedis | AsyncRedisCluster):
        return await together(read_script, calls)
    is_cluster = isinstance(client, RedisCluster)
    return await read_script.amany(client, calls) if is_cluster else _ask_server(client, calls)


def _ask_server(client: Redis, calls: Sequence[Call]) -> list[Any]:
    with redis_errors():
        try:
            (seconds, micros), *found = _send(client, calls)
        except REPLY_LOST:
            (seconds, micros), *found = _send(client, calls)
    now = seconds * 1_000_000 + micros
    return [(now, b"[" + b",".join([each or b"null" for each in rows]) + b"]") for rows in found]


def _send(client: Redis, calls: Sequence[Call]) -> list[Any]:
    pipe: Any
    with client.pipeline(transaction=False) as pipe:
        pipe.time()  # first: none of the rows is older than it says
        for names, _args in calls:
            pipe.mget(names)
        return list(pipe.execute())


def _in_order(found: Found, wanted: Sequence[str]) -> Found:
    good, too_old = (_sorted(rows, wanted) for rows in (found.good, found.stale))
    return Found(good, too_old, found.now)


def _sorted(rows: Mapping[str, Row], wanted: Sequence[str]) -> dict[str, Row]:
    return {key: rows[key] for key in wanted if key in rows}
