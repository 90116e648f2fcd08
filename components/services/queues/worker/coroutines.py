"""
The event loop of coroutine tasks: one per process, in a thread of its own, from the first coroutine to the end of the
process.

A loop per task would cost ten times as much as a task. Beside each thread of the worker there is a second one, with a
database connection of its own, which runs what coroutines pass to sync_to_async, such as the ORM. So as many
coroutines can query at once as there are threads. A task that raises SystemExit in the loop has failed; the others
go on.
"""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from functools import cache
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import close_old_connections

from components.exceptions import TaskTimedOut

UNWILLING = 5.0  # seconds that a coroutine may take to end when it is cancelled


def begin_thread() -> None:
    """Prepare a thread that will submit coroutines: the synchronous code in them gets a thread of its own."""
    SyncToAsync.thread_sensitive_context.set(ThreadSensitiveContext())


class Submitted:
    """
    A coroutine in the loop. After *seconds* it is cancelled, and TaskTimedOut is raised. It has ended when it has
    cleaned up; a cancelled coroutine may still succeed.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any], seconds: float | None) -> None:
        self._coroutine = coroutine
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False

    def result(self) -> Any:
        """Run the coroutine. Return or raise what it does; CancelledError (of futures) if it was cancelled."""
        return asyncio.run_coroutine_threadsafe(self._run(), _loop()).result()

    def cancel(self) -> None:
        """Cancel the coroutine; it ends soon."""
        _loop().call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task and not self._is_cancelled:
            self._task.cancel()
        self._is_cancelled = True

    async def _run(self) -> Any:
        self._task = asyncio.current_task()
        if self._is_cancelled:
            self._coroutine.close()
            raise asyncio.CancelledError
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await self._coroutine
        except TimeoutError as error:
            if limit.expired():
                raise TaskTimedOut(
                    f"It ran longer than its timeout of {round(self._seconds or 0.0, 3):g} s, and was cancelled."
                ) from error
            raise
        finally:
            context = SyncToAsync.thread_sensitive_context.get(None)
            # The coroutine may have used the ORM.
            if context is None or context in SyncToAsync.context_to_thread_executor:
                await sync_to_async(close_old_connections)()


_guard = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop. The first call starts it, in a thread of its own."""
    with _guard:
        return _started()


@cache
def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run_forever, args=[loop], name="coroutines", daemon=True).start()
    return loop


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        with suppress(SystemExit, KeyboardInterrupt):  # of a task: it has failed, and the others go on
            loop.run_forever()
