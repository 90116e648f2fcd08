"""
One piece of logic for a method and its asynchronous twin: a coroutine that takes the client to use.

    def get(self, key):             return at_once(self._get(get_client(), key))
    async def aget(self, key):      return await self._get(get_async_client(), key)
    async def _get(self, client, key):  ... await answer(client.get(key)) ...

With a synchronous client the coroutine never really waits, so it runs to its end at once, without a loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

# A task that is itself cancelled this often is not started again: nobody wants it to finish any more.
_MOST_STARTS = 100


async def answer(sent: Any) -> Any:
    """Return the result of a call to a client, synchronous or asynchronous."""
    return await sent if isinstance(sent, Awaitable) else sent


def at_once(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine that awaits nothing. Raises TypeError if it awaits something."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    coroutine.close()
    raise TypeError(
        "A synchronous method was called with an asynchronous client. Use the method with the leading a."
    )


def cancellations() -> int:
    """
    Return how often the running task was cancelled; 0 outside of a task.

    Loops that wait need this, because asyncio.wait_for() of Python 3.11, which redis-py uses to send over TCP, may
    return normally and hide a cancellation.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return 0
    return task.cancelling() if task else 0


async def to_its_end(start: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """
    Await what *start* returns, however often the caller is cancelled meanwhile, and return its result.

    Use this to release something that must be released. If the caller was cancelled, CancelledError is raised when
    the work is done. A loop that ends cancels all of its tasks, including the one started here; *start* is then
    called again, so it must be safe to repeat.
    """
    has_been_cancelled = False
    for _ in range(_MOST_STARTS):
        task = asyncio.ensure_future(start())
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                has_been_cancelled = True
        if not task.cancelled():
            break
    if has_been_cancelled:
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved
        raise asyncio.CancelledError
    return task.result()
