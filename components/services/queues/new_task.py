"""
NewTask: a task to push, and what is checked before it is.

Ids are UUIDs of version 7 (RFC 9562), so that they sort by creation: ready tasks of one priority that became runnable
in the same millisecond run in the order in which a process pushed them. Nothing else depends on the producer's clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

from components.conf import QueueOptions
from components.exceptions import InvalidName
from components.kit.ids import id_of, uuid7
from components.kit.validation import check_seconds
from components.services.queues.arguments import encode, normalize_call
from components.services.queues.facts import MICROSECOND, TaskInfo, expires_at, to_ms, to_us

MAX_NAME = 200  # characters of a queue's name
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)  # every time zone can show it; earlier instants are just as past
LATEST = datetime(2248, 1, 1, tzinfo=UTC)  # scores of Redis are floats, and cannot hold later instants
_PRIORITIES = range(-100, 101)
_ID = re.compile(r"[!-~]{1,64}")


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """A task to push, to run after *delay* seconds, *at* an aware datetime, or now."""

    name: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    queue: str = "default"
    priority: int = 0
    delay: float | None = None
    at: datetime | None = None
    #: Seconds that a claim lasts without renewal; None is the backend's.
    lease: float | None = None
    #: It is dropped if it has not started in this many seconds after it could run first, or by this aware datetime.
    expires: float | datetime | None = None
    #: While a task with this key is unfinished, no other with it is stored.
    unique: str | None = None
    #: A periodic task's tick: the name and the instant, which must be later than the last of that name.
    tick: tuple[str, datetime] | None = None
    #: If the last tick of that name is later than this, it counts as none: the server's clock had jumped ahead.
    tick_limit: datetime | None = None
    #: The id, if somebody has been told it already; None for a new UUID of version 7. Of a UUID, its digits are kept.
    id: str | None = None
    #: Whether the control room never shows its arguments, result and tracebacks.
    sensitive: bool = False
    #: Short texts that travel with the task to the middleware around its runs; 4,096 bytes as JSON at most.
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.id, str | UUID):
            object.__setattr__(self, "id", id_of(self.id))


class CheckedTask:
    """
    A task that was checked and may be pushed. Attributes that push.lua reads have the names that they have there.

    Raises NotSerializable, BodyTooLarge, InvalidName or ValueError.
    """

    def __init__(self, task: NewTask, options: QueueOptions) -> None:
        self.queue = check_queue(task.queue)
        if task.lease is not None:
            check_seconds("lease", task.lease)
        if isinstance(task.priority, bool) or task.priority not in _PRIORITIES:
            raise ValueError(
                f"The priority of {task.name} is {task.priority!r}; it must be a whole number, -100 to 100."
            )
        if task.id is not None and not _ID.fullmatch(task.id):
            raise ValueError(
                f"The id of {task.name} is {task.id[:80]!r}; it must be 1 to 64 ASCII characters without blanks."
            )
        _check_instant(task)
        self.expires = _expiry(task)
        if task.at is not None and task.at < EARLIEST:
            task = replace(task, at=EARLIEST)
        self.task = task
        self.priority = int(task.priority)
        self.due: int | str = 0
        if task.at is not None:
            self.due = to_us(task.at)
        elif task.delay:
            self.due = f"+{timedelta(seconds=task.delay) // MICROSECOND}"
        self.lease = to_ms(task.lease) if task.lease else 0
        self.unique = digest(task.name, task.unique) if task.unique is not None else "-"
        #: The number of its queue in the call of push.lua.
        self.number = 0
        self._call(task.args, task.kwargs, task.id, options)

    def _call(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], task_id: str | None, options: QueueOptions
    ) -> None:
        task = self.task
        self.args, self.kwargs = normalize_call(task.name, args, kwargs)
        self.id = task_id or uuid7()
        call: dict[str, Any] = {"expires": self.expires} if self.expires else {}  # first: see _task.lua
        call |= {"args": self.args, "kwargs": self.kwargs, **({"sensitive": True} if task.sensitive else {})}
        self.body = encode(task.name, call, options.max_body, task.metadata)

    def called_with(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], options: QueueOptions
    ) -> CheckedTask:
        """Return another call of the same task, with an id of its own. Only the arguments are checked."""
        other = object.__new__(CheckedTask)
        other.__dict__.update(self.__dict__)
        other._call(args, kwargs, None, options)
        return other

    @property
    def is_plain(self) -> bool:
        """Whether enqueue.lua can store it: it runs now, with the backend's lease, and has no unique key or tick."""
        return not self.due and not self.lease and self.unique == "-" and self.task.tick is None

    def stored(self, enqueued_at: datetime) -> TaskInfo:
        """Return the task as it is once it has been stored."""
        task = self.task
        due = task.at and task.at.astimezone(UTC)
        if task.delay:
            due = enqueued_at + timedelta(seconds=task.delay)
        is_delayed = bool(due and due > enqueued_at)
        return TaskInfo.of(
            {
                "id": self.id,
                "name": task.name,
                "args": self.args,
                "kwargs": self.kwargs,
                "queue": self.queue,
                "priority": self.priority,
                "enqueued_at": enqueued_at,
                "state": "delayed" if is_delayed else "ready",
                "run_after": due,
                "sensitive": task.sensitive,
                "metadata": dict(task.metadata),
                "due_at": due if is_delayed else None,
                "expires_at": expires_at(self.expires, max(enqueued_at, due or enqueued_at)),
            }
        )


