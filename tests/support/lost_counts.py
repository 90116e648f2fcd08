"""The scripts of counters, each with what is done while its reply gets lost. (tests/kit/test_lost_replies.py)"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from redis import Redis

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.services.counters import Counter, CounterReader, Marks, cleaning, flush, measure
from components.services.counters.additions import forget
from components.services.counters.keys import CounterKeys, SumSourceKeys
from components.services.counters.sums import SUM, Added
from tests.support.counters import stored

_NAMES = ("hits", "hits:/a")


def _sums(client: Redis) -> list[dict[int, int]]:
    """Return the stored sums, without their slots, which depend on the clock."""
    sums = [stored(client, name) for name in _NAMES]
    client.delete(*client.keys("*:samples:*"))
    return sums


def update(redis: Redis) -> Callable[[], Any]:
    forget()
    Counter("hits").update(2)

    def act() -> Any:
        Counter("hits").update(3)
        Counter("hits:/a").update()
        return _sums(redis)

    return act


def update_awaited(redis: Redis) -> Callable[[], Any]:
    forget()

    def act() -> Any:
        asyncio.run(Counter("hits:/a").aupdate(3))
        return _sums(redis)

    return act


def mend(redis: Redis) -> Callable[[], Any]:
    """Clean a key. The answers may differ, since the second call finds nothing to do."""
    wrong, names = f"{CounterKeys('00').names}-of-old", CounterKeys("00").names
    redis.set(wrong, "something else")
    redis.zadd(names, {"hits": 1, "other": 2**52})

    def act() -> None:
        for key, kept in ((wrong, 0), (names, 3_600_000_000)):
            asked = {"kind": "zset", "latest": "", "longest": 3_600, "kept": kept}
            at_once(cleaning.MEND.run(get_client(), SimpleNamespace(key=key), **asked))

    return act


def sum_up(redis: Redis) -> Callable[[], Any]:
    source = SumSourceKeys("all", "one")

    def act() -> Any:
        for call, name in ((1, "a"), (2, "b"), (1, "c")):  # the last is late
            at_once(SUM.run(get_client(), source, call=call, added=[Added(name, 3), Added("a", 1)]))
        return get_client().hgetall(source.sums)

    return act


def mark(redis: Redis) -> Callable[[], Any]:
    at = datetime.now(UTC)

    def act() -> Any:
        Marks().add("version 1", at)
        return Marks().between(at - timedelta(minutes=1), at + timedelta(minutes=1))

    return act


def measured(redis: Redis) -> Callable[[], Any]:
    """A value that a buffer sends, in the histogram once."""
    forget()

    def act() -> Any:
        measure("pay-us", 1_500)
        flush()
        return CounterReader().histograms(["pay-us"], 60)

    return act


#: Cases whose calls are sent in a pipeline, which loads a script that the server does not know.
PIPELINED = {measured}

CASES = {
    "counters/add": [update, update_awaited, measured],
    "counters/mark": [mark],
    "counters/mend": [mend],
    "counters/sum": [sum_up],
}
