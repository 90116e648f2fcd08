"""
Ticks: the last tick of each periodic task of a backend alias.

A tick itself is a push that carries it (push.lua). It is stored only if it is later than the last one of its name, so
one of any number of workers that push the same tick stores it. One instant is kept for each name: a worker that dies
leaves nothing behind, and the next one sees what was missed. If the clock of a server jumps ahead for a moment, the
last ticks are left in a far future. So a push and a declaration give the latest possible instant of a last tick, and
a later one is ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.services.queues.facts import MICROSECOND, from_us, read_instant, to_us
from components.services.queues.keys import BackendKeys

logger = logging.getLogger(__name__)

KEPT = timedelta(days=2 * 366)  # after the last tick of a name that is no longer declared

DECLARE = Script("queues/declare")
TICKS = Script("queues/ticks")


@dataclass(frozen=True)
class _Declared:
    """A name, and the latest possible microsecond of its last tick, or 0."""

    name: str
    limit: int


class Ticks:
    """The last ticks of the periodic tasks of TASKS[*alias*]. Every method raises RedisUnavailable."""

    def __init__(self, alias: str = "default") -> None:
        self.alias = alias

    @property
    def _keys(self) -> BackendKeys:
        return BackendKeys(self.alias)

    def declare(
        self, names: Sequence[str], limits: Mapping[str, datetime] | None = None
    ) -> tuple[datetime, dict[str, datetime]]:
        """
        Make *names* known. Return the server's time, and for each name its last tick or the instant at which it
        became known. A last tick that is later than the limit of its name, if it has one in *limits*, becomes now.
        """
        limits = limits or {}
        declared = [_Declared(name, to_us(limits[name]) if name in limits else 0) for name in names]
        answer = DECLARE.run(get_client(), self._keys, kept=KEPT // MICROSECOND, names=declared)
        now, *last = at_once(answer)
        return from_us(now), {name: read_instant(at) for name, at in zip(names, last, strict=True)}

    def look(self, names: Sequence[str]) -> tuple[datetime, dict[str, datetime]]:
        """Return what declare() does, and change nothing. Names that no worker has declared are left out."""
        now, *last = at_once(TICKS.run(get_client(), self._keys, names=names))
        found = zip(names, last, strict=True)
        return from_us(now), {name: read_instant(at) for name, at in found if at is not None}

    def last(self, names: Sequence[str]) -> dict[str, datetime]:
        """Return the instants of look() alone; without *names*, Redis is not asked."""
        return self.look(names)[1] if names else {}

    def skip(self, name: str, tick: datetime) -> bool:
        """Skip all ticks of *name* up to *tick*. Return False if that one, or a later one, was stored already."""
        with redis_errors():
            changed = get_client().zadd(self._keys.periodic, {name: to_us(tick)}, gt=True, ch=True)
        return bool(changed)


def warn_of_jump(name: str, last: datetime) -> None:
    """Log that the last tick of *name* is ignored."""
    logger.warning(
        "The last tick of %s is %s, more than one period ahead of the clock of Redis, which must have jumped ahead. "
        "It counts as not taken.",
        name,
        last.isoformat(" "),
    )
