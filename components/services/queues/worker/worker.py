"""
Worker: the common loop of everything that claims tasks under leases. Poller: the one that runs none.

A separate thread waits for tokens from Redis, so the loop never blocks in a command. Requests that could not be sent
while Redis was unavailable are kept.
"""

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Any

from components.exceptions import RedisUnavailable
from components.services.queues import Claimed, Consumer, TaskQueue
from components.services.queues.backend import redis_backend
from components.services.queues.worker.periodic import Ticker
from components.services.queues.worker.runs import ServerClock
from components.workers.loop import Loop

logger = logging.getLogger(__name__)

ALL = "*"  # all queues, including future ones

# Events of the inbox, in addition to those of subclasses: a token was taken from Redis; Redis did not answer.
_TOKEN, _AWAY = object(), object()


class Worker(Loop):
    """A worker for queues of a backend alias."""

    def __init__(self, consumer: Consumer, *, lease: float) -> None:
        super().__init__(lease=lease, harmless=lease / 3)
        self.consumer = consumer
        self.queues: Sequence[str] = ()
        #: Whether a token was taken from Redis since the last step: there is work for this worker or another one.
        self.has_token = False
        self._listener = threading.Thread(target=self._listen, name="listener", daemon=True)
        self._wants_token = threading.Event()
        self._is_over = threading.Event()
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
        """Stop listening. A wait that has begun continues for its few seconds."""
        self._is_over.set()
        self._wants_token.set()

    def _listen(self) -> None:
        """
        Wait for a token in the thread of the listener, whenever the loop wants to be woken, and wake it once.

        A token carries no data: if a worker dies after it took one, other workers only start the task later, when
        they next poll.
        """
        while not self._is_over.is_set():  # looked at before the wait, too: a token clears what end() has set
            self._wants_token.wait()
            if self._is_over.is_set():
                return
            try:
                found = self.consumer.wait(self.queues, inf, newcomers=ALL in self.serves()) and _TOKEN
            except RedisUnavailable:  # which the loop will notice itself
                found = _AWAY
            if found:
                self._wants_token.clear()
                self.put(found)

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
        lost = Counter(heartbeat.lost)
        for task_id in lost - self._lost:  # one that still runs is among them each time
            said = "The lease of task %s ended before it was renewed; another worker has it."
            logger.warning(said, task_id)
        self._lost = lost
        self.cancel(heartbeat.cancelled)
        self.obey(heartbeat.order)

    def _sleep(self, seconds: float) -> None:
        if not self.outage:
            (self._wants_token.set if self.wants_wake() else self._wants_token.clear)()
        super()._sleep(seconds)

    def receive_any(self, item: Any) -> None:
        if item is _TOKEN:
            self.has_token = True
        elif item is _AWAY:
            # The loop checks for work, because the lost answer may have been a token.
            self._next_beat, self.has_token = 0.0, True
        else:
            super().receive_any(item)


class Poller(Worker):
    """
    Moves due tasks to their queues and abandoned tasks back, and pushes ticks, in case workers are too busy.

    A step of a worker that wants no tasks does exactly this, and returns when the next task is due. The poller sleeps
    until then. The push of a task that is due earlier puts a token into the poller's list. The poller does not take
    the tokens of queues, which are for workers. (Redis in Action, 6.4.2)
    """

    def __init__(self, alias: str = "default") -> None:
        self._queue = TaskQueue(alias)
        super().__init__(Consumer(alias, kind="poller"), lease=self._queue.options.lease)
        self._clock = ServerClock()
        self._ticker = Ticker(redis_backend(alias), self._clock)

    def tick(self) -> float:
        pause = min(self._ticker.tick(), self.outage.grace or self._beat_every)
        shares, take_over = dict.fromkeys(self._queue.names(), 0), not self.outage.is_recent
        step = self.consumer.advance(self.consumer.request(shares, want=0, take_over=take_over))
        self._clock.set(step.now)
        if step.look_again_at is None:
            return pause
        return min(pause, (step.look_again_at - step.now).total_seconds())

    def is_done(self) -> bool:
        return self.is_stopping

    def wants_wake(self) -> bool:
        return not self.is_stopping  # a quiet poller continues, because moving tasks is not taking them
