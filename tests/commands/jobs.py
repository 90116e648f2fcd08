"""Tasks for worker processes; a test lets them go on by making a file."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from components.compat import TaskContext, task
from components.services.counters import buffers, count


@task(takes_context=True)
def hold(context: TaskContext, folder: str) -> int:
    """Make one file, and end when there is another; each attempt has its own two. Which attempt it was."""
    attempt = context.attempt
    Path(folder, f"begun-{attempt}").touch()
    while not Path(folder, f"gate-{attempt}").exists():
        time.sleep(0.005)
    return attempt


#: What `grow` has allocated.
grown: list[bytes] = []


@task
def grow(megabytes: int) -> None:
    """Hold so much more memory from now on."""
    grown.append(b"x" * (megabytes << 20))


@task
async def ahold() -> None:
    """Run until it is cancelled."""
    await asyncio.Event().wait()


@task
def tally(times: int) -> None:
    """Count in memory, from where nothing is sent before the process ends."""
    buffers.INTERVAL = 3_600.0
    count("hits", times)
