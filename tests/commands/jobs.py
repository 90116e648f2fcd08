"""Tasks for worker processes; a test lets them go on by making a file."""

import json
import multiprocessing
import time
from contextlib import suppress
from pathlib import Path

from components.kit.compat import TaskContext, task
from components.services.counters import buffer, count
from components.services.queues import task as policy


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
def tally(times: int) -> None:
    """Count in memory, from where nothing is sent before the process ends."""
    buffer.INTERVAL = 3_600.0
    count("hits", times)


@policy(timeout=0.3)
def overrun(folder: str) -> None:
    """Run far beyond the timeout, and tell since when and until when: a line for each."""
    _run_on(folder, "overrun")


@policy(timeout=0.3, concurrency=1)
def overrun_alone(folder: str) -> None:
    """The same, under a concurrency limit."""
    _run_on(folder, "overrun_alone")


def _run_on(folder: str, name: str) -> None:
    # The clock is that of the machine, the same for all processes.
    number = len(list(Path(folder).glob(f"{name}-*")))
    with Path(folder, f"{name}-{number}").open("w") as file:
        while True:
            file.write(f"{time.monotonic()}\n")
            file.flush()
            time.sleep(0.001)


@task
def fork_a_pool() -> None:
    """End a pool of processes that are at work."""
    with multiprocessing.get_context("fork").Pool(1) as pool, suppress(multiprocessing.TimeoutError):
        pool.apply(abs, (1,))  # Python drops a signal that comes to a child before it has begun
        pool.apply_async(time.sleep, (600,)).get(timeout=0.1)


@task
def spin(folder: str) -> None:
    """Call functions until there is a file "gate"."""
    while not Path(folder, "gate").exists():
        json.dumps([[Path(folder, str(number)).name] for number in range(200)], indent=1)
