"""
Flights: the rows that somebody in this process is about to load, so that others here wait for that without asking
Redis.

Ten thousand readers that miss a row would ask Redis again and again whether it is loaded. So the first takes off with
it; the rest of its process, or of its event loop, wait until it lands, and then look. They take the row that Redis
has then, never the one that the first reader found, since it may have changed. If the load fails, they fail with it:
a database that does not answer is asked once for all of them.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from components.kit.client import AnyRedis, kept_by_the_loop
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
        """Wait until it has landed, or for that many seconds. Return whether it has. Raises the error that it met."""
        self._landed.wait(seconds)
        return self._has_landed(self._landed.is_set())

    def _has_landed(self, has_landed: bool) -> bool:
        if self.error:
            raise self.error.with_traceback(None)  # else it would grow with each that raises it
        return has_landed


class _LoopFlight(Flight):
    """One load of a row, for coroutines of one loop."""

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
    """The flights that are under way, by member."""

    make = Flight

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all flights: in a forked process nobody is under way."""
        self._lock = threading.Lock()
        self._under_way: dict[str, Flight] = {}

    def take_off(self, members: Iterable[str]) -> set[str]:
        """Take off with those *members* that nobody else is loading, and return them. The caller must land these."""
        with self._lock:
            mine = {each: self.make() for each in members if each not in self._under_way}
            self._under_way |= mine
        return set(mine)

    def find(self, member: str) -> Flight | None:
        return self._under_way.get(member)

    def land(self, members: Iterable[str], errors: Mapping[str, Exception] = _NONE) -> None:
        """End these flights, which are done or have failed with *errors*: those that wait for them go on."""
        with self._lock:
            landed = {each: self._under_way.pop(each) for each in members if each in self._under_way}
        for each, flight in landed.items():
            flight.error = errors.get(each)
            flight.land()


class _LoopFlights(Flights):
    make = _LoopFlight


_of_threads = Flights()
os.register_at_fork(after_in_child=_of_threads.reset)


def flights_of(client: AnyRedis) -> Flights:
    """Return the flights of the process for a synchronous client, else those of the running loop."""
    if isinstance(client, ASYNCHRONOUS):
        return kept_by_the_loop(_LoopFlights, lambda closing: _LoopFlights())
    return _of_threads


async def nap(client: AnyRedis, seconds: float) -> None:
    """Do nothing for that many seconds."""
    if isinstance(client, ASYNCHRONOUS):
        await asyncio.sleep(seconds)
    else:
        time.sleep(seconds)
