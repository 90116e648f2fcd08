"""Tasks that look at what surrounds them while they run."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connections

from components.compat import TaskContext, task

#: How many of `crowd` run now, and the most that ever ran at once.
crowded: Counter[str] = Counter()
_guard = threading.Lock()
#: The ticks that `tick_of` was called for.
ticked: list[datetime | None] = []
#: Set by a test to let `awhile` go on.
agate = threading.Event()


@task
def connect(alias: str) -> bool:
    """Use a database; whether its connection had been left open by an earlier task."""
    was_open = connections[alias].connection is not None
    connections[alias].ensure_connection()
    return was_open


@task
def connect_and_fail(alias: str) -> None:
    connections[alias].ensure_connection()
    raise ValueError


@task
async def aconnect(alias: str) -> bool:
    return await sync_to_async(connect.func)(alias)


@task
def parameters(**given: Any) -> dict[str, Any]:
    return given


@task
async def aparameters(**given: Any) -> dict[str, Any]:
    return given


@task(takes_context=True)
async def aattempt(context: TaskContext) -> int:
    return context.attempt


@task
async def aleave() -> None:
    raise SystemExit(3)


@task
async def ainterrupt() -> None:
    raise KeyboardInterrupt


@task
async def leave_behind() -> None:
    """Let a coroutine of its own raise SystemExit."""

    async def leave() -> None:
        raise SystemExit

    background = asyncio.create_task(leave())
    await asyncio.sleep(0)
    background.exception()


@task
async def awhile() -> str:
    """Wait for the gate without holding up the event loop."""
    while not agate.is_set():
        await asyncio.sleep(0.005)
    return threading.current_thread().name


@task
async def loop_id() -> int:
    return id(asyncio.get_running_loop())


@task
def crowd() -> None:
    """Wait for the gate, and count how many others do."""
    with _guard:
        crowded["now"] += 1
        crowded["most"] = max(crowded["most"], crowded["now"])
    assert agate.wait(10)
    with _guard:
        crowded["now"] -= 1


@task
def enqueue_another(left: int) -> int:
    if left:
        enqueue_another.enqueue(left - 1)
    return left


@task
def thread_name() -> str:
    return threading.current_thread().name


@task
async def thread_of_the_orm() -> str:
    """The thread in which a coroutine's sync code runs."""
    return await sync_to_async(thread_name.func)()


@task
def count_users() -> int:
    return User.objects.count()


@task
async def acount_users() -> int:
    return await User.objects.acount()


@task
def cause() -> None:
    try:
        raise KeyError("sword")
    except KeyError as error:
        raise LookupError("no such item") from error


@task(takes_context=True)
def tick_of(context: TaskContext, value: Any) -> None:
    """Remember the tick of a periodic task."""
    ticked.append(context.task_result.task.run_after)
