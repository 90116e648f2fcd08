"""saq: coroutines, ten at a time, which is its default."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from redis import Redis
from saq.queue.redis import RedisQueue

from benchmarks.bench import mark, url
from benchmarks.peers.base import FIRST, LAST, Guarantees, Peer


async def noop(context: dict[str, Any]) -> None: ...


async def note(context: dict[str, Any], *, name: str) -> None:
    mark(name)


def settings() -> dict[str, Any]:
    """What the worker's command is pointed to."""
    return {"queue": RedisQueue.from_url(url()), "functions": [noop, note]}


class SAQ(Peer):
    how = "10 coroutines"
    share = 0.1
    guarantees = Guarantees(
        acks="yes (sweep each 60 s)", retries="off", results="on (600 s)", priorities="no"
    )

    def enqueue(self, count: int) -> None:
        asyncio.run(self._enqueue(count))

    async def _enqueue(self, count: int) -> None:
        queue = RedisQueue.from_url(url())
        await queue.enqueue("note", name=FIRST)
        for _ in range(count - 2):
            await queue.enqueue("noop")
        await queue.enqueue("note", name=LAST)
        await queue.disconnect()

    def worker(self) -> Sequence[str]:
        return ["-m", "saq", f"{__name__}.settings"]

    def is_done(self, redis: Redis) -> bool:
        return redis.zcard("saq:default:incomplete") == 0
