"""
QueueControls: what is done to tasks that were pushed, and to workers: cancel, delete, send again, await, quiet, stop.

Each verb is one script per CHUNK of ids, and repeated it changes nothing more. What runs is never torn away from
its worker: the worker is told with its next heartbeat. Whoever waits for a task's end blocks on a list of that
task; a token comes into it only if somebody waits.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.kit.at_once import answer, at_once
from components.kit.client import SHORTEST_BLOCK, AnyRedis, get_async_client, longest_block
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.services.queues import keys
from components.services.queues.readers import QueueReader
from components.services.queues.records import State, TaskInfo

CHUNK = 500  # tasks in one script call: a few milliseconds of Redis, far below Lua's limits
_TOLD = 60_000  # milliseconds that the end of a task is told to who waits for it
_ORDERED = 86_400_000  # milliseconds that a worker's order is kept

_await = Script("queues/await")
_cancel = Script("queues/cancel")
_delete = Script("queues/delete")
_resend = Script("queues/resend")
_tell = Script("queues/tell")
wake = Script("queues/wake")


@dataclass(frozen=True)
class Cancelled:
    """What became of tasks that were to be cancelled."""

    #: How many waited, and are in the dead set now.
    at_once: int
    #: How many run, and will be told.
    asked: int


@dataclass(frozen=True)
class Resent:
    """What became of dead tasks that were to be sent again."""

    sent: int
    #: Ids that stay dead: other unfinished tasks have their unique keys.
    refused: list[str]


class QueueControls(QueueReader):
    """The queues behind TASKS[*alias*]. Every method raises RedisUnavailable."""

    def cancel(self, queue: str, task_ids: Sequence[str]) -> Cancelled:
        """
        Let tasks of *queue* come to no good end: waiting ones go to the dead set with TaskCancelled as their
        error; running coroutines are cancelled with the next heartbeat of their worker, and running functions
        learn it from is_cancelled(). A running task that succeeds nevertheless is successful.
        """
        states: list[int] = []
        for chunk in _chunks(task_ids):
            script_keys = [*self._keys("tasks", "runs", "uniques", "awaited")]
            parts = (keys.queue_ready, keys.queue_delayed, keys.queue_dead)
            script_keys += [part(self.alias, queue) for part in parts]
            states += _cancel(self._client, keys=[*script_keys, keys.queue_ended(self.alias, "")], args=chunk)
        return Cancelled(states.count(2), states.count(1))

    def delete(self, queue: str, state: State, task_ids: Sequence[str]) -> int:
        """
        Delete tasks of *queue* that are in *state*, with their results; how many of them are not there now.

        Raises ValueError for running tasks: cancel them.
        """
        if state == "running":
            raise ValueError("A running task cannot be deleted: cancel it, and delete it when it is dead.")
        gone = 0
        for chunk in _chunks(task_ids):
            script_keys = self._keys("tasks", "runs", "errors", "progress", "uniques", "awaited")
            script_keys.append(getattr(keys, f"queue_{state}")(self.alias, queue))
            script_keys += [keys.queue_result(self.alias, ""), keys.queue_ended(self.alias, "")]
            gone += int(_delete(self._client, keys=script_keys, args=chunk))
        return gone

    def resend(self, queue: str, task_ids: Sequence[str]) -> Resent:
        """Send dead tasks of *queue* again: now, with all their attempts. Their errors stay."""
        sent, refused = 0, []
        for chunk in _chunks(task_ids):
            parts = (keys.queue_dead, keys.queue_ready, keys.queue_wake)
            script_keys = self._keys("tasks", "runs", "uniques")
            script_keys += [part(self.alias, queue) for part in parts]
            script_keys += self._keys("active", "wake_all")
            held, number = _resend(self._client, keys=script_keys, args=[queue, *chunk])
            sent += int(number)
            refused += [task_id.decode() for task_id in held]
        return Resent(sent, refused)

    def ids(self, queue: str, state: State, *, limit: int) -> list[str]:
        """The ids of up to *limit* tasks of *queue* in *state*, in the order of the listing."""
        with redis_errors():
            return self._page(self._client, queue, state, 0, limit)[0]

    def tell(self, worker_id: str, order: Literal["quiet", "stop"]) -> None:
        """Ask a worker to claim nothing more, or to end when its running tasks have; it hears with its heartbeat."""
        _tell(self._client, keys=[keys.queue_order(self.alias, worker_id)], args=[order, _ORDERED])

    def wait_for(self, task_id: str, *, wait: float) -> TaskInfo | None:
        """
        The task when it has ended (state "successful" or "dead"), or as it is after *wait* seconds; None if
        there is none, or none any more. It takes a connection for the time, and no polling.
        """
        return at_once(self._wait_for(self._client, task_id, wait))

    async def await_for(self, task_id: str, *, wait: float) -> TaskInfo | None:
        """wait_for(), awaited."""
        return await self._wait_for(get_async_client(), task_id, wait)

    async def _wait_for(self, client: AnyRedis, task_id: str, wait: float) -> TaskInfo | None:
        until = time.monotonic() + wait
        script_keys, ended = self._keys("tasks", "runs", "awaited"), keys.queue_ended(self.alias, task_id)
        token = None
        while True:
            # Only of a task that has not ended: whoever notes it may die, and only its end takes the note away.
            await _await.acall(client, keys=script_keys, args=[task_id])
            info = await self._get(client, task_id)
            has_ended = info is None or info.state in ("successful", "dead")
            left = until - time.monotonic()
            with redis_errors():
                if has_ended and token:
                    await self._pass_on(client, ended)
                if has_ended or left <= 0:
                    return info
                # A token of an end before the task was sent again is taken out, and not passed on.
                token = await answer(
                    client.blpop([ended], timeout=max(SHORTEST_BLOCK, min(left, longest_block(client))))
                )

    async def _pass_on(self, client: AnyRedis, ended: str) -> None:
        """Wake the next of those who wait for the same task."""
        await wake.acall(client, keys=[ended], args=[_TOLD])

    def _keys(self, *names: str) -> list[str]:
        return [getattr(keys, f"queue_{name}")(self.alias) for name in names]


def _chunks(task_ids: Sequence[str]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(task_ids), CHUNK):
        yield task_ids[start : start + CHUNK]
