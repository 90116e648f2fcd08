"""
Loop: what every worker does. Tick, sleep until there is a reason not to, and stop as asked.

Whatever may end the sleep (news from Redis, something that is finished, a signal) puts something into one inbox, so
the loop itself is never stuck in a blocking command. The first SIGTERM or SIGINT drains, the second ends at once
(signals.py). While Redis is away the loop says so once, and goes on when it is back (outage.py). At each heartbeat it
touches a file (pulse.py), and sees whether a limit is reached (limits.py).
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from components.exceptions import RedisUnavailable
from components.kit.worker.limits import Limits
from components.kit.worker.outage import Outage, sentence
from components.kit.worker.pulse import Pulse
from components.kit.worker.signals import Killed, Signals

logger = logging.getLogger(__name__)

# What run() returns. 0 and 1 become exit codes, beside 2 for what was wrong before the loop began. STUCK: all is
# handed in or given back, but a thread is stuck; the caller replaces the process.
DRAINED, UNHEALTHY, STUCK = 0, 1, 3

_LONGEST_BEAT = 5.0  # seconds between two heartbeats, however long the lease
_NAP = 0.5  # seconds of one wait: Python sees a signal that came just before a wait when the wait is over

# What the inbox holds besides items for receive(): there is a reason to look; tell what runs.
_LOOK, _TELL = object(), object()


class Loop(ABC):
    """
    The loop of a worker that holds things under a *lease* of so many seconds. Subclasses say what a tick is.

    After an outage of *harmless* seconds, a lease unless it is given, leases may have run out.
    """

    #: What becomes of what the worker holds when it ends while Redis is away.
    abandoned = "What was claimed is taken over when its lease ends."

    def __init__(self, *, lease: float, harmless: float | None = None) -> None:
        #: When it has done enough.
        self.limits = Limits()
        #: A file to be touched at each heartbeat, also while Redis is away.
        self.pulse: Pulse | None = None
        #: Its end is that of the process.
        self.ends_process = False
        #: True while Redis does not answer.
        self.outage = Outage(harmless=lease if harmless is None else harmless)
        #: A signal or an order has asked it to stop for good; not so where it stops to be started anew.
        self.is_dismissed = False
        #: It takes nothing more until it is stopped.
        self.is_quiet = False
        #: A limit is reached: it takes nothing more, and ends when what it holds is done.
        self.is_retiring = False
        #: A second signal has asked it to end at once.
        self.is_killed = False
        #: Why some nodes of a cluster could not be asked in the last tick, although others could.
        self.partly_away: RedisUnavailable | None = None
        #: Set when run() is over.
        self.ended = threading.Event()
        self._beat_every = min(_LONGEST_BEAT, lease / 3)
        self._next_beat = 0.0
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._stopping_since: float | None = None

    @property
    @abstractmethod
    def id(self) -> str:
        """What the log and the control room call it."""

    @abstractmethod
    def tick(self) -> float:
        """Do what there is to do, and return the seconds until there will be more, if nothing happens."""

    def is_done(self) -> bool:
        """Return whether the loop may end, after stop() or by itself."""
        return self.is_stopping or self.is_retiring

    def begin(self) -> None:  # noqa: B027  (not every worker has to)
        """Prepare to work. Raises RedisUnavailable, which ends run()."""

    def report(self) -> None:  # noqa: B027
        """Tell Redis that it works, and heed the answer, at each heartbeat."""

    def describe_running(self) -> Iterable[str]:
        """Return a line for each thing that it is doing."""
        return ()

    def receive(self, item: Any) -> None:  # noqa: B027
        """Take something that another thread has put into the inbox."""

    def close(self) -> int:
        """End what is left, and return the exit code."""
        return DRAINED

    def part(self) -> None:  # noqa: B027
        """
        Say what may be said only when the process ends, since its threads may still run tasks. It is the last thing
        that a process does; run() does so itself where its end is not that of the process.
        """

    @property
    def is_stopping(self) -> bool:
        return self._stopping_since is not None

    @property
    def may_claim(self) -> bool:
        """Whether it may take something."""
        return not (self.is_stopping or self.is_quiet or self.is_retiring)

    # These are safe from signal handlers and other threads.

    def stop(self) -> None:
        """Drain: begin nothing new, finish what runs."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
        self._inbox.put(_LOOK)

    def dismiss(self) -> None:
        """Stop, and do not come back when code has changed or something is stuck."""
        self.is_dismissed = True
        self.stop()

    def quiet(self) -> None:
        """Take nothing more, and go on with what runs until stopped."""
        self.is_quiet = True
        self._inbox.put(_LOOK)

    def put(self, item: Any) -> None:
        """Wake the loop, and let it receive() *item*."""
        self._inbox.put(item)

    def run(self) -> int:
        """Work until stopped; return the exit code. Raises RedisUnavailable only if Redis is away at the start."""
        try:
            with Signals(
                stop=self.dismiss,
                quiet=self.quiet,
                tell=lambda: self._inbox.put(_TELL),
                ends_process=self.ends_process,
            ):
                return self._work()
        finally:
            self.end()
            self.ended.set()

    def end(self) -> None:  # noqa: B027
        """Let go of threads and connections."""

    def _work(self) -> int:
        try:
            self.begin()
            pause = self._try_tick()
            while not self.is_done():
                self._sleep(pause)
                pause = self._try_tick()
            return self._close()
        except Killed:
            logger.warning("Stopping at once.")
            self.is_killed = True
            return self._close()

    def _close(self) -> int:
        try:
            code = self.close()
            if not self.ends_process:
                self.part()
            return code
        except RedisUnavailable as error:
            logger.warning("%s %s", sentence(error), self.abandoned)
            return UNHEALTHY

    def beat(self) -> None:
        """Send the heartbeat, if it is time, and see whether a limit is reached."""
        if time.monotonic() < self._next_beat:
            return
        if self.pulse:
            self.pulse.beat()
        self._heed_limits()
        self.report()
        self._next_beat = time.monotonic() + self._beat_every

    def _heed_limits(self) -> None:
        # A quiet worker is about to be stopped; started anew in its place, another would take tasks again.
        if self.may_claim and (reason := self.limits.reached()):
            logger.info("A limit is reached: %s. Ending when what runs has ended.", reason)
            self.is_retiring = True

    def _try_tick(self) -> float:
        try:
            self.beat()
            pause = min(self.tick(), self._next_beat - time.monotonic())
        except RedisUnavailable as error:
            self._next_beat = 0.0  # it tells whether Redis is back: a tick may have nothing to ask
            return self.outage.goes_on(error)
        if self.partly_away:  # what the other nodes have waits for nothing
            self.outage.goes_on(self.partly_away)
        else:
            self.outage.is_over()
        return pause

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._receive_all(min(_NAP, seconds)) and (seconds := until - time.monotonic()) > 0:
            pass

    def _receive_all(self, seconds: float) -> bool:
        """Wait so long for something in the inbox and take all that is there; return whether there was anything."""
        try:
            self.receive_any(self._inbox.get(timeout=max(0.0, seconds)))
        except Empty:
            return False
        with suppress(Empty):
            while True:
                self.receive_any(self._inbox.get_nowait())
        return True

    def receive_any(self, item: Any) -> None:
        if item is _TELL:
            for line in self.describe_running():
                logger.info("%s", line)
        elif item is not _LOOK:
            self.receive(item)
