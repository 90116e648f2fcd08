"""
together(): send calls of a script in one pipeline if they come while others are under way.

A view with many users sends many calls, and one message can wake a thousand coroutines. Sent singly, each call would
take a connection of the pool, which has a hundred, and most of the time would go into the client's round trips. So in
an event loop a call is sent at once if no other call of its script is under way; calls that come meanwhile are sent
together. In a cluster each node has its own line, so a call neither waits for, nor fails with, a node that it does
not need.
"""

import asyncio
import contextvars
from collections.abc import Sequence
from typing import Any

from components.kit.aclient import kept_by_the_loop
from components.kit.client import AnyRedis, get_async_client
from components.kit.scripts import ASYNCHRONOUS, Call, Script, all_well, at_nodes

# The largest number of calls in a pipeline, so that no call waits long for the answers of the others.
_MOST = 64


class _Lines(dict[tuple[str, str], "_Line"]):
    """The lines of an event loop, by script and node."""


class _Line:
    """Calls of one script to one node, which wait for the calls under way."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._waiting: list[tuple[Sequence[Call], asyncio.Future[list[Any]]]] = []
        self._is_busy = False
        self._task: asyncio.Task[None] | None = None

    async def send(self, calls: Sequence[Call]) -> list[Any]:
        """Return the outcome of each of *calls*: its answer, or an exception."""
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
                # A fresh context, so that the task does not inherit the context variables of the first caller.
                context = contextvars.Context()
                self._task = asyncio.get_running_loop().create_task(self._go_on(), context=context)
            else:
                self._is_busy = False

    async def _go_on(self) -> None:
        try:
            while self._waiting:
                group = [(calls, future) for calls, future in self._waiting[:_MOST] if not future.done()]
                del self._waiting[:_MOST]
                outcomes = iter(await self._ask([call for calls, _future in group for call in calls]))
                for calls, future in group:
                    own = [next(outcomes) for _ in calls]
                    if not future.done():  # otherwise its caller was cancelled
                        future.set_result(own)
        finally:
            self._is_busy, self._task = False, None
            for _calls, future in self._waiting:  # the loop is ending
                future.cancel()
            self._waiting.clear()

    async def _ask(self, calls: Sequence[Call]) -> list[Any]:
        client = get_async_client()
        if len(calls) == 1:
            return [await self._script.outcome(client, calls[0], 0.0)]
        return await self._script.aoutcomes_now(client, calls)


async def together(script: Script, calls: Sequence[Call]) -> list[Any]:
    """Return the answers to *calls* of a script, as amany() does with the loop's client. Raises the same errors."""
    return all_well(await outcomes_together(script, calls))


async def outcomes_together(script: Script, calls: Sequence[Call]) -> list[Any]:
    """Return the outcome of each call, as aoutcomes() does."""
    lines, client = kept_by_the_loop(_Lines, lambda closing: _Lines()), get_async_client()

    async def ask(node: Any, some: Sequence[Call]) -> list[Any]:
        name = script.name, getattr(node, "name", "")
        if name not in lines:
            lines[name] = _Line(script)
        return await lines[name].send(some)

    found = await at_nodes(client, calls, ask)
    await script.follow(client, calls, found)  # by itself, so that no other call waits for it
    return found


async def send(client: AnyRedis, script: Script, calls: Sequence[Call]) -> list[Any]:
    """Return the answers to *calls*, with either client, in one round trip to each node; in none for no calls."""
    if calls and isinstance(client, ASYNCHRONOUS):
        return await together(script, calls)
    if len(calls) == 1:
        [(keys, args)] = calls
        return [await script.acall(client, keys=keys, args=args)]
    return await script.amany(client, calls) if calls else []
