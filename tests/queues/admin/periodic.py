"""Periodic tasks that only the admin's tests declare."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from components.services.queues import PeriodicTask, cron, every, task
from components.services.queues import periodic_tasks as periodic


@task
def sweep(until: str = "now") -> None: ...


@task(unique=True)
def once_at_a_time() -> None: ...


HOURLY = PeriodicTask(sweep, every(hours=1), "once", [], {})
NIGHTLY = PeriodicTask(sweep, cron("0 3 * * *", tz="Europe/Berlin"), "skip", ["<b>month</b>"], {})
UNIQUE = PeriodicTask(once_at_a_time, every(days=1), "all", [], {})


@contextmanager
def declare_only(*entries: PeriodicTask) -> Iterator[None]:
    """These periodic tasks are declared in this process, and no others."""
    periodic.declared()  # what the apps declare is known from now on
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(periodic, "_declared", {entry.name: entry for entry in entries})
        yield
