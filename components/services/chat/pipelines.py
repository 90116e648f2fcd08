"""Pipelines: commands that ask about many chats or buckets in one round trip, and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from components.kit.client import AnyRedis
from components.kit.scripts import reading


async def ask(client: AnyRedis, things: Sequence[Any], add: Callable[[Any, Any], object]) -> list[Any]:
    """Return the answers to the commands that *add* puts into a pipeline for each of *things*."""
    if not things:
        return []

    def send() -> Any:
        pipe = client.pipeline(transaction=False)
        for thing in things:
            add(pipe, thing)
        return pipe.execute()

    return list(await reading(send))
