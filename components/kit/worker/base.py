"""
The loop of every worker: tick, sleep until there is a reason not to, and stop as asked.

Whatever may end the sleep (a token in Redis, a finished task, a signal) puts something into one inbox; a
thread that waits on Redis does so only for tokens, so the loop itself is never stuck in a blocking
command. The first SIGTERM or SIGINT drains, the second ends at once (signals.py). While Redis is away the
loop says so once and goes on when it is back; what it wanted to say to Redis is kept.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from components.exceptions import RedisUnavailable
from components.kit.worker.limits import Limits
from components.kit.worker.listener import Listener
from components.kit.worker.outage import Outage, sentence
from components.kit.worker.pulse import Pulse
from components.kit.worker.signals import Killed, Signals
from components.services.queues import Claimed, Consumer

logger = logging.getLogger(__name__)

# What run() returns. 0 and 1 become exit codes, beside 2 for what was wrong before the loop began. STUCK: all is
# handed in or given back, but a thread is stuck in a task; whoever ran the worker replaces the process.
DRAINED, UNHEALTHY, STUCK = 0, 1, 3

ALL = "*"  # every queue there is, also those to come

_LONGEST_BEAT = 5.0  # seconds between two heartbeats, however long the lease
_NAP = 0.5  # seconds of one wait: Python sees a signal that came just before a wait when the wait is over

# What the inbox holds besides items for receive(): a token was taken from Redis; there is a reason to look; Redis
# did not answer the listener; tell what runs.
_TOKEN, _LOOK, _AWAY, _TELL = object(), object(), object(), object()


class Worker(ABC):
    """One worker of the queues of a backend alias; subclasses say what a tick is."""

    def __init__(self, consumer: Consumer, *, lease: float) -> None:
        self.consumer = consumer
        self.queues: Sequence[str] = ()
        #: When it has done enough.
        self.limits = Limits()
        #: A file to be touched at each heartbeat, also while Redis is away.
        self.pulse: Pulse | None = None
        #: Its end is that of the process.
        self.ends_process = False
        #: True while Redis does not answer.
        self.outage = Outage(harmless=lease / 3)
        self._beat_every = min(_LONGEST_BEAT, lease / 3)
        self._next_beat = 0.0
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._listener = Listener(self._wait_for_token, self._wake)
        self._stopping_since: float | None = None
        self._lost: Counter[str] = Counter()
        #: A signal or an order has asked it to stop for good; not so where it stops to be started anew.
        self.is_dismissed = False
        #: It takes no more tasks until it is stopped.
        self.is_quiet = False
        #: A limit is reached: it takes no more tasks, and ends when those that run have.
        self.is_retiring = False
        #: A token was taken from Redis since the last step: there is work, for this worker or for another.
        self.has_token = False
        #: Set when run() is over.
        self.ended = threading.Event()

    @abstractmethod
    def tick(self) -> float:
        """Do what there is to do; the seconds until there will be more, if nothing happens."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the loop may end, after stop() or by itself."""

    def running(self) -> Sequence[Claimed]:
        """The claims to renew."""
        return ()

    def cancel(self, task_ids: Sequence[str]) -> None:  # noqa: B027  (as above)
        """Let running tasks end that somebody has cancelled."""

    def describe_running(self) -> Iterable[str]:
        """A line for each running task: its id, its name if that is known, and for how long it has run."""
        return ()

    def serves(self) -> Sequence[str]:
        """The queues, as the control room shows them."""
        return (ALL,)

    def receive(self, item: Any) -> None:  # noqa: B027  (most workers have no other threads)
        """Take something that another thread has put into the inbox."""

    def close(self) -> int:
        """End what is left; the exit code."""
        self.consumer.leave()
        return DRAINED

    def part(self) -> None:  # noqa: B027  (most workers leave nothing behind)
        """
        Say what may be said only when the process ends, since its threads may still run tasks. It is the last thing
        that a process does; run() does so itself where its end is not that of the process.
        """

    @property
    def is_stopping(self) -> bool:
        return self._stopping_since is not None

    @property
    def may_claim(self) -> bool:
        """Whether it may take tasks."""
        return not (self.is_stopping or self.is_quiet or self.is_retiring)

    # These three are safe from signal handlers and other threads.

    def stop(self) -> None:
        """Drain: begin nothing new, finish what runs."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
        self._inbox.put(_LOOK)

    def dismiss(self) -> None:
        """Stop, and do not come back when code has changed or a task is stuck."""
        self.is_dismissed = True
        self.stop()

    def quiet(self) -> None:
        """Take no more tasks, and go on with those that run until stopped."""
        self.is_quiet = True
        self._inbox.put(_LOOK)

    def obey(self, order: str) -> None:
        """Do what the answer to a heartbeat asks for: "quiet", "stop", or "" for nothing."""
        if order == "stop" and not self.is_dismissed:
            logger.info("Asked to stop.")
            self.dismiss()
        elif order == "quiet" and not self.is_quiet:
            self.quiet()

    def run(self) -> int:
        """
        Work until stopped; the exit code. Raises RedisUnavailable only if Redis does not answer at the start.
        """
        try:
            with Signals(
                stop=self.dismiss,
                quiet=self.quiet,
                tell=lambda: self._inbox.put(_TELL),
                ends_process=self.ends_process,
            ):
                return self._work()
        finally:
            self._listener.end()
            self.ended.set()

    def _work(self) -> int:
        try:
            self.beat()
            self._listener.start()
            pause = self._try_tick()
            while not self.is_done():
                self._sleep(pause)
                pause = self._try_tick()
            return self._close()
        except Killed:
            logger.warning("Stopping at once.")
            return self._close()

    def _close(self) -> int:
        try:
            code = self.close()
            if not self.ends_process:
                self.part()
            return code
        except RedisUnavailable as error:
            logger.warning("%s What was claimed is taken over when its lease ends.", sentence(error))
            return UNHEALTHY

    def beat(self) -> None:
        """Send the heartbeat, if it is time or there is news in it, and see whether a limit is reached."""
        if self.is_quiet and not self.consumer.is_quiet:
            logger.info("Quiet: taking no more tasks until stopped.")
            self.consumer.is_quiet = True
            self._next_beat = 0.0
        if time.monotonic() < self._next_beat:
            return
        if self.pulse:
            self.pulse.beat()
        self._heed_limits()
        heartbeat = self.consumer.renew(self.serves(), self.running())
        self._see_lost(heartbeat.lost)
        self.cancel(heartbeat.cancelled)
        self.obey(heartbeat.order)
        self._next_beat = time.monotonic() + self._beat_every

    def _heed_limits(self) -> None:
        # A quiet worker is about to be stopped; started anew in its place, another would take tasks again.
        if self.may_claim and (reason := self.limits.reached()):
            logger.info("A limit is reached: %s. Ending when running tasks have.", reason)
            self.is_retiring = True

    def _see_lost(self, task_ids: Sequence[str]) -> None:
        """Say what has been lost since the last heartbeat: a task that still runs is reported at each."""
        lost = Counter(task_ids)
        for task_id in lost - self._lost:
            logger.warning(
                "The lease of task %s ended before it was renewed; another worker has it.", task_id
            )
        self._lost = lost

    def _try_tick(self) -> float:
        try:
            self.beat()
            pause = min(self.tick(), self._next_beat - time.monotonic())
        except RedisUnavailable as error:
            self._next_beat = 0.0  # it tells whether Redis is back: a tick may have nothing to ask
            return self.outage.goes_on(error)
        self.outage.is_over()
        return pause

    def _sleep(self, seconds: float) -> None:
        if not self.outage:
            self._listener.listen(self.wants_wake())
        until = time.monotonic() + seconds
        while not self._receive_all(min(_NAP, seconds)) and (seconds := until - time.monotonic()) > 0:
            pass

    def _receive_all(self, seconds: float) -> bool:
        """Wait so long for something in the inbox and take all that is there; whether there was anything."""
        try:
            self.receive_any(self._inbox.get(timeout=max(0.0, seconds)))
        except Empty:
            return False
        with suppress(Empty):
            while True:
                self.receive_any(self._inbox.get_nowait())
        return True

    def wants_wake(self) -> bool:
        """Whether a token in Redis would change what the next tick does."""
        return self.may_claim

    def receive_any(self, item: Any) -> None:
        if item is _TOKEN:
            self.has_token = True
        elif item is _AWAY:
            self._next_beat, self.has_token = 0.0, True  # the loop will see; the answer may have been a token
        elif item is _TELL:
            for line in self.describe_running():
                logger.info("%s", line)
        elif item is not _LOOK:
            self.receive(item)

    def _wait_for_token(self) -> bool:
        """In the thread of the listener: wait, as long as one command can."""
        return self.consumer.wait(self.queues, float("inf"), newcomers=ALL in self.serves())

    def _wake(self, has_token: bool) -> None:
        self._inbox.put(_TOKEN if has_token else _AWAY)
