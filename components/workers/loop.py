"""
Loop: the life of every worker. It ticks, sleeps until something happens, and stops when asked.

Everything that may end the sleep (news from Redis, finished work, a signal) puts something into one inbox, so the
loop itself is never stuck in a blocking command. The first SIGTERM or SIGINT drains, the second ends at once
(signals.py). While Redis is away the loop logs that once, and goes on when Redis is back (outage.py). At each
heartbeat it touches a file and checks whether a limit is reached (limits.py).
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from components.exceptions import RedisUnavailable
from components.workers.limits import Limits
from components.workers.outage import Outage, sentence
from components.workers.signals import Killed, Signals

logger = logging.getLogger(__name__)

# What run() returns. 0 and 1 become exit codes; 2 stands for an error before the loop began. STUCK means that
# everything is finished or given back, but a thread is stuck; the caller replaces the process.
DRAINED, UNHEALTHY, STUCK = 0, 1, 3

_LONGEST_BEAT = 5.0  # seconds between two heartbeats, even if the lease is long
# Seconds of one wait. Python handles a signal that came just before a wait only when the wait is over.
_NAP = 0.5

# Special items in the inbox: one wakes the loop, the other makes it describe its running work.
_LOOK, _TELL = object(), object()


class Loop(ABC):
    """
    The loop of a worker that holds things under a *lease*, in seconds. Subclasses define a tick.

    After an outage of *harmless* seconds (default: the lease), leases may have run out.
    """

    #: Logged if the worker ends while Redis is away, and so cannot give back what it holds.
    abandoned = "Other workers take over what it had claimed when the lease ends."

    def __init__(self, *, lease: float, harmless: float | None = None) -> None:
        #: When the worker has done enough.
        self.limits = Limits()
        #: A file to touch at each heartbeat, even while Redis is away.
        self.pulse: Pulse | None = None
        #: Whether the process ends when the loop ends.
        self.ends_process = False
        #: Whether Redis does not answer at the moment.
        self.outage = Outage(harmless=lease if harmless is None else harmless)
        #: Whether a signal or an order has stopped it finally; False if it stops in order to be restarted.
        self.is_dismissed = False
        #: Whether it takes nothing more until it is stopped.
        self.is_quiet = False
        #: Whether a limit is reached: it takes nothing more, and ends when its running work is done.
        self.is_retiring = False
        #: Whether a second signal has asked it to end at once.
        self.is_killed = False
        #: Why some nodes of a cluster could not be asked in the last tick, while others could.
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
        """The name of the worker in the log and in the control room."""

    @abstractmethod
    def tick(self) -> float:
        """Do what is due, and return the seconds until more will be due if nothing happens."""

    def is_done(self) -> bool:
        """Return True if the loop may end, after stop() or by itself."""
        return self.is_stopping or self.is_retiring

    def begin(self) -> None:  # noqa: B027  (not every worker has to)
        """Prepare to work. RedisUnavailable, if raised here, ends run()."""

    def report(self) -> None:  # noqa: B027
        """Report to Redis that the worker is alive, and act on the answer, at each heartbeat."""

    def describe_running(self) -> Iterable[str]:
        """Return a line for each running piece of work."""
        return ()

    def receive(self, item: Any) -> None:  # noqa: B027
        """Handle an item that another thread has put into the inbox."""

    def close(self) -> int:
        """End what is left, and return the exit code."""
        return DRAINED

    def part(self) -> None:  # noqa: B027
        """
        Report what may be reported only when the process ends, since its threads may still run tasks.

        This is the last step of a process. If the process outlives the loop, run() calls it.
        """

    @property
    def is_stopping(self) -> bool:
        return self._stopping_since is not None

    @property
    def may_claim(self) -> bool:
        """Whether the worker may take more work."""
        return not (self.is_stopping or self.is_quiet or self.is_retiring)

    # The following methods are safe in signal handlers and other threads.

    def stop(self) -> None:
        """Drain: begin nothing new, and finish the running work."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
        self._inbox.put(_LOOK)

    def dismiss(self) -> None:
        """Stop, and do not restart, even if code has changed or something is stuck."""
        self.is_dismissed = True
        self.stop()

    def quiet(self) -> None:
        """Take nothing more, and go on with the running work until stopped."""
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
        """Close threads and connections."""

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
        """Send the heartbeat if it is due, and check whether a limit is reached."""
        if time.monotonic() < self._next_beat:
            return
        if self.pulse:
            self.pulse.beat()
        # A quiet worker is about to be stopped; a restarted one would take tasks again.
        if self.may_claim and (reason := self.limits.reached()):
            logger.info("A limit is reached: %s. Ending when the running work is done.", reason)
            self.is_retiring = True
        self.report()
        self._next_beat = time.monotonic() + self._beat_every

    def _try_tick(self) -> float:
        try:
            self.beat()
            pause = min(self.tick(), self._next_beat - time.monotonic())
        except RedisUnavailable as error:
            # The heartbeat shows whether Redis is back, whereas a tick may have nothing to ask.
            self._next_beat = 0.0
            return self.outage.goes_on(error)
        if self.partly_away:  # the other nodes may have work that is due now
            self.outage.goes_on(self.partly_away)
        else:
            self.outage.is_over()
        return pause

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._receive_all(min(_NAP, seconds)) and (seconds := until - time.monotonic()) > 0:
            pass

    def _receive_all(self, seconds: float) -> bool:
        """Wait at most *seconds* for the inbox, and take all items in it; return whether there were any."""
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


class Pulse:
    """The heartbeat file at *path*."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._has_failed = False

    def beat(self) -> None:
        """Update the modification time of the file. An error is logged once; the probe will notice the rest."""
        try:
            self.path.touch()
        except OSError as error:
            if not self._has_failed:
                logger.warning("The heartbeat file cannot be updated: %s.", error)
            self._has_failed = True
