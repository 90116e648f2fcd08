"""
Parking: where claimed tasks wait whose concurrency limit is reached.

They stand among the delayed tasks, due in some seconds, and in an index of their limit: by priority, then by when
they became runnable. When a run of that limit has ended, the first of the index is due at once. Nothing depends on
that: if its worker dies before it says so, each comes back by itself, the later the more there are, and is parked
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.services.queues import keys
from components.services.queues.consumers import Claimed, Consumer

_AGAIN = 5.0  # seconds until a parked task comes back by itself
_EACH = 0.02  # seconds more for each that is parked already: so many do not keep workers busy with looking
SPAN = 2**43  # milliseconds of one rank, as in push.lua
_FORGOTTEN = 86_400  # seconds after those that the index is kept

_park = Script("queues/park")
_unpark = Script("queues/unpark")


class Parking:
    """For the worker or poller *consumer*. Every method raises RedisUnavailable."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._alias = consumer.alias

    def park(self, name: str, tasks: Sequence[Claimed]) -> int:
        """Give back tasks of the concurrency limit *name*, which is reached; how many were still the caller's."""
        client, parked = get_client(), keys.queue_parked(self._alias, name)
        with redis_errors():
            again = _AGAIN + _EACH * int(client.zcard(parked))
        released = self._consumer.release(tasks, delay=again)
        args: list[Any] = [(round(again) + _FORGOTTEN) * 1000]
        for task in tasks:
            args += (_place(task), f"{task.id} {task.queue}")
        _park(client, keys=[parked], args=args)
        return released

    def unpark(self, name: str, by: str, *, delay: float = 0) -> bool:
        """
        Let the first that was parked under *name* be due now, or after *delay* seconds; False if there is none.
        *by* names this call.
        """
        alias = self._alias
        script_keys = [keys.queue_parked(alias, name), keys.queue_unparked(alias, by)]
        script_keys += [keys.queue_delayed(alias, ""), keys.queue_wake(alias, "")]
        return bool(_unpark(get_client(), keys=script_keys, args=[round(delay * 1_000_000)]))


def _place(task: Claimed) -> int:
    """The score that it had among the ready at first."""
    _format, enqueued, due, priority, due_first, *_others = task.record.split(b" ", 5)
    rank = (100 - int(priority)) * 2 + 1 - int(due_first)
    return rank * SPAN + max(int(enqueued), int(due)) // 1000
