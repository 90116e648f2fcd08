"""
Worker: the common loop of everything that claims tasks under leases.

A separate thread waits for tokens from Redis, so the loop never blocks in a command. Requests that could not be sent
while Redis was unavailable are kept.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from components.exceptions import RedisUnavailable
from components.kit.worker.loop import Loop
from components.services.queues import Claimed, Consumer

logger = logging.getLogger(__name__)

ALL = "*"  # all queues, including future ones

# Events of the inbox, in addition to those of subclasses: a token was taken from Redis; Redis did not answer.
_TOKEN, _AWAY = object(), object()


class Listener(threading.Thread):
    """
    A thread that blocks on Redis, so that the loop does not have to. It calls *wait* whenever the loop wants to be
    woken, and then calls *wake* once: with True for a token, with False if Redis is unavailable, which the loop will
    notice itself.

    A token carries no data: if a worker dies after it took one, other workers only start the task later, when they
    next poll.
    """

    def __init__(self, wait: Callable[[], bool], wake: Callable[[bool], None]) -> None:
        super().__init__(name="listener", daemon=True)
        self._wait = wait
        self._wake = wake
        self._wanted = threading.Event()
        self._is_over = False

    def listen(self, wanted: bool) -> None:
        (self._wanted.set if wanted else self._wanted.clear)()

    def end(self) -> None:
        """Stop listening. A wait that has begun continues for its few seconds."""
        self._is_over = True
        self._wanted.set()

    def run(self) -> None:
        while not self._is_over:  # looked at before the wait, too: a token clears what end() has set
            self._wanted.wait()
            if not self._is_over:
                self._take_token()

    def _take_token(self) -> None:
        try:
            has_token, is_away = self._wait(), False
        except RedisUnavailable:
            has_token, is_away = False, True
        if has_token or is_away:
            self._wanted.clear()
            self._wake(has_token)


class Worker(Loop):
    """A worker for queues of a backend alias."""

    def __init__(self, consumer: Consumer, *, lease: float) -> None:
        super().__init__(lease=lease, harmless=lease / 3)
        self.consumer = consumer
        self.queues: Sequence[str] = ()
        #: Whether a token was taken from Redis since the last step. If so, there is work for this worker or another
        #: one.
        self.has_token = False
        self._listener = Listener(self._wait_for_token, self._wake)
        self._lost: Counter[str] = Counter()

    @property
    def id(self) -> str:
        return self.consumer.id

    def running(self) -> Sequence[Claimed]:
        """Return the claims to renew."""
        return ()

    def cancel(self, task_ids: Sequence[str]) -> None:
        """Cancel these running tasks, because a user or caller asked for it."""

    def serves(self) -> Sequence[str]:
        """Return the queues as the control room shows them."""
        return (ALL,)

    def wants_wake(self) -> bool:
        """Return whether a token in Redis would change what the next tick does."""
        return self.may_claim

    def obey(self, order: str) -> None:
        """Obey the answer to a heartbeat: "quiet", "stop", or "" for nothing."""
        if order == "stop" and not self.is_dismissed:
            logger.info("Asked to stop.")
            self.dismiss()
        elif order == "quiet" and not self.is_quiet:
            self.quiet()

    def begin(self) -> None:
        self.beat()
        self._listener.start()

    def end(self) -> None:
        self._listener.end()

    def close(self) -> int:
        self.consumer.leave()
        return super().close()

    def beat(self) -> None:
        if self.is_quiet and not self.consumer.is_quiet:
            logger.info("Quiet: this worker takes no more tasks.")
            self.consumer.is_quiet = True
            self._next_beat = 0.0  # so that the control room shows it at once
        super().beat()

    def report(self) -> None:
        heartbeat = self.consumer.renew(self.serves(), self.running())
        self._see_lost(heartbeat.lost)
        self.cancel(heartbeat.cancelled)
        self.obey(heartbeat.order)

    def _see_lost(self, task_ids: Sequence[str]) -> None:
        """
        Log the leases that were lost since the last heartbeat.

        A task that still runs is logged at each heartbeat.
        """
        lost = Counter(task_ids)
        for task_id in lost - self._lost:
            logger.warning(
                "The lease of task %s ended before it was renewed; another worker has it.", task_id
            )
        self._lost = lost

    def _sleep(self, seconds: float) -> None:
        if not self.outage:
            self._listener.listen(self.wants_wake())
        super()._sleep(seconds)

    def receive_any(self, item: Any) -> None:
        if item is _TOKEN:
            self.has_token = True
        elif item is _AWAY:
            # The loop checks for work, because the lost answer may have been a token.
            self._next_beat, self.has_token = 0.0, True
        else:
            super().receive_any(item)

    def _wait_for_token(self) -> bool:
        """Wait for a token with one blocking command. Runs in the thread of the listener."""
        return self.consumer.wait(self.queues, float("inf"), newcomers=ALL in self.serves())

    def _wake(self, has_token: bool) -> None:
        self.put(_TOKEN if has_token else _AWAY)
