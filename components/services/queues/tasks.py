"""
TaskQueue: what producers and the control room use of the queues of one backend alias.

A push is one script for up to CHUNK tasks in any queues. It is sent again when its reply was lost: the
ids are made here, and a task whose record or result exists is not stored again. What only looks
is in readers.py, and what is done to tasks afterwards in controls.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

from components.conf import QueueOptions
from components.exceptions import InvalidQueueName
from components.kit.at_once import at_once
from components.kit.client import AnyRedis, get_async_client
from components.kit.errors import redis_errors
from components.kit.scripts import Script
from components.services.counters import tally_each
from components.services.queues import keys
from components.services.queues.arguments import encode, normalize_call
from components.services.queues.controls import CHUNK, QueueControls, wake
from components.services.queues.ids import new_id
from components.services.queues.periodic import read_instant, warn_of_jump
from components.services.queues.records import MICROSECOND, NewTask, TaskInfo, from_us, to_us

MAX_NAME = 200  # characters of a queue's name
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)  # every time zone can show it, and it is as good as any that is past
LATEST = datetime(2248, 1, 1, tzinfo=UTC)  # scores of Redis are floats, and hold later instants no more
LONGEST_DELAY = 100 * 366 * 86_400  # seconds: a hundred years
_PRIORITIES = range(-100, 101)
_ID = re.compile(r"[!-~]{1,64}")

_pause = Script("queues/pause")
_push = Script("queues/push")


class TaskQueue(QueueControls):
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
        return _id(self.push_many([task]))

    async def apush(
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
        """push(), awaited."""
        task = NewTask(
            name=name, args=args, kwargs=kwargs or {}, queue=queue, priority=priority, delay=delay, at=at
        )
        return _id(await self.apush_many([task]))

    def push_many(self, tasks: Iterable[NewTask]) -> list[TaskInfo | None]:
        """
        Push all *tasks*, in one round trip per CHUNK; how they were stored. All are checked before the first.

        In the place of a task whose unique key another has, that other; None for a tick that was taken.
        """
        return at_once(self._push_many(self._client, tasks))

    async def apush_many(self, tasks: Iterable[NewTask]) -> list[TaskInfo | None]:
        """push_many(), awaited."""
        return await self._push_many(get_async_client(), tasks)

    async def _push_many(self, client: AnyRedis, tasks: Iterable[NewTask]) -> list[TaskInfo | None]:
        stored: list[TaskInfo | None] = []
        for chunk in self._chunks(tasks):
            answers, ahead = await _push.acall(client, keys=chunk.keys, args=chunk.args)
            for name, last in zip(ahead[::2], ahead[1::2], strict=True):
                warn_of_jump(name.decode(), read_instant(last))
            tally_each("tasks:enqueued", chunk.stored_in(answers))
            for new, said in zip(chunk.tasks, answers, strict=True):
                stored.append(
                    new.stored(from_us(said)) if said.isdigit() else await self._other(client, new, said)
                )
        return stored

    def foresee(self, tasks: Iterable[NewTask]) -> list[TaskInfo]:
        """Check *tasks* as push_many() does; how they would be stored now, by this machine's clock. Nothing is."""
        now = datetime.now(UTC)
        return [_Checked.of(task, self.options).stored(now) for task in tasks]

    async def _other(self, client: AnyRedis, new: _Checked, said: bytes) -> TaskInfo | None:
        """The task that has the unique key of *new*; if it has ended and is forgotten since, *new* after all."""
        if not said:
            return None
        return await self._get(client, said[1:].decode()) or (await self._push_many(client, [new.task]))[0]

    def _chunks(self, tasks: Iterable[NewTask]) -> Iterator[_Chunk]:
        options = self.options
        checked = [_Checked.of(task, options) for task in tasks]
        for start in range(0, len(checked), CHUNK):
            yield _Chunk.of(self.alias, checked[start : start + CHUNK], int(options.due_first))

    def pause(self, queue: str) -> bool:
        """Let no worker claim from *queue* until resume(); pushes go on. False if it was paused before."""
        check_queue(queue)
        paused = keys.queue_paused(self.alias)
        with redis_errors():
            was_paused = self._client.sismember(paused, queue)
        _pause(self._client, keys=[paused], args=[queue])
        return not was_paused

    def resume(self, queue: str) -> bool:
        """Let workers claim from *queue* again, and wake one. False if it was not paused."""
        # No transaction: a server that is full would take none, and such a queue could not be drained.
        with redis_errors():
            resumed = self._client.srem(keys.queue_paused(self.alias), queue)
        wake(self._client, keys=[keys.queue_wake(self.alias, queue)], args=[0])
        return bool(resumed)


