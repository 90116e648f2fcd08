"""
Counter: how often something happened, over time.

update() is sent at once and raises what goes wrong; count() is for what happens often: it adds in the memory of this
process, which is sent once a second (buffers.py). Either counts in the slice in which it arrives, by the server's
clock.
"""

from __future__ import annotations

from datetime import datetime

from components.kit.at_once import at_once
from components.kit.buckets import bucket
from components.kit.client import AnyRedis, get_async_client, get_client
from components.kit.scripts import Script
from components.kit.together import together
from components.kit.values import check_name
from components.services.counters import buffers, keys
from components.services.counters.core import (
    Addition,
    add_script,
    addition,
    ask,
    check_count,
    check_fill,
)
from components.services.counters.records import Fill, Series

_read = Script("counters/read")


class Counter:
    """
    The counter *name*: text of 1 to 500 characters; what stands before a colon in it is its family.

    Every method but count() raises RedisUnavailable.
    """

    def __init__(self, name: str) -> None:
        self.name = check_name("counter", name)

    def update(self, count: int = 1) -> None:
        """
        Add *count* now; a reply that was lost and is asked for again adds nothing more. Raises InvalidCount.

        0 only says that the counter is there: its slice is no gap. RedisUnavailable leaves open whether it counted.
        """
        call = self._addition(count)
        try:
            client = get_client()
            done = add_script.quick(client, call.keys, call.args)
            call.check(add_script(client, keys=call.keys, args=call.args) if done is None else done)
        finally:
            call.is_over()

    async def aupdate(self, count: int = 1) -> None:
        """update(), awaited. Those of one event loop travel together."""
        call = self._addition(count)
        try:
            [done] = await together(add_script, [(call.keys, call.args)])
            call.check(done)
        finally:
            call.is_over()

    def count(self, count: int = 1) -> None:
        """
        Add *count* in this process, from where it is sent within about a second. It never waits and never fails for
        Redis; a process that is killed takes what it counted in its last second with it. Raises InvalidCount.
        """
        buffers.count(self.name, count)

    def get(
        self,
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        fill: Fill = 0,
    ) -> Series:
        """
        The slices of *precision* seconds from the one that holds *since* to the one before *until*, oldest first.

        By default these are the last ones, as many as COMPONENTS["COUNTER_SAMPLES"] says, to the one that is not yet
        over. *fill* stands where nothing was counted: a number, None, or "skip" to leave such slices out.
        Raises InvalidPrecision; InvalidRange, also for what lies ahead or is no longer kept.
        """
        return at_once(self._get(get_client(), precision, since, until, fill))

    async def aget(
        self,
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        fill: Fill = 0,
    ) -> Series:
        """get(), awaited."""
        return await self._get(get_async_client(), precision, since, until, fill)

    async def _get(
        self, client: AnyRedis, precision: int, since: datetime | None, until: datetime | None, fill: Fill
    ) -> Series:
        asked, fill = ask(precision, since, until), check_fill(fill)
        samples = [keys.counter_samples(bucket(self.name), "")]
        now, first, text = await _read.acall(client, keys=samples, args=[*asked.args, self.name])
        return asked.series(self.name, int(now) / 1_000_000, int(first), text, fill)

    def _addition(self, count: int) -> Addition:
        return addition(bucket(self.name), [(self.name, check_count(count))])
