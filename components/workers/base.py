"""
The loop of every worker: tick, sleep until there is a reason not to, and stop as asked.

Whatever may end the sleep (a token in Redis, a finished task, a signal) puts something into one inbox; a
thread that waits on Redis does so only for tokens, so the loop itself is never stuck in a blocking
command. The first SIGTERM or SIGINT drains, the second ends at once. While Redis is away the
loop says so once and goes on when it is back; what it wanted to say to Redis is kept.
"""

from __future__ import annotations

import logging
import random
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from components.exceptions import RedisUnavailable
from components.services.queues import Claimed, Consumer

logger = logging.getLogger(__name__)

DRAINED, UNHEALTHY = 0, 1  # exit codes; 2 is for what was wrong before the loop began

ALL = "*"  # every queue there is, also those to come

_SHORTEST_RETRY, _LONGEST_RETRY = 0.1, 2.0  # seconds between two tries while Redis is away
_LONGEST_BEAT = 5.0  # seconds between two heartbeats, however long the lease
_NAP = 0.5  # seconds of one wait: Python sees a signal that came just before a wait when the wait is over

# What the inbox holds besides items for receive(): a token was taken from Redis; there is a reason to look; Redis
# did not answer the listener.
_TOKEN, _LOOK, _AWAY = object(), object(), object()


class Killed(BaseException):
    """The second signal: end at once. A BaseException, since it may arrive anywhere."""


class Worker(ABC):
    """One worker of the queues of a backend alias; subclasses say what a tick is."""

    def __init__(self, consumer: Consumer, *, lease: float) -> None:
        self.consumer = consumer
        self.queues: Sequence[str] = ()
        self._beat_every = min(_LONGEST_BEAT, lease / 3)
        self._next_beat = 0.0
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._listener = _Listener(self)
        self._stopping_since: float | None = None
        self._away_since: float | None = None
        self._retries = 0
        self._heeds_signals = True
        #: A signal has asked it to stop.
        self.is_signalled = False
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

    def serves(self) -> Sequence[str]:
        """The queues, as the control room shows them."""
        return (ALL,)

    def cancel(self, task_ids: Sequence[str]) -> None:  # noqa: B027  (pollers run nothing)
        """Let these of its tasks end."""

    def receive(self, item: Any) -> None:  # noqa: B027  (most workers have no other threads)
        """Take something that another thread has put into the inbox."""

    def close(self) -> int:
        """End what is left; the exit code."""
        self.consumer.leave()
        return DRAINED

    @property
    def is_stopping(self) -> bool:
        return self._stopping_since is not None

    def stop(self) -> None:
        """Drain: begin nothing new, finish what runs. Safe from signal handlers and other threads."""
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
        self._inbox.put(_LOOK)

    def run(self) -> int:
        """
        Work until stopped; the exit code. Raises RedisUnavailable only if Redis does not answer at the start.
        """
        try:
            with self._signals():
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
            return self.close()
        except RedisUnavailable as error:
            logger.warning("%s What was claimed is taken over when its lease ends.", _sentence(error))
            return UNHEALTHY

    def beat(self) -> None:
        """Send the heartbeat, if it is time."""
        if time.monotonic() >= self._next_beat:
            answer = self.consumer.renew(self.serves(), self.running())
            for task_id in answer.lost:
                logger.warning(
                    "The lease of task %s ended before it was renewed; another worker has it.", task_id
                )
            self.cancel(answer.cancelled)
            self._next_beat = time.monotonic() + self._beat_every

    def _try_tick(self) -> float:
        try:
            self.beat()
            pause = min(self.tick(), self._next_beat - time.monotonic())
        except RedisUnavailable as error:
            return self._wait_for_redis(error)
        if self._away_since is not None:
            logger.warning("Redis answers again after %.1f s.", time.monotonic() - self._away_since)
            self._away_since, self._retries = None, 0
        return pause

    def _wait_for_redis(self, error: RedisUnavailable) -> float:
        self._next_beat = 0.0  # the next heartbeat tells whether it is back: a tick may have nothing to ask
        if self._away_since is None:
            self._away_since = time.monotonic()
            logger.warning("%s Waiting for it; nothing that was accepted is lost.", _sentence(error))
        self._retries += 1
        longest = min(_LONGEST_RETRY, _SHORTEST_RETRY * 2.0**self._retries)
        return random.uniform(_SHORTEST_RETRY, longest)

    def _sleep(self, seconds: float) -> None:
        if self._away_since is None:
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
        return not self.is_stopping

    def receive_any(self, item: Any) -> None:
        if item is _TOKEN:
            self.has_token = True
        elif item is _AWAY:
            self._next_beat = 0.0  # the loop will see for itself
        elif item is not _LOOK:
            self.receive(item)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        # Python delivers signals to the main thread only.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            yield
        finally:
            self._heeds_signals = False
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self.is_signalled:
            self.is_signalled = True
            self.stop()
        elif self._heeds_signals:
            self._heeds_signals = False  # a third must not disturb what the second began
            raise Killed


class _Listener(threading.Thread):
    """Waits in Redis for tokens, so that the loop need not."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(name="listener", daemon=True)
        self._worker = worker
        self._wanted = threading.Event()
        self._is_over = False

    def listen(self, wanted: bool) -> None:
        (self._wanted.set if wanted else self._wanted.clear)()

    def end(self) -> None:
        """Listen no more; a wait that has begun goes on for its few seconds."""
        self._is_over = True
        self._wanted.set()

    def run(self) -> None:
        while not self._is_over:
            self._wanted.wait()
            if not self._is_over:
                self._take_token()

    def _take_token(self) -> None:
        worker = self._worker
        try:
            woken = worker.consumer.wait(worker.queues, float("inf"), newcomers=ALL in worker.serves())
            item = _TOKEN if woken else None
        except RedisUnavailable:
            item = _AWAY
        if item is not None:
            self._wanted.clear()
            worker._inbox.put(item)


def _sentence(error: Exception) -> str:
    return f"{str(error).rstrip('.')}."