def execute_later(queue: str, name: str, args: Sequence[Any], delay: float = 0) -> str:
    """
    Push the task *name* into *queue* of the default backend, to run after *delay* seconds, or at once if that is 0 or
    less; return the id.

    The book's own call. It takes kwargs and priorities no more than the book's does: use TaskQueue.push.
    """
    is_over = isinstance(delay, int | float) and delay <= 0
    return TaskQueue().push(name, args, queue=queue, delay=None if is_over else delay)


def check_queue(name: str) -> str:
    """*name*, if a queue can be called so. Raises InvalidQueueName."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise InvalidQueueName(
            f"A queue cannot be called {name!r}: the name must have 1 to {MAX_NAME} printable characters."
        )
    return name


@dataclass(frozen=True)
class _Checked:
    """A task that may be pushed, under its id, and its body."""

    task: NewTask
    id: str
    args: list[Any]
    kwargs: dict[str, Any]
    body: str

    @classmethod
    def of(cls, task: NewTask, options: QueueOptions) -> _Checked:
        check_queue(task.queue)
        if task.priority not in _PRIORITIES:
            raise ValueError(
                f"The priority of {task.name} is {task.priority!r}; it must be a whole number, -100 to 100."
            )
        if task.id is not None and not _ID.fullmatch(task.id):
            raise ValueError(
                f"The id of {task.name} is {task.id[:80]!r}; it must be 1 to 64 ASCII characters without blanks, as "
                "new_id() makes them."
            )
        _check_instant(task)
        if task.at is not None and task.at < EARLIEST:
            task = replace(task, at=EARLIEST)
        args, kwargs = normalize_call(task.name, task.args, task.kwargs)
        body = encode(task.name, args, kwargs, max_body=options.max_body, sensitive=task.sensitive)
        return cls(task, task.id or new_id(), args, kwargs, body)

    def words(self, number: int, due_first: int) -> str:
        task = self.task
        unique = digest(task.name, task.unique) if task.unique is not None else "-"
        name, tick = task.tick or ("", None)
        lease = round(task.lease * 1000) if task.lease else 0
        return (
            f"{number} {self.id} {_due(task)} {int(task.priority)} {due_first} {lease} {unique} "
            f"{to_us(tick) if tick else 0} {to_us(task.tick_limit) if task.tick_limit else 0} {name}"
        )

    def stored(self, enqueued_at: datetime) -> TaskInfo:
        task = self.task
        due = task.at and task.at.astimezone(UTC)
        if task.delay:
            due = enqueued_at + timedelta(seconds=task.delay)
        is_delayed = bool(due and due > enqueued_at)
        facts: dict[str, Any] = {"id": self.id, "name": task.name, "args": self.args, "kwargs": self.kwargs}
        facts |= {"queue": task.queue, "priority": int(task.priority), "enqueued_at": enqueued_at}
        facts |= {
            "state": "delayed" if is_delayed else "ready",
            "run_after": due,
            "sensitive": task.sensitive,
        }
        return TaskInfo.of(facts | {"due_at": due if is_delayed else None})


@dataclass(frozen=True)
class _Chunk:
    """Tasks that go in one script call."""

    tasks: list[_Checked]
    keys: list[str]
    args: list[Any]

    def stored_in(self, answers: Sequence[bytes]) -> list[str]:
        """The queue of each that was stored, from the script's answers."""
        return [new.task.queue for new, said in zip(self.tasks, answers, strict=True) if said.isdigit()]

    @classmethod
    def of(cls, alias: str, tasks: list[_Checked], due_first: int) -> _Chunk:
        queues = list(dict.fromkeys(new.task.queue for new in tasks))
        numbers = {queue: number for number, queue in enumerate(queues, start=1)}
        args: list[Any] = [len(queues), *queues]
        for new in tasks:
            args += (new.words(numbers[new.task.queue], due_first), new.body)
        shared = (keys.queue_tasks, keys.queue_names, keys.queue_wake_all, keys.queue_wake_poller)
        script_keys = [
            key(alias) for key in (*shared, keys.queue_uniques, keys.queue_periodic, keys.queue_active)
        ]
        parts = (keys.queue_ready, keys.queue_delayed, keys.queue_wake)
        script_keys += [part(alias, queue) for queue in queues for part in parts]
        script_keys += [keys.queue_result(alias, new.id) for new in tasks]
        return cls(tasks, script_keys, args)


def _id(pushed: list[TaskInfo | None]) -> str:
    [info] = pushed
    assert info is not None, "only a tick that was taken is not stored"
    return info.id


def digest(name: str, key: str) -> str:
    """The unique key as it is stored: of fixed length, whatever the task and its key are called."""
    return blake2b(f"{name}\n{key}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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
