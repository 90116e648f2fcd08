"""The tasks that tests push and run."""

import threading
from typing import Any

from components.kit.compat import TaskContext, task

#: Set by a test to let `wait` go on.
gate = threading.Event()
#: What `note` was called with, in order.
notes: list[Any] = []


@task
def echo(value: Any = None) -> Any:
    return value


@task
def note(value: Any) -> None:
    notes.append(value)


@task
def fail(message: str = "no") -> None:
    raise ValueError(message)


@task
def leave() -> None:
    raise SystemExit(3)


@task
def interrupt() -> None:
    raise KeyboardInterrupt


@task
def give_back_a_set() -> set[int]:
    return {1}


@task
def wait() -> None:
    assert gate.wait(60)


@task(takes_context=True)
def attempt(context: TaskContext) -> int:
    return context.attempt


@task
async def aecho(value: Any = None) -> Any:
    return value


@task
async def afail() -> None:
    raise ValueError("no, not this way either")


def not_a_task() -> None:
    raise AssertionError("only what is declared as a task may run")
