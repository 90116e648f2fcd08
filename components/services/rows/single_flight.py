"""
Flights: the rows that a reader of this process is loading, so that its other readers wait without asking Redis.

Ten thousand readers that miss a row would ask Redis again and again whether it is loaded. Instead, the first reader
takes off with the row. The other readers of its process, or of its event loop, wait until it lands, and then read the
row from Redis. They do not take the row that the first reader loaded, because it may have changed. If the load fails,
they fail with the same error, so a database that does not answer is asked only once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from typing import TypeAlias

from components.kit.aclient import kept_by_the_loop
from components.kit.client import AnyRedis
from components.kit.forking import in_child
from components.kit.scripts import ASYNCHRONOUS

#: One load of a row. When it has landed, its result is the error of the load, or None.
Flight: TypeAlias = "futures.Future[Exception | None] | asyncio.Future[Exception | None]"


class Flights:
    """The current flights, by member."""

    def __init__(self, make: Callable[[], Flight] = futures.Future) -> None:
        self._make = make
        self.reset()

    def reset(self) -> None:
        """Forget all flights, because a forked process has none."""
        self._lock = threading.Lock()
        self._under_way: dict[str, Flight] = {}

    def take_off(self, members: Iterable[str]) -> set[str]:
        """Take off with the *members* that nobody else is loading. Return them. The caller must land them."""
        with self._lock:
            mine = {each: self._make() for each in members if each not in self._under_way}
            self._under_way |= mine
        return set(mine)

    def find(self, member: str) -> Flight | None:
        return self._under_way.get(member)

    def land(self, members: Iterable[str], errors: Mapping[str, Exception]) -> None:
        """End these flights, which are done or have failed with *errors*, and wake their waiting readers."""
        with self._lock:
            landed = {each: self._under_way.pop(each) for each in members if each in self._under_way}
        for each, flight in landed.items():
            flight.set_result(errors.get(each))


async def has_landed(flight: Flight, seconds: float) -> bool:
    """Wait for up to *seconds* until the flight has landed. Return whether it has. Raises the error of the load."""
    if isinstance(flight, asyncio.Future):
        await asyncio.wait([flight], timeout=seconds)
    else:
        futures.wait([flight], seconds)
    if flight.done() and (error := flight.result()):
        # Otherwise the traceback would grow with each reader that raises it.
        raise error.with_traceback(None)
    return flight.done()


_of_threads = Flights()
in_child(_of_threads.reset)


def flights_of(client: AnyRedis) -> Flights:
    """Return the flights of the process for a synchronous client, else those of the running loop."""
    if isinstance(client, ASYNCHRONOUS):
        return kept_by_the_loop(Flights, lambda closing: Flights(asyncio.Future))
    return _of_threads
