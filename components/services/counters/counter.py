"""
Counter: how often something happened, over time.

update() is sent at once, and raises errors. count() is for frequent events: it adds in the memory of this process,
which is sent once a second (buffer.py). Either counts in the slice in which it arrives, by the server's clock.
"""

from datetime import datetime

from components.kit.client import AnyRedis
from components.kit.keyspace import bucket
from components.kit.scripts import Script
from components.kit.sync_async import both
from components.kit.validation import check_name
from components.services.counters import buffer
from components.services.counters.additions import ADD, addition, check_count
from components.services.counters.keys import CounterKeys
from components.services.counters.precisions import ask, check_fill
from components.services.counters.series import Fill, Series

READ = Script("counters/read")


class Counter:
    """
    The counter *name*: text of 1 to 500 characters. The part before a colon is its family. Raises InvalidName. Every
    method but count() raises RedisUnavailable.
    """

    def __init__(self, name: str) -> None:
        self.name = check_name("counter", name)

    async def _update(self, client: AnyRedis, count: int = 1) -> None:
        """
        Add *count* now. If the reply is lost and the call is sent again, nothing is added twice. 0 only makes the
        counter exist: its slice is not a gap. Raises InvalidValue. After RedisUnavailable it is unknown whether it
        was counted.
        """
        added = addition(bucket(self.name), [(self.name, check_count(count))])
        keys, args = added.call
        try:
            added.check(await ADD.acall(client, keys=keys, args=args))
        finally:
            added.is_over()

    update, aupdate = both(_update)

    def count(self, count: int = 1) -> None:
        """
        Add *count* in this process, which sends it within about a second. It never waits, and never fails because of
        Redis. A killed process loses the counts of its last second. Raises InvalidValue.
        """
        buffer.count(self.name, count)

    def measure(self, value: int) -> None:
        """Add *value* to the counter and to its histogram, in this process, as count() does. Raises InvalidValue."""
        buffer.measure(self.name, value)

    async def _get(
        self,
        client: AnyRedis,
        precision: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        fill: Fill = 0,
    ) -> Series:
        """
        Return the slices of *precision* seconds, oldest first, from the one that contains *since* to the last one
        before *until*; by default the latest ones, whose number is COMPONENTS["COUNTER_SAMPLES"], up to the current
        one.

        *fill* is the value of slices in which nothing was counted: a number, None, or "skip" to leave such slices
        out. Raises InvalidValue, also for a time in the future or no longer kept.
        """
        asked, fill = ask(precision, since, until), check_fill(fill)
        found = await READ.run(client, CounterKeys(bucket(self.name)), names=[self.name], **asked.args)
        now, first, text = found
        return asked.series(self.name, int(now) / 1_000_000, int(first), text, fill)

    get, aget = both(_get)
