"""The scripts of counters, each with what is done while its reply gets lost. (tests/test_lost_replies.py)"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from redis import Redis

from components.client import get_client
from components.services.counters import Counter
from components.services.counters.sources import forget
from tests.support.counters import stored

_NAMES = ("hits", "hits:/a")


def _sums() -> list[dict[int, int]]:
    """What is stored, without the slots, which lie where the clock is."""
    client = get_client()
    sums = [stored(client, name) for name in _NAMES]
    client.delete(*client.keys("*:samples:*"))
    return sums


def update(redis: Redis) -> Callable[[], Any]:
    forget()
    Counter("hits").update(2)

    def act() -> Any:
        Counter("hits").update(3)
        Counter("hits:/a").update()
        return _sums()

    return act


def update_awaited(redis: Redis) -> Callable[[], Any]:
    forget()

    def act() -> Any:
        asyncio.run(Counter("hits:/a").aupdate(3))
        return _sums()

    return act


CASES = {"counters/add": [update, update_awaited]}
