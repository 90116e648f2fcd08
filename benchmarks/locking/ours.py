"""Ours, as any project would use it: through the client of its CACHES."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from benchmarks.locking.base import LEASE, LIMIT, Guarantees, System


class Ours(System):
    fair = False
    guarantees = Guarantees(fence="yes", lease="yes", lost_replies="yes", wakes="yes", fair="no")

    def hold(self, name: str) -> AbstractContextManager[Any]:
        from components.services.locks import lock

        return lock(name, timeout=LEASE, fair=self.fair)


class OursFair(Ours):
    fair = True
    guarantees = Guarantees(fence="yes", lease="yes", lost_replies="yes", wakes="yes", fair="yes")


class OurSemaphore(System):
    guarantees = Guarantees(fence="no", lease="yes", lost_replies="yes", wakes="yes", fair="yes")

    def hold(self, name: str) -> AbstractContextManager[Any]:
        return _semaphore(name).acquire()


@cache
def _semaphore(name: str) -> Any:
    from components.services.semaphores import Semaphore

    return Semaphore(name, limit=LIMIT, lease=LEASE)
