"""The tasks of the chaos test, a function for each way to end. Their first argument is their own id (plan.py)."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from components.kit.compat import TaskContext
from components.services.queues import is_cancelled, progress, task
from tests.chaos import plan
from tests.chaos.recorder import recorded


@task
def quick(task_id: str) -> None:
    with recorded(task_id):
        pass


@task
def nap(task_id: str, seconds: float) -> None:
    with recorded(task_id):
        progress(1, 2, "half asleep")
        time.sleep(seconds)


@task
async def coroutine(task_id: str) -> None:
    with recorded(task_id):
        await asyncio.sleep(0.01)


@task
def once(task_id: str, seconds: float, *, key: str) -> None:
    """Pushed with a unique key."""
    with recorded(task_id):
        time.sleep(seconds)


@task(takes_context=True, max_attempts=9)
def flaky(context: TaskContext, task_id: str, failures: int) -> None:
    with recorded(task_id):
        if context.attempt <= failures:
            raise ValueError("not yet")


@task(max_attempts=plan.MAX_ATTEMPTS)
def failing(task_id: str) -> None:
    with recorded(task_id):
        raise ValueError("never")


@task
def killer(task_id: str) -> None:
    with recorded(task_id):
        os.kill(os.getpid(), signal.SIGKILL)


@task(timeout=0.5, max_attempts=1)
def stuck(task_id: str) -> None:
    """Its worker gives it up, and ends."""
    with recorded(task_id):
        time.sleep(86_400)


@task(timeout=0.2, max_attempts=2)
async def late(task_id: str) -> None:
    with recorded(task_id):
        await asyncio.sleep(86_400)


@task
def patient(task_id: str) -> None:
    """Takes its time, unless it is cancelled."""
    with recorded(task_id):
        until = time.monotonic() + 0.8
        while time.monotonic() < until:
            if is_cancelled():
                raise RuntimeError("cancelled")
            time.sleep(0.05)
