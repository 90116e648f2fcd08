"""Keep long work of a coroutine away from its event loop, so that other requests go on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from components.kit.client import AnyRedis, kept_by_the_loop
from components.kit.scripts import ASYNCHRONOUS

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Turn(asyncio.Lock):
    """One for each event loop: threads that compute would only take turns, and the loop would come last."""


async def aside(client: AnyRedis, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return what *work* returns. With an asynchronous client, it is called in a thread, one call after another."""
    if not isinstance(client, ASYNCHRONOUS):
        return work(*args, **kwargs)
    async with kept_by_the_loop(_Turn, lambda closing: _Turn()):
        return await asyncio.to_thread(work, *args, **kwargs)
