"""
Concurrency limits of tasks: a semaphore limits how many runs there are at a time, in all workers together.

A run holds a permit while it lasts. The permit is renewed like a lease, so the permits of a dead worker come back. If
no permit is free, the task is parked, and the end of a run makes the first parked task due. The last run may end
between the refusal of a permit and the parking, so a worker checks once more after parking.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from zlib import crc32

from components.conf import QueueOptions
from components.exceptions import ComponentsError, PermitLost, RedisUnavailable
from components.kit.compat import Task
from components.services.queues.consumer import Consumer
from components.services.queues.policy import Concurrency
from components.services.semaphores import Permit, Semaphore

logger = logging.getLogger(__name__)


@lru_cache(maxsize=1_000)
def _is_serial(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


@dataclass(frozen=True)
class Limit:
    """The concurrency limit of a task."""

    #: The name of the semaphore.
    name: str
    most: int
    #: Seconds that a permit lasts without renewal.
    lease: float

    @classmethod
    def of(
        cls, task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], options: QueueOptions
    ) -> Limit | None:
        """Return the limit of a call of *task*, or None. Raises any error of the task's own naming function."""
        concurrency = getattr(task, "concurrency", None)
        if concurrency is None:
            if not _is_serial(task.module_path, tuple(options.serial)):
                return None
            given = json.dumps([args, kwargs], sort_keys=True).encode("utf-8", "surrogatepass")
            number = crc32(given) % 256  # of so few that each may have a semaphore; equal arguments share one
            concurrency = Concurrency(1, f"serial:{task.module_path}:{number}")
        if not isinstance(concurrency, Concurrency):
            concurrency = Concurrency(concurrency)
        name = concurrency.name_for(task.module_path, args, kwargs)
        return cls(name, concurrency.limit, getattr(task, "lease", None) or options.lease)

    @property
    def semaphore(self) -> Semaphore:
        return Semaphore(self.name, limit=self.most, lease=self.lease)

    @contextmanager
    def permit(self, consumer: Consumer, *, owner: str, by: str) -> Iterator[Held | None]:
        """Yield a permit for the block, or None. After the block, it is given back, and a parked task becomes due."""
        try:
            permit = self.semaphore.try_acquire(owner=owner, auto_renewal=True)
        except RedisUnavailable as error:
            logger.warning("Could not check whether %r has room: %s", self.name, error)
            permit = None
        if permit is None:
            yield None
            return
        try:
            yield Held(self, permit, consumer, by)
        finally:
            try:
                permit.release()
                consumer.unpark(self.name, by)
            except PermitLost as error:
                logger.warning(
                    "A run continued without its permit, so there may have been too many at once: %s", error
                )
            except RedisUnavailable as error:
                logger.warning("A permit could not be given back, and will end with its lease: %s", error)

    def look_again(self, consumer: Consumer, *, by: str) -> None:
        """Make a parked task due at once if a permit is free by now."""
        try:
            info = self.semaphore.info()
            if info.limit is None or (info.used < info.limit and not info.waiting):
                consumer.unpark(self.name, by)
        except ComponentsError as error:  # the task becomes due by itself, only later
            logger.warning("Could not check whether %r has room for a parked task: %s", self.name, error)


@dataclass(frozen=True)
class Held:
    """A permit that a run holds."""

    limit: Limit
    permit: Permit
    consumer: Consumer
    by: str

    def end_soon(self, seconds: float) -> None:
        """
        End the permit in this many *seconds*, and make the first parked task due then, because the run is still going
        on in a process that is about to end. A failure is logged; the permit then ends with its lease.
        """
        self.permit.drop()
        self.permit.lease = seconds  # also applies to a renewal in progress
        try:
            self.permit.refresh()
            self.consumer.unpark(self.limit.name, f"{self.by}:ended", delay=seconds)
        except ComponentsError as error:
            logger.warning("The permit of a run that was cut off ends with its lease: %s", error)
