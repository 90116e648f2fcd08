"""Tasks that look at what surrounds them while they run."""

import asyncio
import math
import sys
import threading
from collections import Counter
from contextlib import suppress
from contextvars import ContextVar
from datetime import date
from decimal import Decimal
from queue import SimpleQueue
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.urls import get_urlconf, set_urlconf
from django.utils import timezone, translation
from django.utils.translation import get_language

from components.kit.compat import TaskContext, task
from components.services.queues import aprogress, is_cancelled, progress
from components.services.queues import task as policy
from tests import tasks

#: How many of `crowd` run now, and the most that ever ran at once.
crowded: Counter[str] = Counter()
_guard = threading.Lock()
#: The connections that `connect` and `connect_and_fail` used.
used: list[BaseDatabaseWrapper] = []
#: Set by a test to let `awhile` go on.
agate = threading.Event()


@task
def connect(alias: str) -> bool:
    """Use a database; whether its connection had been left open by an earlier task."""
    was_open = connections[alias].connection is not None
    connections[alias].ensure_connection()
    used.append(connections[alias])
    return was_open


@task
def connect_and_fail(alias: str) -> None:
    connections[alias].ensure_connection()
    used.append(connections[alias])
    raise ValueError


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
async def anote(value: Any) -> None:
    tasks.notes.append(value)


@task
def crowd() -> None:
    """Wait for the gate, and count how many others do."""
    with _guard:
        crowded["now"] += 1
        crowded["most"] = max(crowded["most"], crowded["now"])
    assert agate.wait(60)
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


#: What tasks tell the test, in order.
told: SimpleQueue[Any] = SimpleQueue()


@policy(max_attempts=3, backoff=0)
def fail_thrice() -> None:
    raise ValueError("no")


@policy(max_attempts=3, backoff=0, takes_context=True)
def succeed_at_last(context: TaskContext) -> int:
    if context.attempt < 3:
        raise ValueError("not yet")
    return context.attempt


@policy(timeout=0.05, max_attempts=2, backoff=0)
async def sleep_too_long() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        told.put("cancelled")
        raise


@policy(timeout=0.1)
def stuck() -> None:
    """A function cannot be ended from outside; the test opens the gate when it is over."""
    agate.wait(30)


@policy(timeout=0.1, concurrency=1)
def stuck_alone() -> None:
    agate.wait(30)


@policy(concurrency=1)
def waits_alone() -> None:
    agate.wait(30)


@task
def huge(size: int) -> str:
    """Return so many bytes, as JSON."""
    return "x" * (size - 2)


@policy(max_attempts=2, backoff=0)
def fail_hugely(size: int) -> None:
    raise ValueError("x" * size)


@policy(timeout=0.05)
async def unwilling() -> None:
    """A coroutine that does not end when it is cancelled."""
    while not agate.is_set():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)


@policy(timeout=30)
async def own_timeout() -> None:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(30)


@policy(lease=1)
def wait_under_a_short_lease() -> None:
    assert agate.wait(60)


@task
async def until_cancelled() -> None:
    told.put("begun")
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)
        told.put("cleaned up")


@task
def until_told() -> str:
    """A function that asks, as a long one should."""
    told.put("begun")
    while not is_cancelled():
        if agate.wait(0.005):
            return "in the end"
    raise InterruptedError("told to end")


@task
def report(steps: int) -> bool:
    """Say each step; whether anyone wants it to end."""
    for step in range(steps):
        progress(step, steps, f"step {step}")
    return is_cancelled()


@task
async def areport(steps: int) -> bool:
    for step in range(steps):
        await aprogress(step, steps, f"step {step}")
    return is_cancelled()


@task
def report_the_end() -> None:
    progress(1, 3)
    progress(2, 3)
    progress(3, 3, "done")


@task
def odd(kind: str) -> object:
    return {"set": {1}, "keys": {1: 2}, "date": date(2026, 1, 1), "decimal": Decimal(1), "nan": math.nan}[
        kind
    ]


#: What a task sets for itself.
shade: ContextVar[str] = ContextVar("shade", default="none")


@task
def surroundings(leaves: bool) -> list[str | None]:
    """Return the language, time zone, URLconf and variable that it finds, and set others."""
    found = [get_language(), timezone.get_current_timezone_name(), get_urlconf(), shade.get()]
    if leaves:
        translation.activate("de")
        timezone.activate("Asia/Shanghai")
        set_urlconf("tests.control_room.no_urls")
        shade.set("green")
    return found


class Unprintable(ValueError):
    """An error whose notes cannot be printed."""

    @property
    def __notes__(self) -> list[str]:
        raise SystemExit("notes")


@policy(max_attempts=2, backoff=lambda error, result: sys.exit("backoff"))
def raise_anything(kind: str) -> str:
    """Raise something whose handling raises SystemExit, or end well."""
    if kind == "notes":
        raise Unprintable(kind)
    if kind == "backoff":
        raise ValueError(kind)
    return kind


@policy(max_crashes=1)
def once_only() -> None: ...


@policy(expires=60, max_attempts=2)
def brief(fails: bool = False) -> str:
    if fails:
        raise ValueError("no")
    return "in time"
