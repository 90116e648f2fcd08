"""
Reading rows: all that are asked for in one round trip to each node, and the server's clock with them.

A server that is no cluster answers with one text for all rows, whatever their buckets; a node of a cluster with one
for each bucket. One text is read off the connection and parsed at once, which costs Python less than many would.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from redis import RedisCluster
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster

from components import keys
from components.buckets import bucket
from components.client import AnyRedis
from components.scripts import Call, Script
from components.services.rows.core import by_bucket, member, micro, parts
from components.services.rows.records import Row
from components.services.rows.shapes import Shape
from components.together import together

read_script = Script("rows/read")

_loads = json.JSONDecoder().decode


class Reading:
    """What is asked for: rows of one cache, of one shape, none older than *max_age*; or also *stale* ones."""

    def __init__(self, name: str, shape: Shape, *, max_age: float | None = None, stale: bool = False) -> None:
        self._name, self._shape, self._stale = name, shape, stale
        self._oldest = float("inf") if max_age is None else micro(max_age)

    async def read(self, client: AnyRedis, wanted: Sequence[str]) -> dict[str, Row]:
        """Those that are there, by their keys, in the order in which they were asked for."""
        members = {member(self._name, key): key for key in wanted}
        calls: list[Call] = []
        asked: list[list[str]] = []
        is_cluster = isinstance(client, RedisCluster | AsyncRedisCluster)
        for group in by_bucket(members).values() if is_cluster else [list(members)]:
            for some in parts(group):
                asked.append([members[each] for each in some])
                calls.append(([keys.row(bucket(each), each) for each in some], ()))
        if not calls:
            return {}
        answers = await _ask(client, calls)
        found: dict[str, Row] = {}
        for some, (now, text) in zip(asked, answers, strict=True):
            self._take(found, some, int(now), text)
        return found if len(calls) == 1 else _in_order(found, wanted)

    def _take(self, found: dict[str, Row], wanted: Sequence[str], now: int, text: bytes) -> None:
        shape, print_, oldest = self._shape, self._shape.fingerprint, now - self._oldest
        for key, stored in zip(wanted, _loads(text.decode()), strict=True):
            if stored is None:
                continue
            at, till, fingerprint, values = stored
            if fingerprint == print_ and (self._stale or (till > now and at >= oldest)):
                found[key] = Row(shape, key, now, at, till, values)


async def _ask(client: AnyRedis, calls: Sequence[Call]) -> list[Any]:
    if isinstance(client, AsyncRedis | AsyncRedisCluster):
        return await together(read_script, calls)
    if len(calls) > 1:
        return await read_script.amany(client, calls)
    [(names, args)] = calls
    return [read_script.quick(client, names, args) or await read_script.acall(client, keys=names)]


def _in_order(found: Mapping[str, Row], wanted: Sequence[str]) -> dict[str, Row]:
    return {key: found[key] for key in wanted if key in found}
