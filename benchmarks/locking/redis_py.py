"""redis-py's own Lock: it tries again every tenth of a second, or as often as `sleep` says."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from benchmarks.crew import client
from benchmarks.locking.base import LEASE, Guarantees, System


class RedisPy(System):
    sleep = 0.1  # seconds, its default
    guarantees = Guarantees(
        fence="no", lease="yes", lost_replies="no: held by nobody", wakes="no: polls", fair="no"
    )

    def hold(self, name: str) -> AbstractContextManager[Any]:
        return client().lock(name, timeout=LEASE, sleep=self.sleep)


class QuickRedisPy(RedisPy):
    sleep = 0.01
