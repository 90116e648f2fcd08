"""
Script("queues/push"): the file lua/queues/push.lua, callable, and awaitable with acall.

EVALSHA first; a server that does not know the script gets the source with EVAL, in the same order
of round trips. A reply that was lost is asked for once more: that is safe because every script
of this app is idempotent when it is repeated with the same arguments, and tests hold it to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha1
from importlib.resources import files
from typing import Any

from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.exceptions import NoScriptError, RedisClusterException, RedisError

from components.client import REPLY_LOST, redis_errors
from components.twins import answer, at_once

_ASYNCHRONOUS: tuple[type, ...] = (AsyncRedis, AsyncRedisCluster)


class Script:
    """A Lua script of this app. All its keys must lie in one hash slot."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def source(self) -> str:
        return (files("components") / "lua" / f"{self.name}.lua").read_text(encoding="utf-8")

    @cached_property
    def sha(self) -> str:
        return sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, client: Redis, *, keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
        """Run it; raises RedisUnavailable when there was no answer twice."""
        if isinstance(client, _ASYNCHRONOUS):
            raise TypeError(f"{client!r} is asynchronous: await acall() with it.")
        return at_once(self.acall(client, keys=keys, args=args))

    async def acall(
        self, client: Redis | AsyncRedis, *, keys: Sequence[str], args: Sequence[Any] = ()
    ) -> Any:
        """The same, awaited; with an asynchronous client, or with either in what has a twin (twins.py)."""
        with redis_errors():
            return await self.send(client, keys=keys, args=args)

    def quick(self, client: Redis, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """The answer by the shortest way, if that leads to one; None: call it, which sends it again and says why."""
        try:
            return client.evalsha(self.sha, len(keys), *keys, *args)
        except (RedisError, RedisClusterException):
            return None

    async def send(self, client: Redis | AsyncRedis, *, keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
        """acall() that leaves redis-py's own errors as they are, for what stands in for a part of redis-py."""
        try:
            return await self._send(client, keys, args)
        except REPLY_LOST:
            return await self._send(client, keys, args)

    async def _send(self, client: Redis | AsyncRedis, keys: Sequence[str], args: Sequence[Any]) -> Any:
        try:
            return await answer(client.evalsha(self.sha, len(keys), *keys, *args))
        except NoScriptError:
            return await answer(client.eval(self.source, len(keys), *keys, *args))
