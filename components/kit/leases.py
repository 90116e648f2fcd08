"""
Leases: renew what is held for a limited time, and tell the holder when it is lost.

A lease is renewed when a third of its time has passed. One thread of the process watches the clock for all leases,
and one thread for each server talks to Redis. So a server that does not answer delays neither the notice of a loss
nor the renewals at other servers. These threads end after a while without renewals. The lease of a coroutine is
renewed by a task of its event loop. Leases are held by weak references: one that the program no longer uses is not
renewed. A forked child does not renew its parent's leases.

A token in Redis identifies the holder of a lease, or a waiter. Its form is host/process/thread/owner/random, each
part percent-quoted; for a coroutine, the name of its task replaces the thread's. Nothing else is stored about a
holder. A token of another form, such as redis-py's or the caller's own, says nothing about its holder.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import os
import socket
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any, Literal
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary, ref

from redis import Redis

from components.conf import functions
from components.kit.errors import redis_errors
from components.kit.forking import in_child, notice
from components.kit.scripts import MOVING
from components.kit.sync_async import at_once
from components.kit.validation import check_int

logger = logging.getLogger(__name__)

_WORDS = 5  # parts of a token
_PART = 3  # a lease is renewed after one third of its time
_LONGEST_RETRY = 1.0  # seconds, after a renewal without an answer; less for short leases
_IDLE = 30.0  # a thread ends after this many seconds without a renewal
BEAT = 0.4  #: seconds between two heartbeats of a waiter
ALIVE = 800_000  # microseconds for which a waiter keeps its place after a heartbeat: two beats


#: Returns seconds by a clock that, like the server's, goes on while the machine sleeps.
clock: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)


def server_clock(client: Redis) -> int:
    """
    Return the microsecond since 1970 by the server's clock, which decides when leases end. Raises RedisUnavailable.
    """
    with redis_errors():
        seconds, microseconds = client.time()
    return int(seconds) * 1_000_000 + int(microseconds)


class Lease:
    """Something that is held for a limited time."""

    #: True if its holder gave it back.
    is_released = False

    def __init__(self, lease: float, valid_until: float, loop: AbstractEventLoop | None) -> None:
        #: The time that it lasts, in seconds.
        self.lease = lease
        #: The instant, by clock(), until which it is surely held, counted from before the last request that extended
        #: it.
        self.valid_until = valid_until
        #: The event loop of the coroutine that holds it; None if a thread does.
        self.loop = loop
        self.began_at = clock()
        self._forks = forks()
        self._lost: Any = None

    @property
    def _is_of_this_process(self) -> bool:
        """Return whether this process holds it, and not one that it was forked from."""
        return self._forks == forks()

    @property
    def remaining(self) -> float:
        """Return the seconds for which it is surely still held; 0 in a child that was forked meanwhile."""
        return max(0.0, self.valid_until - clock()) if self._is_of_this_process else 0.0

    @property
    def lost(self) -> Any:
        """An event that is set when it is lost: threading's, or asyncio's if a coroutine holds it."""
        if self._lost is None:
            self._lost = asyncio.Event() if self.loop else threading.Event()
        if not self.is_released and not self.remaining:
            self._lost.set()
        elif not self.is_released and self.valid_until < math.inf:
            self._watch()
        return self._lost

    @property
    def server(self) -> Hashable:
        """The server that renews it. Threads renew leases at the same server one after the other."""
        raise NotImplementedError

    async def _renew(self) -> bool:
        """
        Extend it, and return False if it is lost. After an exception, it is called again until valid_until. Without a
        loop, it may not wait.
        """
        raise NotImplementedError

    def keep(self) -> None:
        """Renew it until drop() is called, it is lost, or the program no longer uses it."""
        _scheduler.keep(self, renews=True)

    def _watch(self) -> None:
        """Call lose() when its time is over, without renewing it, unless it is renewed already."""
        _scheduler.keep(self, renews=False)

    def drop(self) -> None:
        """Stop renewing or watching it. A renewal that is under way will not call lose() any more."""
        if _scheduler.is_running:
            _scheduler.drop(self)

    def lose(self) -> None:
        """Record that it is not held any more, according to Redis or the clock."""
        self.valid_until = min(self.valid_until, clock())
        if self._lost is not None:
            self._lost.set()


class _Scheduler:
    """
    The threads of a process: one that watches the clock, and one for each server that talks to Redis. They start when
    they are first needed, and again in each forked process.

    Whatever concerns the lease of a coroutine is done in its event loop: it is renewed, and its loss told, by nothing
    else. While the loop hangs, such a lease runs out.
    """

    def __init__(self) -> None:
        self.forks = -1
        self.reset()

    def reset(self) -> None:
        self.forks += 1
        self._changed = threading.Condition()
        self.is_running = False
        # Each entry: when it is due, a number, the lease, its loop, and whether to renew it then.
        self._plan: list[tuple[float, int, ref[Lease], AbstractEventLoop | None, bool]] = []
        # Whether each lease is renewed, or only watched.
        self._kept: WeakKeyDictionary[Lease, bool] = WeakKeyDictionary()
        self._numbers = count()
        # For each server, the leases that its thread has to renew.
        self._asked: dict[Hashable, SimpleQueue[ref[Lease]]] = {}
        # The running renewals of coroutines' leases.
        self._tasks: WeakKeyDictionary[Lease, asyncio.Task[None]] = WeakKeyDictionary()

    def keep(self, lease: Lease, *, renews: bool) -> None:
        notice()
        with self._changed:
            if not self.is_running:
                threading.Thread(target=self._keep_time, name="renewals", daemon=True).start()
                self.is_running = True
            if renews or lease not in self._kept:
                self._kept[lease] = renews
                self._add(lease, clock() + lease.lease / _PART if renews else lease.valid_until, renews)

    def drop(self, lease: Lease) -> bool:
        """Return True if the lease was kept until now."""
        with self._changed:
            if task := self._tasks.pop(lease, None):
                task.cancel()
            return self._kept.pop(lease, None) is not None

    def _add(self, lease: Lease, due: float, renews: bool) -> None:
        entry = (due, next(self._numbers), ref(lease), lease.loop, renews)
        heapq.heappush(self._plan, entry)
        if self._plan[0] is entry:
            self._changed.notify()

    def _keep_time(self) -> None:
        while True:
            with self._changed:
                while not self._plan or self._plan[0][0] > clock():
                    self._changed.wait(self._plan[0][0] - clock() if self._plan else None)
                _due, _number, held, loop, renews = heapq.heappop(self._plan)
            if loop is None:
                self._look(held, renews)
            else:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._look, held, renews)

    def _look(self, held: ref[Lease], renews: bool) -> None:
        """Tell that the time of the lease is over; otherwise have it renewed, and plan the next look."""
        lease = held()
        if lease is None or lease not in self._kept:
            return
        if clock() >= lease.valid_until:
            self._lose(lease)
            return
        is_asked = renews and self._ask(lease)
        with self._changed:
            if renews and not is_asked:
                self._add(lease, clock() + _retry(lease), True)
            if renews or not self._kept.get(lease, True):
                self._add(lease, lease.valid_until, False)

    def _ask(self, lease: Lease) -> bool:
        """Have the lease renewed, by a task of its loop or a thread. Return False if none could be started."""
        if lease.loop:
            self._tasks[lease] = lease.loop.create_task(self._renew(lease))
            return True
        with self._changed:
            asked = self._asked.get(server := lease.server)
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
            asked.put(ref(lease))
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
                at_once(self._renew(lease))
            del lease

    async def _renew(self, lease: Lease) -> None:
        pause = _retry(lease)
        try:
            if not await lease._renew():
                self._tasks.pop(lease, None)  # keeps the task from cancelling itself
                self._lose(lease)
            pause = lease.lease / _PART
        except Exception as error:  # noqa: BLE001  (whatever one lease raises, the others need their renewals)
            logger.warning("A lease was not renewed. Trying again: %s", error)
        finally:  # also if all tasks of the loop were cancelled: the lease is still held
            with self._changed:
                if lease in self._kept:
                    self._add(lease, clock() + pause, True)

    def _lose(self, lease: Lease) -> None:
        if self.drop(lease):
            lease.lose()


def _retry(lease: Lease) -> float:
    """Return the seconds after which a renewal that failed is tried again."""
    return min(_LONGEST_RETRY, lease.lease / 10)


_scheduler = _Scheduler()
in_child(_scheduler.reset)


def forks() -> int:
    """Return how many forks lie before this process. What is held belongs to one process, and not to its children."""
    notice()
    return _scheduler.forks


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


def waiters_in(client: Redis, keys: Any, limit: int) -> list[tuple[bytes, float]]:
    """
    Return the first waiters in a queue, in order, with the seconds that each has waited; of *limit* places, those of
    the dead are left out. Raises InvalidValue, RedisUnavailable.
    """
    check_int("limit", limit, 1)
    now = server_clock(client)
    with redis_errors(), client.pipeline(transaction=False) as pipe:
        pipe.zrangebyscore(keys.beats, f"({now}", "+inf")
        pipe.zrange(keys.queue, 0, limit - 1, withscores=True)
        alive, queue = pipe.execute()
    return [(waiter, max(0.0, (now - arrived_at) / 1e6)) for waiter, arrived_at in queue if waiter in alive]


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
