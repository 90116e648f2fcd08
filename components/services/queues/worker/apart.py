"""
Apart: ends of tasks that Redis refused together with others, and that are now sent one by one, so that an end that
cannot be stored does not block others.

An end that is refused by itself as well, while Redis accepts other commands, is sent once more without its document,
as a failure that gives the reason. If that is refused too, it is tried again, less and less often, as long as the
worker lives; its lease is renewed meanwhile.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

from components.exceptions import EndNotStored, RedisRefused, RedisUnavailable, StepRefused
from components.kit.worker.outage import sentence
from components.services.queues import Claimed, Consumer, Finished, TaskFailure
from components.services.queues.formats import write_errors
from components.services.queues.worker.runs import ServerClock

logger = logging.getLogger(__name__)

_TRIES = 2  # tries of a whole end before it is sent without its document
_LONGEST_PAUSE = 30.0  # seconds between two tries; they begin at one
_AT_A_TIME = 50  # ends sent in one step of the worker, which has other things to do


def is_refused(error: Exception) -> bool:
    """Return whether *error* may be due to what was sent: Redis is full, or the script failed."""
    return isinstance(error, StepRefused) or (isinstance(error, RedisRefused) and "maxmemory" in str(error))


@dataclass
class _Ack:
    done: Finished
    tries: int = 0
    next_at: float = 0.0


class Apart:
    """The ends that one worker sends one by one."""

    def __init__(self, consumer: Consumer, clock: ServerClock) -> None:
        self._consumer = consumer
        self._clock = clock
        self._acks: list[_Ack] = []

    def __len__(self) -> int:
        return len(self._acks)

    def add(self, finished: Iterable[Finished]) -> None:
        self._acks += [_Ack(done) for done in finished]

    def tasks(self) -> list[Claimed]:
        """Return the claims, which are this worker's until their ends are stored."""
        return [ack.done.task for ack in self._acks]

    def pause(self) -> float:
        """Return the seconds until the next one has to be sent."""
        return min((ack.next_at for ack in self._acks), default=math.inf) - time.monotonic()

    def send(self) -> list[str]:
        """
        Send the ends that are due, one by one; call this when Redis has just accepted another request. Return the ids
        of tasks that are no longer this worker's, or whose end was stored before.
        """
        lost: list[str] = []
        due = [ack for ack in self._acks if ack.next_at <= time.monotonic()]
        for ack in due[:_AT_A_TIME]:
            try:
                lost += self._consumer.advance(self._consumer.request({}, 0, [ack.done])).lost
            except (RedisUnavailable, StepRefused) as error:
                self._put_off(ack, error)
                if not is_refused(error):
                    break  # perhaps it is away; the next request of the worker will tell
            else:
                self._acks.remove(ack)
        return lost

    def _put_off(self, ack: _Ack, error: Exception) -> None:
        ack.tries += 1
        ack.next_at = time.monotonic() + min(_LONGEST_PAUSE, 2.0 ** (ack.tries - 1))
        if ack.tries != _TRIES:
            return
        task = ack.done.task
        logger.error("Redis does not store how task %s ended; only that it has: %s", task.id, sentence(error))
        kind = f"{EndNotStored.__module__}.{EndNotStored.__qualname__}"
        why = TaskFailure(
            kind, f"The task ended ({ack.done.outcome}), and Redis did not store more: {error}"[:1_000]
        )
        if ack.done.outcome == "retry":
            ack.done = ack.done._replace(document=write_errors([why]))
        else:
            ack.done = Finished(task, "dead", self._clock.now(), write_errors([why]))
