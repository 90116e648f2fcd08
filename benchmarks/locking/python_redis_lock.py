"""python-redis-lock: who waits blocks on a list with one signal for all who wait."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import redis_lock

from benchmarks.crew import client
from benchmarks.locking.base import LEASE, Guarantees, System


class PythonRedisLock(System):
    guarantees = Guarantees(
        fence="no",
        lease="whole seconds",
        lost_replies="no: held by nobody",
        wakes="yes; a lost signal costs a lease",
        fair="no",
    )

    def hold(self, name: str) -> AbstractContextManager[Any]:
        return redis_lock.Lock(client(), name, expire=LEASE)
