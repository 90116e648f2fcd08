"""
Leases: renew what is held for a limited time, and tell the holder when it is lost.

A lease is renewed when a third of its time has passed. One thread of the process watches the clock for all leases,
and one thread for each server talks to Redis. So a server that does not answer delays neither the notice of a loss
nor the renewals at other servers. These threads end after a while without renewals. An event loop uses its own
timers, and a task for each renewal. Leases are held by weak references: a lease that the program no longer uses is
not renewed. A forked child does not renew its parent's leases.

A token in Redis identifies the holder of a lease, or a waiter. Its form is host/process/thread/owner/random, each
part percent-quoted; for a coroutine, the name of its task replaces the thread's. Nothing else is stored about a
holder. A token of another form, such as redis-py's or the caller's own, says nothing about its holder.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import os
import socket
import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from queue import Empty, SimpleQueue
from typing import Literal, Protocol
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary, ref

from redis import Redis

from components.conf import functions
from components.kit.errors import redis_errors
from components.kit.forking import in_child, notice
from components.kit.scripts import MOVING

logger = logging.getLogger(__name__)

_WORDS = 5  # parts of a token
_PART = 3  # a lease is renewed after one third of its time
_LONGEST_RETRY = 1.0  # seconds, after a renewal without an answer; less for short leases
_IDLE = 30.0  # a thread ends after this many seconds without a renewal


def clock() -> float:
    """Return seconds by a clock that, like the server's, goes on while the machine sleeps."""
    return time.clock_gettime(_CLOCK) if _CLOCK is not None else time.monotonic()


_CLOCK: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def server_clock(client: Redis) -> int:
    """
    Return the microsecond since 1970 by the server's clock, which decides when leases end. Raises RedisUnavailable.
    """
    with redis_errors():
        seconds, microseconds = client.time()
    return int(seconds) * 1_000_000 + int(microseconds)


class Lease(Protocol):
    """Something that is held for a limited time."""

    #: The time that the lease lasts, in seconds.
    lease: float
    #: The instant, by clock(), until which it is certainly held, counted from before the last request that extended
    #: it.
    valid_until: float

    @property
    def server(self) -> Hashable:
        """The server that renews it; leases at the same server are renewed one after the other."""

    def renew(self) -> bool:
        """
        Extend the lease, and return False if it is lost. After an exception, it is called again until valid_until.
        """

    def lose(self) -> None:
        """Note that the lease is lost. Called once, in a thread of this module."""


class AsyncLease(Protocol):
    """The same for the running event loop, which calls lose()."""

    lease: float
    valid_until: float

    async def arenew(self) -> bool: ...

    def lose(self) -> None: ...


_WATCHED = object()  # stands for a server: the lease is not renewed
_MISSING = object()


