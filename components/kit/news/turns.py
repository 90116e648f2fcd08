"""
Turns: one piece of news can wake all who wait in an event loop, and each wants to look at once.

So many connections are not to be had: a pool that has a limit refuses the rest. So who was woken looks in turn.
"""

from __future__ import annotations

import asyncio

from components.kit.client import kept_by_the_loop

AT_ONCE = 16  # far below the 100 connections of redis-py's pools, and enough to keep one loop busy


class Turns(asyncio.Semaphore):
    """Those of an event loop."""

    @classmethod
    def of_the_loop(cls) -> Turns:
        """async with Turns.of_the_loop(): now look. Raises NoEventLoop."""
        return kept_by_the_loop(cls, lambda closing: cls(AT_ONCE))
