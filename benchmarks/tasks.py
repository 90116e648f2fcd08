"""The tasks of components, declared as any project would declare them."""

from __future__ import annotations

import time

from benchmarks.harness import folder, mark
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
    """Note how long ago *sent* was, by the monotonic clock."""
    took = time.monotonic() - sent
    with (folder() / "arrivals").open("a") as file:
        print(took, file=file)
