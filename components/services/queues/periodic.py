"""
Ticks: which tick of each periodic task of a backend alias was the last.

A tick itself is a push that carries it (push.lua): it is stored only if it is later than the last of its name,
so of any number of workers that push the same tick one does. What is kept is one instant per name; a worker that
dies leaves nothing behind, and the next one sees what was missed. A server's clock that jumped ahead for a moment
leaves ticks of a far future as the last ones: who pushes or declares says which instant no last tick can be later
than, and what is later counts as not taken.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from redis import Redis

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.services.queues import keys
from components.services.queues.records import LAST_INSTANT, MICROSECOND, from_us, to_us

logger = logging.getLogger(__name__)

KEPT = timedelta(days=2 * 366)  # that a name which nobody declares any more is remembered after its last tick

_declare = Script("queues/declare")
_look = Script("queues/ticks")


class Ticks:
    """The last ticks of the periodic tasks of TASKS[*alias*]. Every method raises RedisUnavailable."""

    def __init__(self, alias: str = "default") -> None:
        self.alias = alias

    @property
    def _client(self) -> Redis:
        return get_client()

    def declare(
        self, names: Sequence[str], limits: Mapping[str, datetime] | None = None
    ) -> tuple[datetime, dict[str, datetime]]:
        """
        Make *names* known; return the server's time, and per name its last tick or the instant at which it became
        known. A last tick that is later than the limit of its name, if it has one in *limits*, becomes now.
        """
        args: list[str | int] = [KEPT // MICROSECOND]
        for name in names:
            args += (name, to_us(limits[name]) if limits and name in limits else 0)
        now, *last = _declare(self._client, keys=[keys.queue_periodic(self.alias)], args=args)
        return from_us(now), {name: read_instant(at) for name, at in zip(names, last, strict=True)}

    def look(self, names: Sequence[str]) -> tuple[datetime, dict[str, datetime]]:
        """Return what declare() does, and change nothing: names that no worker has declared are left out."""
        now, *last = _look(self._client, keys=[keys.queue_periodic(self.alias)], args=list(names))
        found = zip(names, last, strict=True)
        return from_us(now), {name: read_instant(at) for name, at in found if at is not None}

    def last(self, names: Sequence[str]) -> dict[str, datetime]:
        """Return the instants of look() alone; without *names*, Redis is not asked."""
        return self.look(names)[1] if names else {}

    def skip(self, name: str, tick: datetime) -> bool:
        """Let all ticks of *name* up to *tick* never run. False if that one, or a later one, was taken already."""
        with redis_errors():
            changed = self._client.zadd(
                keys.queue_periodic(self.alias), {name: to_us(tick)}, gt=True, ch=True
            )
        return bool(changed)


def read_instant(microseconds: bytes) -> datetime:
    """The instant of a score; the last there is for what is none."""
    try:
        return from_us(int(float(microseconds)))
    except (ValueError, OverflowError):
        return LAST_INSTANT


def warn_of_jump(name: str, last: datetime) -> None:
    """Log that the last tick of *name* counts as not taken."""
    logger.warning(
        "The last tick of %s is %s, more than one period ahead of the clock of Redis, which must have jumped ahead. "
        "It counts as not taken.",
        name,
        last.isoformat(" "),
    )
