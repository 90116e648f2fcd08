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
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from components.kit.client import AnyRedis, kept_by_the_loop
from components.kit.forking import in_child
from components.kit.scripts import ASYNCHRONOUS

_NONE: Mapping[str, Exception] = MappingProxyType({})


class Flight:
    """One load of a row, for threads that wait for it."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self._landed = threading.Event()

    def land(self) -> None:
        self._landed.set()

    async def wait(self, seconds: float) -> bool:
        """
        Wait for up to *seconds* until the flight has landed. Return whether it has. Raises the error of the load.
        """
        self._landed.wait(seconds)
        return self._has_landed(self._landed.is_set())

    def _has_landed(self, has_landed: bool) -> bool:
        if self.error:
            # Otherwise the traceback would grow with each reader that raises it.
            raise self.error.with_traceback(None)
        return has_landed


class _LoopFlight(Flight):
    def __init__(self) -> None:
        self.error = None
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def land(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, seconds: float) -> bool:
        await asyncio.wait([self._future], timeout=seconds)
        return self._has_landed(self._future.done())


class Flights:
    """The current flights, by member."""

    make = Flight

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all flights, because a forked process has none."""
        self._lock = threading.Lock()
        self._under_way: dict[str, Flight] = {}

    def take_off(self, members: Iterable[str]) -> set[str]:
        """Take off with the *members* that nobody else is loading. Return them. The caller must land them."""
        with self._lock:
            mine = {each: self.make() for each in members if each not in self._under_way}
            self._under_way |= mine
        return set(mine)

    def find(self, member: str) -> Flight | None:
        return self._under_way.get(member)

    def land(self, members: Iterable[str], errors: Mapping[str, Exception] = _NONE) -> None:
        """End these flights, which are done or have failed with *errors*, and wake their waiting readers."""
        with self._lock:
            landed = {each: self._under_way.pop(each) for each in members if each in self._under_way}
        for each, flight in landed.items():
            flight.error = errors.get(each)
            flight.land()


class _LoopFlights(Flights):
    make = _LoopFlight


_of_threads = Flights()
in_child(_of_threads.reset)


def flights_of(client: AnyRedis) -> Flights:
    """Return the flights of the process for a synchronous client, else those of the running loop."""
    if isinstance(client, ASYNCHRONOUS):
        return kept_by_the_loop(_LoopFlights, lambda closing: _LoopFlights())
    return _of_threads


async def nap(client: AnyRedis, seconds: float) -> None:
    """Sleep for this many seconds."""
    if isinstance(client, ASYNCHRONOUS):
        await asyncio.sleep(seconds)
    else:
        time.sleep(seconds)
