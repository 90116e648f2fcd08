"""
Ticker: pushes the due ticks of periodic tasks, in any worker or poller.

All workers compute the same ticks by the clock of Redis, and all push each tick, but it is stored only once.
Therefore no worker has to be elected, and no worker has to take over when another dies. A tick takes one round trip,
and one more if several were missed. Between ticks, and if nothing is declared, there are no round trips.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from components.exceptions import RedisRefused, RedisUnavailable
from components.kit.decoding import EPOCH
from components.services.queues import Ticks
from components.services.queues.backend import RedisBackend
from components.services.queues.facts import LAST_INSTANT
from components.services.queues.periodic_tasks import PeriodicTask, declared
from components.services.queues.ticks import warn_of_jump
from components.services.queues.worker.runs import ServerClock

logger = logging.getLogger(__name__)

GRACE = timedelta(minutes=1)  # a later tick is late; restarting all workers takes seconds
RETRY = timedelta(minutes=1)  # pause before a tick that could not be pushed is tried again
TURNED_BACK = timedelta(seconds=1)  # a worker starts over if the clock of Redis goes back by this or more
MOST = 1_000  # the most missed ticks that missed="all" runs


@dataclass
class _Course:
    """This worker's progress with one periodic task."""

    periodic: PeriodicTask
    last_at: datetime
    next_at: datetime
    #: The error of the latest tick, if any.
    problem: str = ""


class Ticker:
    """The ticks of one backend. *clock* is the clock of its worker. The constructor does no I/O."""

    def __init__(self, backend: RedisBackend, clock: ServerClock) -> None:
        self._backend = backend
        self._clock = clock
        self._ticks = Ticks(backend.alias)
        self._courses: list[_Course] | None = None
        self._next_at = LAST_INSTANT
        self._latest = EPOCH

    def tick(self) -> float:
        """Push the due ticks. Return the seconds until the next one. Raises RedisUnavailable; then call it again."""
        if self._courses is None:
            self._courses = self._begin()
        if not self._courses:
            return math.inf
        now = self._clock.now()
        if now < self._latest - TURNED_BACK:
            logger.warning("The clock of Redis went back by %s.", self._latest - now)
            self._courses = self._begin()
            now = self._clock.now()
        self._latest = now
        if self._next_at <= now:
            for course in self._courses:
                if course.next_at <= now:
                    self._try(course, now)
            self._next_at = min(course.next_at for course in self._courses)
        return max(0.0, (self._next_at - now).total_seconds())

    def _begin(self) -> list[_Course]:
        entries = declared(self._backend.alias)
        if not entries:
            return []
        names = [entry.name for entry in entries]
        now, last = self._ticks.declare(names)
        limits = {entry.name: entry.schedule.next_after(now) for entry in entries}
        if ahead := {name: limit for name, limit in limits.items() if last[name] > limit}:
            for name in ahead:
                warn_of_jump(name, last[name])
            now, last = self._ticks.declare(names, ahead)
        self._clock.set(now)
        self._next_at = self._latest = now
        return [_Course(entry, last[entry.name], last[entry.name]) for entry in entries]

    def _try(self, course: _Course, now: datetime) -> None:
        """Push a tick of one task. An error is logged once, and stops neither the other tasks nor the worker."""
        try:
            course.last_at = self._push(course, now)
            course.next_at = course.periodic.schedule.next_after(course.last_at)
            course.problem = ""
        except (Exception, SystemExit) as error:  # receivers of the signal task_enqueued may raise anything
            # A server that is out of memory accepts no new tasks. That must not keep the worker from stored ones.
            if isinstance(error, RedisUnavailable) and not isinstance(error, RedisRefused):
                raise
            course.next_at = now + RETRY
            if course.problem != repr(error):
                course.problem = repr(error)
                logger.error(
                    "A tick of %s could not be pushed, and is tried again every %d s: %s",
                    course.periodic.name,
                    RETRY.seconds,
                    error,
                    exc_info=error,
                )

    def _push(self, course: _Course, now: datetime) -> datetime:
        """Push a tick. Return the last tick that this worker or another one has stored."""
        periodic, last = course.periodic, course.last_at
        next_after = periodic.schedule.next_after
        first = next_after(last)
        if first <= now and next_after(first) <= now:  # this worker is behind; another one may not be
            seen = self._ticks.last([periodic.name]).get(periodic.name, last)
            if seen <= next_after(now):  # otherwise the clock had jumped ahead
                last = max(last, seen)
            first = next_after(last)
        if first > now:
            return last
        due = periodic.schedule.latest(last, now, MOST if periodic.missed == "all" else 1)
        if periodic.missed == "skip" and now - due[-1] > GRACE:
            is_ours, fate = self._ticks.skip(periodic.name, due[-1]), "none of them will run"
        else:
            pushed = self._store(periodic, due, next_after(now))
            is_ours, fate = pushed > 0, f"{pushed} will run now"
        if is_ours and now - first > GRACE:
            logger.warning("%s has missed ticks since %s; %s.", periodic.name, first.isoformat(" "), fate)
        return due[-1]

    def _store(self, periodic: PeriodicTask, due: Sequence[datetime], limit: datetime) -> int:
        """
        Store a call for each tick in *due*, with the tick as its run_after. Return how many of them no other worker
        had stored. A last tick later than *limit* is ignored.
        """
        self._backend.check_task(periodic.task)
        new = self._backend.new_task(periodic.task, periodic.args, periodic.kwargs)
        calls = [
            replace(new, at=tick, delay=None, tick=(periodic.name, tick), tick_limit=limit) for tick in due
        ]
        return len(self._backend.store(periodic.task, calls))
