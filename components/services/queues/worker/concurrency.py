"""
Concurrency limits of tasks, by semaphores: no more than so many runs at a time, in all workers together.

A run has a permit as long as it lasts, renewed like its lease, so that of a worker that died comes back. Where
there is none the task is parked, and whoever ends a run lets the first parked one be due. Between "there is none" and
"it is parked" the last run may have ended without seeing it; so who has parked looks once more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from components.exceptions import ComponentsError, PermitLost, RedisUnavailable
from components.kit.compat import Task
from components.services.queues.consumer import Parking
from components.services.queues.policy import Concurrency
from components.services.semaphores import Permit, Semaphore

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limit:
    """One that a task has named."""

    #: Of the semaphore.
    name: str
    most: int
    #: Seconds that a permit lasts without renewal.
    lease: float

    @classmethod
    def of(
        cls, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], lease: float
    ) -> Limit | None:
        """That of a call of *task*, if it has any. Raises whatever the task's own function raises."""
        concurrency = getattr(task, "concurrency", None)
        if concurrency is None:
            return None
        if not isinstance(concurrency, Concurrency):
            concurrency = Concurrency(concurrency)
        name = concurrency.name_for(task.module_path, args, kwargs)
        return cls(name, concurrency.limit, getattr(task, "lease", None) or lease)

    @property
    def semaphore(self) -> Semaphore:
        return Semaphore(self.name, limit=self.most, lease=self.lease)

    @contextmanager
    def permit(self, parking: Parking, *, owner: str, by: str) -> Iterator[Held | None]:
        """A permit for the block, or None; it is given back after it, and a parked task may come."""
        permit = self._try(owner)
        if permit is None:
            yield None
            return
        try:
            yield Held(self, permit, parking, by)
        finally:
            try:
                permit.release()
                parking.unpark(self.name, by)
            except PermitLost as error:
                logger.warning("A run went on without its permit, perhaps beside too many others: %s", error)
            except RedisUnavailable as error:
                logger.warning("A permit is not given back, and ends with its lease: %s", error)

    def _try(self, owner: str) -> Permit | None:
        try:
            return self.semaphore.try_acquire(owner=owner, auto_renewal=True)
        except RedisUnavailable as error:
            logger.warning("It is not known whether %r has room: %s", self.name, error)
            return None

    def look_again(self, parking: Parking, *, by: str) -> None:
        """Let a task that was parked come at once, if there is a permit by now."""
        try:
            if permit := self.semaphore.try_acquire():
                permit.release()
                parking.unpark(self.name, by)
        except ComponentsError as error:  # it comes by itself, only later
            logger.warning("It is not known whether %r has room for a parked task: %s", self.name, error)


@dataclass(frozen=True)
class Held:
    """A permit that a run has."""

    limit: Limit
    permit: Permit
    parking: Parking
    by: str

    def end_soon(self, seconds: float) -> None:
        """
        Let the permit end in so many *seconds*, and the first parked task come then: its run still goes on, in a
        process that is about to end. What cannot be done is logged; the permit then ends with its lease.
        """
        self.permit.drop()
        self.permit.lease = seconds  # also of a renewal that is under way
        try:
            self.permit.refresh()
            self.parking.unpark(self.limit.name, f"{self.by}:ended", delay=seconds)
        except ComponentsError as error:
            logger.warning("The permit of a run that was cut off ends with its lease: %s", error)
