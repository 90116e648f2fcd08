"""
Ticks: which tick of each periodic task of a backend alias was the last.

A tick itself is a push that carries it (push.lua): it is stored only if it is later than the last of its name,
so of any number of workers that push the same tick one does. What is kept is one instant per name; a worker that
dies leaves nothing behind, and the next one sees what was missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from redis import Redis

from components import keys
from components.client import get_client, redis_errors
from components.scripts import Script
from components.services.queues.records import from_us, to_us

_declare = Script("queues/declare")


class Ticks:
    """The last ticks of the periodic tasks of TASKS[*alias*]. Every method raises RedisUnavailable."""

    def __init__(self, alias: str = "default") -> None:
        self.alias = alias

    @property
    def _client(self) -> Redis:
        return get_client()

    def declare(self, names: Sequence[str]) -> tuple[datetime, dict[str, datetime]]:
        """
        Make *names* known; the server's time, and per name its last tick or the instant at which it became known.
        """
        now, *last = _declare(self._client, keys=[keys.queue_periodic(self.alias)], args=names)
        return from_us(now), {name: from_us(at) for name, at in zip(names, last, strict=True)}

    def last(self, names: Sequence[str]) -> dict[str, datetime]:
        """As declare() tells it, but it only looks: names that no worker has declared are left out."""
        if not names:
            return {}
        with redis_errors():
            scores = self._client.zmscore(keys.queue_periodic(self.alias), list(names))
        found = zip(names, scores, strict=True)
        return {name: from_us(int(at)) for name, at in found if at is not None}

    def skip(self, name: str, tick: datetime) -> bool:
        """Let all ticks of *name* up to *tick* never run. False if that one, or a later one, was taken already."""
        with redis_errors():
            changed = self._client.zadd(
                keys.queue_periodic(self.alias), {name: to_us(tick)}, gt=True, ch=True
            )
        return bool(changed)
