"""
SemaphoreControls: what can be asked and done by a semaphore's name alone.

A limit that was set by hand wins over what code declares, whoever asks, until it is reset. A holder whose permit was
taken away learns of it when they refresh the permit or give it back; with auto_renewal within a third of its lease.
"""

from __future__ import annotations

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.ids import new_call
from components.kit.leases import server_clock
from components.kit.scripts import Script
from components.kit.stored import instant_of, text_of
from components.kit.values import check_name
from components.services.semaphores.facts import HolderInfo, SemaphoreInfo, WaiterInfo
from components.services.semaphores.keys import SemaphoreKeys
from components.services.semaphores.permit import check_count, check_id, holder_of, weight_of
from components.services.semaphores.reader import look

HOLDERS = Script("semaphores/holders")
LIMIT = Script("semaphores/limit")
RELEASE = Script("semaphores/release")


class SemaphoreControls:
    """The semaphore *name*. Every method raises RedisUnavailable. Raises InvalidName."""

    def __init__(self, name: str) -> None:
        self.name = check_name("semaphore", name)

    def info(self) -> SemaphoreInfo:
        """Return how it stands now."""
        [info] = look(get_client(), [self.name])
        return info

    def holders(self, *, offset: int = 0, limit: int = 50) -> list[HolderInfo]:
        """Return a page of those who hold a permit, the earliest grant first."""
        found = at_once(HOLDERS.run(get_client(), self._keys, offset=offset, limit=limit))
        return [_holder(*row) for row in found if row[2] > 0]

    def holder(self, permit: str) -> HolderInfo | None:
        """Return who holds the permit of this id; None if nobody does. Raises ForeignPermit."""
        client = get_client()
        check_id(self.name, permit)
        now = server_clock(client)
        with redis_errors(), client.pipeline(transaction=False) as pipe:
            pipe.zscore(self._keys.holders, permit)
            pipe.zscore(self._keys.since, permit)
            ends_at, since = pipe.execute()
        if since is None or ends_at is None or ends_at <= now:
            return None
        return _holder(permit.encode(), since, ends_at - now)

    def waiters(self, *, limit: int = 50) -> list[WaiterInfo]:
        """Return the first who wait for a permit, in order."""
        client = get_client()
        now = server_clock(client)
        with redis_errors(), client.pipeline(transaction=False) as pipe:
            pipe.zrangebyscore(self._keys.beats, f"({now}", "+inf")
            pipe.zrange(self._keys.queue, 0, limit - 1, withscores=True)
            alive, queue = pipe.execute()
        return [_waiter(waiter, arrived_at, now) for waiter, arrived_at in queue if waiter in alive]

    def evict(self, permit: str) -> bool:
        """Take a permit away from its holder, by its id. Return False if nobody held it. Raises ForeignPermit."""
        call = f"evict {new_call()}"
        request = RELEASE.run(get_client(), self._keys, permit=check_id(self.name, permit), call=call)
        return bool(at_once(request) == call.encode())

    def set_limit(self, limit: int) -> None:
        """
        Put *limit* in force, whatever the code declares. Raises InvalidLimit.

        Holders keep their permits: under a smaller limit nobody gets one until enough have left.
        """
        check_count("limit", limit)
        at_once(LIMIT.run(get_client(), self._keys, name=self.name, limit=limit))

    def reset_limit(self) -> None:
        """Put the limit in force that the code declares."""
        at_once(LIMIT.run(get_client(), self._keys, name=self.name, limit=""))

    @property
    def _keys(self) -> SemaphoreKeys:
        return SemaphoreKeys.of(self.name)  # the prefix is a setting, which is read when it is used


def _holder(permit: bytes, since: bytes | float, left: float) -> HolderInfo:
    permit_id = text_of(permit)
    return HolderInfo(
        id=permit_id,
        weight=weight_of(permit_id),
        holder=holder_of(permit_id),
        since=instant_of(float(since) / 1000),
        remaining=left / 1e6,
    )


def _waiter(waiter: bytes, arrived_at: float, now: int) -> WaiterInfo:
    permit_id = text_of(waiter)
    return WaiterInfo(weight_of(permit_id), holder_of(permit_id), max(0.0, (now - arrived_at) / 1e6))
