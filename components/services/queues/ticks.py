"""
Ticks: the last tick of each periodic task of a backend alias.

A tick is stored by the push that carries it (push.lua), and only if it is later than the last tick of its name. So if
several workers push the same tick, only one of them stores it. One instant is stored for each name: a worker that
dies leaves nothing else behind, and the next one sees which ticks were missed. If the clock of a server jumps ahead
for a moment, last ticks end up far in the future. Therefore a push and a declaration pass the latest possible instant
of a last tick, and a later one is ignored.

The ticks of a paused name are taken like others, but no task is stored. So the name is never late, and goes on with
its next tick when it is resumed.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from components.kit.client import get_client
from components.kit.errors import redis_errors
from components.kit.readings import Ask
from components.kit.scripts import Script
from components.kit.sync_async import at_once
from components.kit.validation import check_several
from components.services.queues.facts import MICROSECOND, from_us, read_instant, to_us
from components.services.queues.keys import BackendKeys

logger = logging.getLogger(__name__)

TickState = Literal["waiting", "running", "successful", "failed", "cancelled", "expired", "gone"]

KEPT = timedelta(days=2 * 366)  # how long a name that is no longer declared is kept after its last tick

DECLARE = Script("queues/declare")
OUTCOMES = Script("queues/outcomes")
TICKS = Script("queues/ticks")

#: The states of runs, as those of the tasks of ticks.
_STATES: dict[str, TickState] = {
    "": "gone",
    "waiting": "waiting",
    "running": "running",
    "cancelling": "running",
    "successful": "successful",
    "dead": "failed",
    "crashed": "failed",
    "cancelled": "cancelled",
    "expired": "expired",
}


@dataclass(frozen=True)
class _Declared:
    """A name, and the latest possible microsecond of its last tick, or 0."""

    name: str
    limit: int


@dataclass(frozen=True)
class TickRun:
    """What became of the task of a tick. Instants are UTC, by the clock of Redis."""

    id: str
    #: "gone" if its result has expired, or it was deleted.
    state: TickState
    #: Of the last attempt.
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def seconds(self) -> float | None:
        """Return how long the last attempt took, or None if it has not ended or is not kept."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0.0, (self.finished_at - self.started_at).total_seconds())


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
        wanted = check_several("names", names)
        declared = [_Declared(name, to_us(limits[name]) if name in limits else 0) for name in wanted]
        answer = DECLARE.run(get_client(), self._keys, kept=KEPT // MICROSECOND, names=declared)
        now, *last = at_once(answer)
        return from_us(now), {name: read_instant(at) for name, at in zip(names, last, strict=True)}

    def look(self, names: Sequence[str]) -> tuple[datetime, dict[str, datetime]]:
        """Return the same as declare(), but change nothing. Names that no worker has declared are left out."""
        return self.read(
            names, at_once(TICKS.run(get_client(), self._keys, names=check_several("names", names)))
        )

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

    def outcomes(self, names: Sequence[str]) -> dict[str, list[TickRun]]:
        """Return what became of the tasks of the last ticks of each name, up to twelve, the newest first."""
        if not check_several("names", names):
            return {}
        answer = at_once(OUTCOMES.run(get_client(), self._keys, names=names))
        return {name: [_read_run(*run) for run in runs] for name, runs in zip(names, answer, strict=True)}

    def paused(self) -> frozenset[str]:
        """Return the names that are paused."""
        with redis_errors():
            names: Any = get_client().smembers(self._keys.paused_ticks)
        return frozenset(name.decode() for name in names)

    def pause(self, name: str) -> None:
        """Skip the ticks of *name* until resume()."""
        with redis_errors():
            get_client().sadd(self._keys.paused_ticks, name)

    def resume(self, name: str) -> None:
        """Store tasks for the ticks of *name* again, from the next one on."""
        with redis_errors():
            get_client().srem(self._keys.paused_ticks, name)

    def skip(self, name: str, tick: datetime) -> bool:
        """Skip all ticks of *name* up to *tick*. Return False if *tick* or a later one was already stored."""
        with redis_errors():
            changed = get_client().zadd(self._keys.periodic, {name: to_us(tick)}, gt=True, ch=True)
        return bool(changed)


def _read_run(task_id: bytes, state: bytes, started: bytes, ended: bytes) -> TickRun:
    return TickRun(
        task_id.decode(),
        _STATES.get(state.decode(errors="replace"), "gone"),
        from_us(started) if int(started) else None,
        from_us(ended) if int(ended) else None,
    )


def warn_of_jump(name: str, last: datetime) -> None:
    """Log a warning that the last tick of *name* is ignored."""
    logger.warning(
        "The last tick of %s is %s, more than one period ahead of the clock of Redis, which must have jumped ahead. "
        "It counts as not taken.",
        name,
        last.isoformat(" "),
    )
