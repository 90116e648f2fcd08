"""
Ticks: the last tick of each periodic task of a backend alias.

A tick is stored by the push that carries it (push.lua), and only if it is later than the last tick of its name. So if
several workers push the same tick, only one of them stores it. One instant is stored for each name: a worker that
dies leaves nothing else behind, and the next one sees which ticks were missed. If the clock of a server jumps ahead
for a moment, last ticks end up far in the future. Therefore a push and a declaration pass the latest possible instant
of a last tick, and a later one is ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from components.kit.at_once import at_once
from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.figures import Ask
from components.kit.scripts import Script
from components.services.queues.facts import MICROSECOND, from_us, read_instant, to_us
from components.services.queues.keys import BackendKeys

logger = logging.getLogger(__name__)

KEPT = timedelta(days=2 * 366)  # how long a name that is no longer declared is kept after its last tick

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
        Declare *names*. Return the server's time, and for each name its last tick or the instant at which it became
        known. A last tick that is later than the limit of its name, if it has one in *limits*, becomes now.
        """
        limits = limits or {}
        declared = [_Declared(name, to_us(limits[name]) if name in limits else 0) for name in names]
        answer = DECLARE.run(get_client(), self._keys, kept=KEPT // MICROSECOND, names=declared)
        now, *last = at_once(answer)
        return from_us(now), {name: read_instant(at) for name, at in zip(names, last, strict=True)}

    def look(self, names: Sequence[str]) -> tuple[datetime, dict[str, datetime]]:
        """Return the same as declare(), but change nothing. Names that no worker has declared are left out."""
        return self.read(names, at_once(TICKS.run(get_client(), self._keys, names=names)))

    def ask(self, names: Sequence[str]) -> Ask:
        """Return the question of look(), to send it together with others; read() takes the answer."""
        return Ask(self._keys.periodic, partial(TICKS.put, keys=self._keys, names=names))

    def read(self, names: Sequence[str], answer: Sequence[Any]) -> tuple[datetime, dict[str, datetime]]:
        """Return what look() does, from the answer to ask()."""
        now, *last = answer
        found = zip(names, last, strict=True)
        return from_us(now), {name: read_instant(at) for name, at in found if at is not None}

    def last(self, names: Sequence[str]) -> dict[str, datetime]:
        """Return only the instants of look(). Redis is not asked if *names* is empty."""
        return self.look(names)[1] if names else {}

    def skip(self, name: str, tick: datetime) -> bool:
        """Skip all ticks of *name* up to *tick*. Return False if *tick* or a later one was already stored."""
        with redis_errors():
            changed = get_client().zadd(self._keys.periodic, {name: to_us(tick)}, gt=True, ch=True)
        return bool(changed)


def warn_of_jump(name: str, last: datetime) -> None:
    """Log a warning that the last tick of *name* is ignored."""
    logger.warning(
        "The last tick of %s is %s, more than one period ahead of the clock of Redis, which must have jumped ahead. "
        "It counts as not taken.",
        name,
        last.isoformat(" "),
    )
