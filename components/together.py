"""
together(): calls of a script that come while others are under way travel in one pipeline after them.

A view of many users sends for each of them, and one message can wake a thousand coroutines: each by itself would take
a connection of the pool, which has a hundred, and most of its time would be the client's work for a round trip. So in
an event loop a call goes at once if no other of its script is under way; those that come meanwhile go together.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from typing import Any

from components.client import get_async_client, kept_by_the_loop
from components.exceptions import RedisUnavailable
from components.scripts import Call, Script

_MOST = 64  # calls in a pipeline: so that none waits long for the answers of the others


class _Lines(dict[str, "_Line"]):
    """Those of an event loop, by script."""


class _Line:
    """The calls of one script that wait for those that are under way."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._waiting: list[tuple[Sequence[Call], asyncio.Future[list[Any]]]] = []
        self._is_busy = False
        self._task: asyncio.Task[None] | None = None

    async def send(self, calls: Sequence[Call]) -> list[Any]:
        if self._is_busy:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((calls, future))
            answers: list[Any] = await future
            return answers
        self._is_busy = True
        try:
            return await self._ask(calls)
        finally:
            if self._waiting:
                # Whoever came first must not lend its context variables to the others.
                context = contextvars.Context()
                self._task = asyncio.get_running_loop().create_task(self._go_on(), context=context)
            else:
                self._is_busy = False

    async def _go_on(self) -> None:
        try:
            while self._waiting:
                await self._send_some()
        finally:
            self._is_busy, self._task = False, None
            for _calls, future in self._waiting:  # the loop ends
                future.cancel()
            self._waiting.clear()

    async def _send_some(self) -> None:
        group = [(calls, future) for calls, future in self._waiting[:_MOST] if not future.done()]
        del self._waiting[:_MOST]
        if not group:  # all of them were cancelled
            return
        try:
            answers = iter(await self._ask([call for calls, _future in group for call in calls]))
        except RedisUnavailable as error:
            for _calls, future in group:
                _settle(future, error)
        except Exception:  # noqa: BLE001  (whose call it was is found out: scripts may be called again)
            for calls, future in group:
                await self._send_one(calls, future)
        else:
            for calls, future in group:
                _settle(future, [next(answers) for _ in calls])

    async def _send_one(self, calls: Sequence[Call], future: asyncio.Future[list[Any]]) -> None:
        try:
            _settle(future, await self._ask(calls))
        except Exception as error:  # noqa: BLE001  (raised where it is awaited)
            _settle(future, error)

    async def _ask(self, calls: Sequence[Call]) -> list[Any]:
        client = get_async_client()
        if len(calls) == 1:
            [(keys, args)] = calls
            return [await self._script.acall(client, keys=keys, args=args)]
        return await self._script.amany(client, calls)


def _settle(future: asyncio.Future[list[Any]], outcome: list[Any] | Exception) -> None:
    if future.done():  # who awaited it was cancelled
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


async def together(script: Script, calls: Sequence[Call]) -> list[Any]:
    """The answers to *calls* of a script, as amany() with the loop's client gives them. Raises what that raises."""
    lines = kept_by_the_loop(_Lines, lambda closing: _Lines())
    if script.name not in lines:
        lines[script.name] = _Line(script)
    return await lines[script.name].send(calls)
