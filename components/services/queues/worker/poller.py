"""
Poller: moves due tasks to their queues, moves abandoned tasks back, and pushes ticks, in case workers are too busy.

A step of a worker that wants no tasks does exactly this, and returns when the next task is due. The poller sleeps
until then. The push of a task that is due earlier puts a token into the poller's list. The poller does not take the
tokens of queues, which are for workers. (Redis in Action, 6.4.2)
"""

from __future__ import annotations

from components.services.queues import Consumer, TaskQueue
from components.services.queues.backend import redis_backend
from components.services.queues.worker.periodic import Ticker
from components.services.queues.worker.runs import ServerClock
from components.services.queues.worker.worker import Worker


class Poller(Worker):
    """Promotes the delayed tasks of one backend alias."""

    def __init__(self, alias: str = "default") -> None:
        self._queue = TaskQueue(alias)
        super().__init__(Consumer(alias, kind="poller"), lease=self._queue.options.lease)
        self._clock = ServerClock()
        self._ticker = Ticker(redis_backend(alias), self._clock)

    def tick(self) -> float:
        return min(self._ticker.tick(), self._promote())

    def _promote(self) -> float:
        queues = self._queue.names()
        shares, take_over = dict.fromkeys(queues, 0), not self.outage.is_recent
        step = self.consumer.advance(self.consumer.request(shares, want=0, take_over=take_over))
        self._clock.set(step.now)
        pause = self.outage.grace or self._beat_every
        if step.look_again_at is None:
            return pause
        return min(pause, (step.look_again_at - step.now).total_seconds())

    def is_done(self) -> bool:
        return self.is_stopping

    def wants_wake(self) -> bool:
        return not self.is_stopping  # a quiet poller continues, because moving tasks is not taking them
