"""
TaskQueue: what producers and the control room use of the queues of one backend alias.

A push is one script for up to CHUNK tasks in any queues. It is sent again when its reply was lost: the
ids are made here, and a task whose record or result exists is not stored again. What only looks
is in readers.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from components import keys
from components.client import redis_errors
from components.conf import QueueOptions
from components.exceptions import InvalidQueueName, NotSerializable
from components.scripts import Script
from components.services.queues.arguments import encode, normalize
from components.services.queues.ids import new_id
from components.services.queues.readers import QueueReader
from components.services.queues.records import MICROSECOND, NewTask, TaskInfo, from_us, to_us

CHUNK = 500  # tasks in one script call: a few milliseconds of Redis, far below Lua's limits
MAX_NAME = 200  # characters of a queue's name
LATEST = datetime(2248, 1, 1, tzinfo=UTC)  # scores of Redis are floats, and hold later instants no more
LONGEST_DELAY = 100 * 366 * 86_400  # seconds: a hundred years
_PRIORITIES = range(-100, 101)

_push = Script("queues/push")


class TaskQueue(QueueReader):
    """
    The queues behind TASKS[*alias*].

    Every method raises RedisUnavailable when Redis does not answer; nothing has happened then, or
    what was asked has happened and may be asked again.
    """

    def push(
        self,
        name: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        queue: str = "default",
        priority: int = 0,
        delay: float | None = None,
        at: datetime | None = None,
    ) -> str:
        """
        Push the task *name* (dotted path of a function declared with @task), to run now, after *delay* seconds
        or *at* an aware datetime; the id. Within a queue a higher *priority* (-100..100) goes first, then
        what became runnable first.

        Raises NotSerializable, BodyTooLarge, InvalidQueueName or ValueError, and stores nothing then.
        """
        task = NewTask(
            name=name, args=args, kwargs=kwargs or {}, queue=queue, priority=priority, delay=delay, at=at
        )
        return self.push_many([task])[0].id

    def push_many(self, tasks: Iterable[NewTask]) -> list[TaskInfo]:
        """Push all *tasks*, in one round trip per CHUNK; how they were stored. All are checked before the first."""
        options = self.options
        checked = [_checked(task, options) for task in tasks]
        stored: list[TaskInfo] = []
        for start in range(0, len(checked), CHUNK):
            stored += self._push_chunk(checked[start : start + CHUNK])
        return stored

    def _push_chunk(self, chunk: list[tuple[NewTask, str]]) -> list[TaskInfo]:
        queues = list(dict.fromkeys(task.queue for task, _body in chunk))
        numbers = {queue: number for number, queue in enumerate(queues, start=1)}
        due_first = int(self.options.due_first)
        ids = [new_id() for _task in chunk]
        args: list[Any] = [len(queues), *queues]
        for task_id, (task, body) in zip(ids, chunk, strict=True):
            args += (numbers[task.queue], task_id, _due(task), int(task.priority), due_first, body)
        names = [keys.queue_tasks, keys.queue_names, keys.queue_wake_all, keys.queue_wake_poller]
        script_keys = [name(self.alias) for name in names]
        for queue in queues:
            script_keys += (
                keys.queue_ready(self.alias, queue),
                keys.queue_delayed(self.alias, queue),
                keys.queue_wake(self.alias, queue),
            )
        script_keys += [keys.queue_result(self.alias, task_id) for task_id in ids]
        enqueued = _push(self._client, keys=script_keys, args=args)
        return [
            _pushed(task_id, task, json.loads(body), from_us(at))
            for task_id, (task, body), at in zip(ids, chunk, enqueued, strict=True)
        ]

    def pause(self, queue: str) -> bool:
        """Let no worker claim from *queue* until resume(); pushes go on. False if it was paused before."""
        check_queue(queue)
        with redis_errors():
            return bool(self._client.sadd(keys.queue_paused(self.alias), queue))

    def resume(self, queue: str) -> bool:
        """Let workers claim from *queue* again, and wake one. False if it was not paused."""
        with redis_errors(), self._client.pipeline(transaction=True) as pipe:
            pipe.srem(keys.queue_paused(self.alias), queue)
            pipe.delete(keys.queue_wake(self.alias, queue))
            pipe.rpush(keys.queue_wake(self.alias, queue), "1")
            resumed, *_others = pipe.execute()
        return bool(resumed)


def execute_later(queue: str, name: str, args: Sequence[Any], delay: float = 0) -> str:
    """
    Push the task *name* into *queue* of the default backend, to run after *delay* seconds; the id.

    The book's own call. It takes kwargs and priorities no more than the book's does: use TaskQueue.push.
    """
    return TaskQueue().push(name, args, queue=queue, delay=delay or None)


def check_queue(name: str) -> str:
    """*name*, if a queue can be called so. Raises InvalidQueueName."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise InvalidQueueName(
            f"A queue cannot be called {name!r}: the name must have 1 to {MAX_NAME} printable characters."
        )
    return name


def _checked(task: NewTask, options: QueueOptions) -> tuple[NewTask, str]:
    check_queue(task.queue)
    if task.priority not in _PRIORITIES:
        raise ValueError(
            f"The priority of {task.name} is {task.priority!r}; it must be a whole number, -100 to 100."
        )
    _check_instant(task)
    try:
        args = normalize(tuple(task.args), "args")
        kwargs = normalize(task.kwargs, "kwargs")
    except RecursionError:
        raise NotSerializable(
            f"Unsupported type: the arguments of {task.name} contain themselves, or are nested too deeply for JSON."
        ) from None
    return task, encode(task.name, args, kwargs, max_body=options.max_body)


def _check_instant(task: NewTask) -> None:
    if task.delay is not None and task.at is not None:
        raise ValueError(f"{task.name} has both a delay and an instant to run at; give one of them.")
    if task.delay is not None and not (
        isinstance(task.delay, int | float) and 0 <= task.delay <= LONGEST_DELAY
    ):
        raise ValueError(
            f"The delay of {task.name} is {task.delay!r}; it must be a number of seconds, "
            f"0 to {LONGEST_DELAY:,}."
        )
    if task.at is not None and task.at.tzinfo is None:
        raise ValueError(
            f"{task.name} is to run at {task.at!r}, which has no time zone; give an aware datetime."
        )
    if task.at is not None and task.at > LATEST:
        raise ValueError(f"{task.name} is to run at {task.at!r}, which is later than {LATEST!r}.")


def _due(task: NewTask) -> str:
    if task.at is not None:
        return str(to_us(task.at))
    return f"+{timedelta(seconds=task.delay) // MICROSECOND}" if task.delay else "0"


def _pushed(task_id: str, task: NewTask, body: dict[str, Any], enqueued_at: datetime) -> TaskInfo:
    due = task.at and task.at.astimezone(UTC)
    if task.delay:
        due = enqueued_at + timedelta(seconds=task.delay)
    return TaskInfo(
        id=task_id,
        name=task.name,
        args=body["args"],
        kwargs=body["kwargs"],
        queue=task.queue,
        priority=int(task.priority),
        state="delayed" if due and due > enqueued_at else "ready",
        enqueued_at=enqueued_at,
        run_after=due,
    )