class _Scheduler:
    """The threads of a process: one that watches the clock, and one for each server that talks to Redis."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Each entry: when it is due, a number, the lease, and whether to renew it then.
        self._plan: list[tuple[float, int, ref[Lease], bool]] = []
        # The server of each lease, or _WATCHED.
        self._kept: WeakKeyDictionary[Lease, Hashable] = WeakKeyDictionary()
        self._numbers = count()
        # For each server, the leases that its thread has to renew.
        self._asked: dict[Hashable, SimpleQueue[ref[Lease]]] = {}
        threading.Thread(target=self._keep_time, name="renewals", daemon=True).start()

    def keep(self, lease: Lease, *, renews: bool) -> None:
        server = lease.server if renews else None
        with self._changed:
            self._kept[lease] = server if renews else _WATCHED
            self._add(lease, clock() + lease.lease / _PART if renews else lease.valid_until, renews)

    def drop(self, lease: Lease) -> bool:
        """Return True if the lease was kept until now."""
        with self._changed:
            return self._kept.pop(lease, _MISSING) is not _MISSING

    def _add(self, lease: Lease, due: float, renews: bool) -> None:
        heapq.heappush(self._plan, (due, next(self._numbers), ref(lease), renews))
        self._changed.notify()

    def _keep_time(self) -> None:
        while True:
            with self._changed:
                while not self._plan or self._plan[0][0] > clock():
                    self._changed.wait(self._plan[0][0] - clock() if self._plan else None)
                _due, _number, held, renews = heapq.heappop(self._plan)
                lost = self._look(held, renews)
            if lost is not None:
                self._lose(lost)
            del lost

    def _look(self, held: ref[Lease], renews: bool) -> Lease | None:
        """Return the lease if its time is over; otherwise have it renewed, and plan the next check."""
        lease = held()
        if lease is None or lease not in self._kept:
            return None
        if clock() >= lease.valid_until:
            return lease
        server = self._kept[lease]
        if renews and not self._ask(server, held):
            self._add(lease, clock() + min(_LONGEST_RETRY, lease.lease / 10), True)
        if renews or server is _WATCHED:
            self._add(lease, lease.valid_until, False)
        return None

    def _ask(self, server: Hashable, held: ref[Lease]) -> bool:
        """Have the thread of *server* renew the lease. Return False if no thread could be started."""
        asked = self._asked.get(server)
        if asked is None:
            asked = SimpleQueue()
            try:
                threading.Thread(
                    target=self._renew_all, args=(server, asked), name="renewals", daemon=True
                ).start()
            except RuntimeError as error:
                logger.warning("A lease was not renewed. Trying again: %s", error)
                return False
            self._asked[server] = asked
        asked.put(held)
        return True

    def _renew_all(self, server: Hashable, asked: SimpleQueue[ref[Lease]]) -> None:
        MOVING.set(0)  # so that no lease waits for the slot of another
        while True:
            try:
                lease = asked.get(timeout=_IDLE)()
            except Empty:
                with self._changed:
                    if asked.empty():  # no further request has arrived
                        del self._asked[server]
                        return
                continue
            if lease is not None and lease in self._kept:
                self._renew(lease)
            del lease

    def _renew(self, lease: Lease) -> None:
        try:
            is_held = lease.renew()
        except Exception as error:  # noqa: BLE001  (whatever one lease raises, the others need their renewals)
            logger.warning("A lease was not renewed. Trying again: %s", error)
            due = clock() + min(_LONGEST_RETRY, lease.lease / 10)
        else:
            if not is_held:
                self._lose(lease)
                return
            due = clock() + lease.lease / _PART
        with self._changed:
            if lease in self._kept:
                self._add(lease, due, True)

    def _lose(self, lease: Lease) -> None:
        if self.drop(lease):
            lease.lose()


class _Starter:
    """Starts the threads when they are first needed, and again in each forked process."""

    def __init__(self) -> None:
        self.forks = -1
        self.reset()

    def reset(self) -> None:
        self.forks += 1
        self._guard = threading.Lock()
        self.present: _Scheduler | None = None

    def get(self) -> _Scheduler:
        notice()
        with self._guard:
            if self.present is None:
                self.present = _Scheduler()
            return self.present


_starter = _Starter()
in_child(_starter.reset)


def forks() -> int:
    """Return how many forks lie before this process. What is held belongs to one process, and not to its children."""
    notice()
    return _starter.forks


def keep(lease: Lease) -> None:
    """Renew *lease* until drop() is called, it is lost, or the program no longer uses it."""
    _starter.get().keep(lease, renews=True)


def watch(lease: Lease) -> None:
    """Call lose() of *lease* when its time is over, without renewing it."""
    _starter.get().keep(lease, renews=False)


def drop(lease: Lease) -> None:
    """Stop renewing or watching *lease*. A renewal that is under way will not call lose() any more."""
    if scheduler := _starter.present:
        scheduler.drop(lease)


class _Timer:
    """The timers and tasks of an event loop for one lease."""

    def __init__(self, lease: AsyncLease) -> None:
        self._lease = ref(lease)
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.call_at(self._at(lease.valid_until), self._look)
        self._next: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def _at(self, instant: float) -> float:
        """Convert an instant of clock() to the clock of the loop."""
        return self._loop.time() + instant - clock()

    def renew_in(self, seconds: float) -> None:
        self._next = self._loop.call_later(seconds, self._begin)

    def cancel(self) -> None:
        for planned in (self._end, self._next, self._task):
            if planned is not None:
                planned.cancel()

    def _look(self) -> None:
        lease = self._lease()
        if lease is None:
            self.cancel()
        elif clock() >= lease.valid_until:
            self._lose(lease)
        else:
            self._end = self._loop.call_at(self._at(lease.valid_until), self._look)

    def _begin(self) -> None:
        if self._lease() is not None:  # else a loop that ends now would be left with a task that never begins
            self._task = self._loop.create_task(self._renew())

    async def _renew(self) -> None:
        lease = self._lease()
        if lease is None:
            return
        try:
            is_held = await lease.arenew()
        except asyncio.CancelledError:
            # All tasks of the loop were cancelled, but the lease is still held.
            if _timers.get(lease) is self:
                self.renew_in(min(_LONGEST_RETRY, lease.lease / 10))
            raise
        except Exception as error:  # noqa: BLE001  (a cluster's errors have no class in common with others)
            logger.warning("A lease was not renewed. Trying again: %s", error)
            self.renew_in(min(_LONGEST_RETRY, lease.lease / 10))
            return
        if is_held:
            self.renew_in(lease.lease / _PART)
        else:
            self._task = None  # keeps the task from cancelling itself
            self._lose(lease)

    def _lose(self, lease: AsyncLease) -> None:
        if _timers.pop(lease, None) is not None:
            self.cancel()
            lease.lose()


_timers: WeakKeyDictionary[AsyncLease, _Timer] = WeakKeyDictionary()


def akeep(lease: AsyncLease) -> None:
    """Do what keep() does, on the running loop."""
    timer = _timers[lease] = _Timer(lease)
    timer.renew_in(lease.lease / _PART)


def awatch(lease: AsyncLease) -> None:
    """Do what watch() does, on the running loop."""
    if lease not in _timers:
        _timers[lease] = _Timer(lease)


def adrop(lease: AsyncLease) -> None:
    """Do what drop() does, on the running loop."""
    if (timer := _timers.pop(lease, None)) is not None:
        timer.cancel()


def new_token(owner: str | None = None, *, is_coroutine: bool = False) -> bytes:
    """Return a new unique token. *owner* is for people to read."""
    task = asyncio.current_task() if is_coroutine else None
    where = task.get_name() if task else threading.current_thread().name
    return f"{_stem(os.getpid(), where, owner or '')}{os.urandom(8).hex()}".encode()


@lru_cache(maxsize=1_024)
def _stem(process: int, where: str, owner: str) -> str:
    parts = (socket.gethostname(), str(process), where, owner)
    return "".join(f"{quote(part[:100], safe=':@ ')}/" for part in parts)


@dataclass(frozen=True)
class Holder:
    """The parts of a token that describe a holder or waiter; "" and None stand for unknown parts."""

    host: str = ""
    process: int | None = None
    thread: str = ""
    owner: str = ""

    @classmethod
    def of(cls, token: str) -> Holder:
        """Return the holder with this token."""
        parts = [unquote(part) for part in token.split("/")]
        if len(parts) != _WORDS or not parts[1].isdecimal():
            return cls()
        return cls(parts[0], int(parts[1]), parts[2], parts[3])


def tell_waited(kind: Literal["lock", "semaphore"], name: str, seconds: float, *, is_granted: bool) -> None:
    """
    Call the functions with what was waited for, for how long, and whether it was granted.

    It is called where the wait was: in the same thread or coroutine. Errors are logged and not raised, because the
    caller may hold the lock by now.
    """
    try:
        for function in functions("on_wait"):
            function(kind, name, seconds, is_granted)
    except Exception:
        logger.exception('A function of COMPONENTS["ON_WAIT"] failed after a wait for the %s %r.', kind, name)
