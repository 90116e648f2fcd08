"""The scripts of counters, each with what is done when its calls are repeated."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from redis import Redis

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.services.counters import Counter, Marks, cleaning, flush, measure
from components.services.counters.additions import forget
from components.services.counters.keys import CounterKeys, SumSourceKeys
from components.services.counters.sums import SUM, Added
from tests.support.repeating import Act, cases

case = cases("counters")

_NAMES = ("hits", "hits:/a")


@case
def update(redis: Redis) -> Act:
    forget()
    Counter("hits").update(2)

    def act() -> Any:
        Counter("hits").update(3)
        Counter("hits:/a").update()

    return act


@case
def update_awaited(redis: Redis) -> Act:
    forget()
    return lambda: asyncio.run(Counter("hits:/a").aupdate(3))


@case
def mend(redis: Redis) -> Act:
    """Clean a key. The answers may differ, since the second call finds nothing to do."""
    wrong, names = f"{CounterKeys('00').names}-of-old", CounterKeys("00").names
    redis.set(wrong, "something else")
    redis.zadd(names, {"hits": 1, "other": 2**52})

    def act() -> None:
        for key, kept in ((wrong, 0), (names, 3_600_000_000)):
            asked = {"kind": "zset", "latest": "", "longest": 3_600, "kept": kept}
            at_once(cleaning.MEND.run(get_client(), SimpleNamespace(key=key), **asked))

    return act


@case
def sum_up(redis: Redis) -> Act:
    source = SumSourceKeys("all", "one")

    def act() -> Any:
        for call, name in ((1, "a"), (2, "b"), (1, "c")):  # the last is late
            at_once(SUM.run(get_client(), source, call=call, added=[Added(name, 3), Added("a", 1)]))

    return act


@case
def mark(redis: Redis) -> Act:
    at = datetime.now(UTC)
    return lambda: Marks().add("version 1", at)


@case
def measured(redis: Redis) -> Act:
    """A value that a buffer sends, in the histogram once."""
    forget()

    def act() -> Any:
        measure("pay-us", 1_500)
        flush()

    return act
