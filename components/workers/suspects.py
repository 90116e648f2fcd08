"""
How many suspects a worker claims: tasks under which a worker has died, so that they or their neighbours killed it.

They come a few at a time, the next when these have ended or run for a moment; and one by one when they have crashed
often, or another crash would be their last (advance.lua sees to that). So tasks that died together in one batch
do not die together each time, and one that kills its workers takes no short one along into the dead set.
"""

from __future__ import annotations

import time
from collections.abc import Container

from components.services.queues import Claimed
from components.workers.runs import Run

MOST = 20  # suspects in one batch
WATCHED = 0.05  # seconds that they run before the next are claimed; also in advance.lua


class Suspects:
    """The latest that were claimed."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def add(self, run: Run) -> None:
        if run.claimed.is_suspect:
            self._runs.append(run)

    def wanted(self, held: Container[Claimed]) -> int:
        """How many may be claimed now, by a worker that holds *held*."""
        since = time.monotonic() - WATCHED
        young = [run for run in self._runs if run.started_at is None or run.started_at > since]
        self._runs = [run for run in young if run.claimed in held]
        return 0 if self._runs else MOST
