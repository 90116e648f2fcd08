"""
together(): calls of a script that come while others are under way travel in one pipeline after them.

A view of many users sends for each of them, and one message can wake a thousand coroutines: each by itself would take
a connection of the pool, which has a hundred, and most of its time would be the client's work for a round trip. So in
an event loop a call goes at once if no other of its script is under way; those that come meanwhile go together.

In a cluster each node has a line of its own, so that nobody waits for, or fails with, a node that they do not need.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from typing import Any

from components.kit.client import get_async_client, kept_by_the_loop
from components.kit.errors import translated
from components.kit.scripts import Call, Script, all_well, by_node

_MOST = 64  # calls in a pipeline: so that none waits long for the answers of the others


class _Lines(dict[tuple[str, str], "_Line"]):
    """Those of an event loop, by script and node."""


class _Line:
    """The calls of one script to one node that wait for those that are under way."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._waiting: list[tuple[Sequence[Call], asyncio.Future[list[Any]]]] = []
        self._is_busy = False
        self._task: asyncio.Task[None] | None = None

    async def send(self, calls: Sequence[Call]) -> list[Any]:
        """What becomes of each of *calls*: its answer, or an exception."""
        if self._is_busy:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((calls, future))
            outcomes: list[Any] = await future
            return outcomes
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
        outcomes = iter(await self._ask([call for calls, _future in group for call in calls]))
        for calls, future in group:
            own = [next(outcomes) for _ in calls]
            if not future.done():  # who awaited it was cancelled
                future.set_result(own)

    async def _ask(self, calls: Sequence[Call]) -> list[Any]:
        if len(calls) > 1:
            return await self._script.aoutcomes(get_async_client(), calls)
        [(keys, args)] = calls
        try:
            return [await self._script.acall(get_async_client(), keys=keys, args=args)]
        except Exception as error:  # noqa: BLE001  (raised where it is asked for)
            return [error]


async def together(script: Script, calls: Sequence[Call]) -> list[Any]:
    """The answers to *calls* of a script, as amany() with the loop's client gives them. Raises what that raises."""
    return all_well(await outcomes_together(script, calls))


async def outcomes_together(script: Script, calls: Sequence[Call]) -> list[Any]:
    """The same, but of each call what became of it, as aoutcomes() tells."""
    lines = kept_by_the_loop(_Lines, lambda closing: _Lines())
    try:
        groups = await by_node(get_async_client(), calls)
    except Exception as error:  # noqa: BLE001  (that of each call)
        return [translated(error)] * len(calls)
    sent = []
    for node, numbers in groups:
        name = script.name, getattr(node, "name", "")
        if name not in lines:
            lines[name] = _Line(script)
        sent.append(lines[name].send([calls[each] for each in numbers]))
    parts = [await sent[0]] if len(sent) == 1 else await asyncio.gather(*sent)
    found: list[Any] = [None] * len(calls)
    for (_node, numbers), part in zip(groups, parts, strict=True):
        for number, outcome in zip(numbers, part, strict=True):
            found[number] = outcome
    return found
