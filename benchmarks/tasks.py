"""The tasks of ours, declared as any project would."""

from __future__ import annotations

import time

from benchmarks.bench import folder, mark
from components.kit.compat import task


@task
def noop() -> None: ...


@task
def note(name: str) -> None:
    mark(name)


@task
def nap(seconds: float) -> None:
    time.sleep(seconds)


@task
def arrive(sent: float) -> None:
    """Write down how long ago *sent* was, by the clock of this machine."""
    took = time.monotonic() - sent
    with (folder() / "arrivals").open("a") as file:
        print(took, file=file)
