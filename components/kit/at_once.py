"""
One logic for a method and its asynchronous twin: a coroutine that is given the client to send with.

    def get(self, key):             return at_once(self._get(get_client(), key))
    async def aget(self, key):      return await self._get(get_async_client(), key)
    async def _get(self, client, key):  ... await answer(client.get(key)) ...

With a synchronous client nothing in it is ever awaited, so it runs to its end at once, without a loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

_MOST_STARTS = 100  # of what is cancelled itself again and again: by then nobody wants it to end well


async def answer(sent: Any) -> Any:
    """What the method of a client, synchronous or not, comes to."""
    return await sent if isinstance(sent, Awaitable) else sent


def at_once(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that awaits nothing. Raises TypeError if it does."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    coroutine.close()
    raise TypeError(
        "An asynchronous client was given to a synchronous method: use the one with the leading a."
    )


def cancellations() -> int:
    """
    How often the running task was cancelled, for loops that wait: asyncio.wait_for() of Python 3.11, by which
    redis-py sends over TCP, may end normally and hide that. 0 outside of a task.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return 0
    return task.cancelling() if task else 0


async def to_its_end(start: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """
    Await what *start* returns, however often the caller is cancelled meanwhile, and return its result.

    For what must be given back. If the caller was cancelled, CancelledError is raised when all is done. A loop that
    ends cancels the tasks that it finds, and so this one's: then it is started anew, so it must bear repetition.
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
            task.exception()  # it counts as seen
        raise asyncio.CancelledError
    return task.result()