class Tick(NamedTuple):
    """A tick that is pushed with a task, with the names of push.lua; *place* is that of the task, counted from 1."""

    place: int
    name: str
    tick: int
    limit: int


def ticks_of(tasks: Iterable[CheckedTask]) -> list[Tick]:
    """Return the ticks that *tasks* stand for."""
    return [
        Tick(place, task.tick[0], to_us(task.tick[1]), to_us(task.tick_limit) if task.tick_limit else 0)
        for place, task in enumerate((checked.task for checked in tasks), start=1)
        if task.tick
    ]


def check_queue(name: str) -> str:
    """Return *name* if it is a valid name of a queue. Raises InvalidName."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise InvalidName(
            f"A queue cannot be called {name!r}: the name must have 1 to {MAX_NAME} printable characters."
        )
    return name


def named(new: NewTask) -> NewTask:
    """Return *new* with an id, which distinguishes it from another task that is stored in its place."""
    return new if new.id else replace(new, id=uuid7())


def digest(name: str, key: str) -> str:
    """Return the unique key as it is stored: of a fixed length, however long the names of task and key are."""
    return blake2b(f"{name}\n{key}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _expiry(task: NewTask) -> str:
    """Return when *task* expires, as it is stored: a microsecond, or "+" and how many after it could run first."""
    if task.expires is None:
        return ""
    if isinstance(task.expires, datetime):
        if task.expires.tzinfo is None:
            raise ValueError(
                f"{task.name} expires at {task.expires!r}, which has no time zone; give an aware datetime."
            )
        return str(max(0, to_us(task.expires)))
    check_seconds("expiry", task.expires)
    return f"+{timedelta(seconds=task.expires) // MICROSECOND}"


def _check_instant(task: NewTask) -> None:
    if task.delay is not None and task.at is not None:
        raise ValueError(f"{task.name} has both a delay and an instant to run at; give one of them.")
    if task.delay is not None:
        check_seconds(f"delay of {task.name}", task.delay, may_be_zero=True)
    if task.at is not None and task.at.tzinfo is None:
        raise ValueError(
            f"{task.name} is to run at {task.at!r}, which has no time zone; give an aware datetime."
        )
    if task.at is not None and task.at > LATEST:
        raise ValueError(f"{task.name} is to run at {task.at!r}, which is later than {LATEST!r}.")
