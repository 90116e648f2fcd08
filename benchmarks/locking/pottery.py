"""pottery's Redlock with one master: a thread for each request, and up to 0.2 seconds between two tries."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from pottery import Redlock

from benchmarks.crew import client
from benchmarks.locking.base import LEASE, Guarantees, System


class Pottery(System):
    guarantees = Guarantees(
        fence="no", lease="yes", lost_replies="tries again; release fails", wakes="no: polls", fair="no"
    )

    def hold(self, name: str) -> AbstractContextManager[Any]:
        return Redlock(key=name, masters={client()}, auto_release_time=LEASE)
