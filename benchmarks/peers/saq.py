"""saq: coroutines, ten at a time, which is its default."""

from __future__ import annotations

import asyncio
from typing import Any

from saq.queue.redis import RedisQueue

from benchmarks.harness import mark, url
from benchmarks.peers import FIRST, LAST, Peer


async def noop(context: dict[str, Any]) -> None: ...


async def note(context: dict[str, Any], *, name: str) -> None:
    mark(name)


def settings() -> dict[str, Any]:
    """Return the settings that the worker's command reads."""
    return {"queue": RedisQueue.from_url(url()), "functions": [noop, note]}


async def enqueue(count: int) -> None:
    queue = RedisQueue.from_url(url())
    await queue.enqueue("note", name=FIRST)
    for _ in range(count - 2):
        await queue.enqueue("noop")
    await queue.enqueue("note", name=LAST)
    await queue.disconnect()


PEER = Peer(
    lambda count: asyncio.run(enqueue(count)),
    ["-m", "saq", f"{__name__}.settings"],
    lambda redis: redis.zcard("saq:default:incomplete") == 0,
)
