"""
RefusedEnds: sends ends of tasks one by one after Redis refused them as a batch, so that an end that cannot be stored
does not block others.

If an end is refused on its own, too, while Redis accepts other commands, it is sent once more without its document,
as a failure with the reason. If that is refused as well, it is tried again at growing intervals while the worker
lives, and the lease is renewed meanwhile.
"""

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

from components.exceptions import EndNotStored, RedisRefused, RedisUnavailable, StepRefused
from components.services.queues import Claimed, Consumer, Finished, TaskFailure
from components.services.queues.formats import write_errors
from components.services.queues.worker.runs import ServerClock
from components.workers.outage import sentence

logger = logging.getLogger(__name__)

_TRIES = 2  # tries of a whole end before it is sent without its document
_LONGEST_PAUSE = 30.0  # most seconds between two tries; the first pause is one second
_AT_A_TIME = 50  # ends sent in one step of the worker


def is_refused(error: Exception) -> bool:
    """Return whether *error* may be caused by the command: Redis is out of memory, or the script failed."""
    return isinstance(error, StepRefused) or (isinstance(error, RedisRefused) and "maxmemory" in str(error))


@dataclass
class _Ack:
    done: Finished
    tries: int = 0
    next_at: float = 0.0


class RefusedEnds:
    """The ends that a worker sends one by one."""

    def __init__(self, consumer: Consumer, clock: ServerClock) -> None:
        self._consumer = consumer
        self._clock = clock
        self._acks: list[_Ack] = []

    def __len__(self) -> int:
        return len(self._acks)

    def add(self, finished: Iterable[Finished]) -> None:
        self._acks += [_Ack(done) for done in finished]

    def tasks(self) -> list[Claimed]:
        """Return the claims, which the worker holds until their ends are stored."""
        return [ack.done.task for ack in self._acks]

    def pause(self) -> float:
        """Return the seconds until the next end has to be sent."""
        return min((ack.next_at for ack in self._acks), default=math.inf) - time.monotonic()

    def send(self) -> list[str]:
        """
        Send the ends that are due, one by one. Call this when Redis has just accepted another request. Return the ids
        of tasks whose claims this worker has lost, or whose ends were stored before.
        """
        lost: list[str] = []
        due = [ack for ack in self._acks if ack.next_at <= time.monotonic()]
        for ack in due[:_AT_A_TIME]:
            try:
                lost += self._consumer.advance(self._consumer.request({}, 0, [ack.done])).lost
            except (RedisUnavailable, StepRefused) as error:
                self._put_off(ack, error)
                if not is_refused(error):
                    break  # Redis may be unavailable; the next request of the worker will show
            else:
                self._acks.remove(ack)
        return lost

    def _put_off(self, ack: _Ack, error: Exception) -> None:
        ack.tries += 1
        ack.next_at = time.monotonic() + min(_LONGEST_PAUSE, 2.0 ** (ack.tries - 1))
        if ack.tries != _TRIES:
            return
        task = ack.done.task
        logger.error(
            "Redis refuses the result of task %s. Only the fact that it ended will be stored: %s",
            task.id,
            sentence(error),
        )
        kind = f"{EndNotStored.__module__}.{EndNotStored.__qualname__}"
        why = TaskFailure(
            kind, f"The task ended ({ack.done.outcome}), and Redis did not store more: {error}"[:1_000]
        )
        if ack.done.outcome == "retry":
            ack.done = ack.done._replace(document=write_errors([why]))
        else:
            ack.done = Finished(task, "dead", self._clock.now(), write_errors([why]))
