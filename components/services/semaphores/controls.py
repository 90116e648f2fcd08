"""
SemaphoreControls: what anybody may ask or do who knows a semaphore's name: how it stands, who holds a permit, another
limit, a permit taken away. What looks is apart from what changes, which is one script each.

A limit that was set by hand wins over what code declares, whoever asks, until it is reset. A holder whose permit was
taken away learns it when it refreshes or gives the permit back; with auto_renewal within a third of its lease.
"""

from __future__ import annotations

import secrets

from components.exceptions import InvalidLimit
from components.kit.buckets import bucket
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.kit.values import check_name
from components.services.semaphores import keys
from components.services.semaphores.ids import check_id
from components.services.semaphores.readers import look, server_time
from components.services.semaphores.records import (
    HolderInfo,
    SemaphoreInfo,
    WaiterInfo,
    read_holder,
    read_waiter,
)

_MOST = 2**31 - 1  # of a limit or a weight: sums of them are exact

_holders = Script("semaphores/holders")
_limit = Script("semaphores/limit")
release = Script("semaphores/release")


class Keys:
    """The keys of one semaphore, for each script."""

    def __init__(self, name: str) -> None:
        tag = bucket(name)
        holders, heavy = keys.semaphore_holders(tag, name), keys.semaphore_heavy(tag, name)
        since, queue = keys.semaphore_since(tag, name), keys.semaphore_queue(tag, name)
        beats, stats = keys.semaphore_beats(tag, name), keys.semaphore_stats(tag, name)
        limits, names = keys.semaphore_limits(tag), keys.semaphore_names(tag)
        ended, self.wake = keys.semaphore_ended(tag, ""), keys.semaphore_wake(tag, "")
        waiters = [holders, heavy, since, queue, beats, stats]
        self.acquire = [*waiters, limits, names, ended, self.wake]
        self.release = [*waiters, ended, self.wake]
        self.refresh = [holders, ended]
        self.limit = [limits, names, queue, beats, self.wake]
        self.holders = [holders, since]


class SemaphoreControls:
    """The semaphore *name*. Every method raises RedisUnavailable. Raises InvalidName."""

    def __init__(self, name: str) -> None:
        self.name = check_name("semaphore", name)

    @property
    def _keys(self) -> Keys:
        return Keys(self.name)  # the prefix is a setting, which is read when it is used

    def info(self) -> SemaphoreInfo:
        """How it stands now."""
        [info] = look(get_client(), [self.name])
        return info

    def holders(self, *, offset: int = 0, limit: int = 50) -> list[HolderInfo]:
        """A page of those who hold a permit, the earliest grant first."""
        found = _holders(get_client(), keys=self._keys.holders, args=[offset, limit])
        return [read_holder(*row) for row in found if row[2] > 0]

    def holder(self, permit: str) -> HolderInfo | None:
        """Who holds the permit of this id; None if nobody does. Raises ForeignPermit."""
        client, tag = get_client(), bucket(self.name)
        check_id(self.name, permit)
        now = server_time(client)
        with redis_errors(), client.pipeline(transaction=False) as pipe:
            pipe.zscore(keys.semaphore_holders(tag, self.name), permit)
            pipe.zscore(keys.semaphore_since(tag, self.name), permit)
            ends_at, since = pipe.execute()
        if since is None or ends_at is None or ends_at <= now:
            return None
        return read_holder(permit.encode(), since, ends_at - now)

    def waiters(self, *, limit: int = 50) -> list[WaiterInfo]:
        """The first who wait for a permit, in order."""
        client, tag = get_client(), bucket(self.name)
        now = server_time(client)
        with redis_errors(), client.pipeline(transaction=False) as pipe:
            pipe.zrangebyscore(keys.semaphore_beats(tag, self.name), f"({now}", "+inf")
            pipe.zrange(keys.semaphore_queue(tag, self.name), 0, limit - 1, withscores=True)
            alive, queue = pipe.execute()
        return [read_waiter(waiter, arrived_at, now) for waiter, arrived_at in queue if waiter in alive]

    def evict(self, permit: str) -> bool:
        """Take a permit away from its holder, by its id; whether it was held. Raises ForeignPermit."""
        call = f"evict {secrets.token_hex(8)}"
        args = [check_id(self.name, permit), call]
        return bool(release(get_client(), keys=self._keys.release, args=args) == call.encode())

    def set_limit(self, limit: int) -> None:
        """
        Let *limit* be in force, whatever the code declares. Who holds a permit keeps it: under a smaller limit nobody
        gets one until enough have left. Raises InvalidLimit.
        """
        _limit(get_client(), keys=self._keys.limit, args=[self.name, check_count("limit", limit)])

    def reset_limit(self) -> None:
        """Let the limit be what the code declares."""
        _limit(get_client(), keys=self._keys.limit, args=[self.name, ""])


def check_count(what: str, value: object) -> int:
    """*value*, if it can be a limit or a weight. Raises InvalidLimit."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
        raise InvalidLimit(f"The {what} is {value!r}; it must be a whole number, 1 to {_MOST:,}.")
    return value
