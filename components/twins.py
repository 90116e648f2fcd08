"""
One logic for a method and its asynchronous twin: a coroutine that is given the client to send with.

    def get(self, key):             return at_once(self._get(get_client(), key))
    async def aget(self, key):      return await self._get(get_async_client(), key)
    async def _get(self, client, key):  ... await answer(client.get(key)) ...

With a synchronous client nothing in it is ever awaited, so it runs to its end at once, without a loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


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
