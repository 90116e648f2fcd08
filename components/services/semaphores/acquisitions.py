"""
Acquisition: what Semaphore.aacquire() returns, before anything is asked. It can be awaited, and gives the Permit; or
it can stand in an async with block, and the permit is given back at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any

from components.services.semaphores.permits import Permit


class Acquisition:
    """A permit to come. *start* asks for it."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Permit]]) -> None:
        self._start = start
        self._permit: Permit | None = None

    def __await__(self) -> Generator[Any, None, Permit]:
        return self._start().__await__()

    async def __aenter__(self) -> Permit:
        self._permit = await self._start()
        return self._permit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        permit, self._permit = self._permit, None
        if permit is not None:
            await permit.__aexit__(kind, error, trace)
