"""Facts about task queues: tasks, sizes of queues, workers, and the results of calls."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, Generic, Literal, TypeVar

from components.kit.decoding import EPOCH

_T = TypeVar("_T")
State = Literal["ready", "delayed", "running", "dead", "successful"]

MICROSECOND = timedelta(microseconds=1)
#: Later than this is late: what is due is moved and pushed within a second.
LATE = timedelta(seconds=60)
LAST_INSTANT = datetime(9999, 12, 1, tzinfo=UTC)  # the last one that fits in every time zone


@lru_cache(maxsize=256)  # what was pushed or claimed together has the same instants
def from_us(microseconds: int | str | bytes) -> datetime:
    """Return the exact instant this many microseconds after 1970. Raises ValueError or OverflowError."""
    return EPOCH + timedelta(0, 0, int(microseconds))


def to_us(instant: datetime) -> int:
    """Return the exact number of microseconds from 1970 to an aware datetime."""
    return (instant - EPOCH) // MICROSECOND


def read_instant(microseconds: bytes) -> datetime:
    """Return the instant of a score; LAST_INSTANT if the score is not an instant."""
    try:
        return from_us(int(float(microseconds)))
    except (ValueError, OverflowError):
        return LAST_INSTANT


def expires_at(stored: str, runnable_at: datetime) -> datetime | None:
    """Return when a task expires, from what is *stored* of it and when it could run first; None for never."""
    if not stored:
        return None
    return runnable_at + int(stored) * MICROSECOND if stored[0] == "+" else from_us(stored)


def to_ms(seconds: float) -> int:
    """Return a duration in milliseconds."""
    return round(seconds * 1000)


@dataclass(frozen=True)
class TaskFailure:
    """Why an attempt failed: the dotted path of the exception's class, and its traceback as text."""

    exception_class_path: str
    traceback: str

    @property
    def kind(self) -> str:
        """The exception's class as tracebacks name it: without the module if it is built in."""
        return self.exception_class_path.removeprefix("builtins.")

    @cached_property
    def message(self) -> str:
        """The first line of the exception's message; "" if it has none."""
        lines = self.traceback.splitlines()
        for line in (each.lstrip(" |") for each in reversed(lines)):
            kind, colon, message = line.partition(": ")
            if kind == self.kind and colon:
                return message.strip()
            if line.rstrip(":") == self.kind:
                return ""
        # No traceback, but a sentence: a worker that died has left none.
        stripped = (each.lstrip(" |") for each in lines)
        return next((line for line in stripped if line and not line.startswith("Traceback ")), "")


@dataclass(frozen=True)
class Progress:
    """The progress of a task: *done* of *total*, in units of its own, and a *note*."""

    done: float
    total: float | None = None
    note: str = ""
    #: When the task reported it.
    at: datetime | None = None

    @property
    def percent(self) -> float | None:
        """The percentage done, 0 to 100; None without a total."""
        return min(100.0, 100 * self.done / self.total) if self.total else None


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """All facts about one task. Instants are aware, in UTC, by the clock of Redis."""

    id: str
    #: The dotted path of the task's function.
    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    queue: str
    priority: int
    state: State
    enqueued_at: datetime
    #: The earliest instant at which it may run, if it was delayed.
    run_after: datetime | None = None
    #: When it is dropped unless it has started.
    expires_at: datetime | None = None
    #: When its next attempt is due; only for delayed tasks.
    due_at: datetime | None = None
    #: When it was first and last claimed.
    started_at: datetime | None = None
    last_attempted_at: datetime | None = None
    finished_at: datetime | None = None
    #: When the claim ends unless the worker renews it; only for running tasks.
    lease_expires_at: datetime | None = None
    #: One entry per start; only the latest thousand are kept.
    worker_ids: tuple[str, ...] = ()
    #: How often it was started, and how many workers died while running it, since it was last sent.
    starts: int = 0
    crashes: int = 0
    #: How many starts were cut off since it was last sent, because the worker ended before the task did. *starts*
    #: does not count these.
    cut_off: int = 0
    #: Whether it was cancelled, or will be while it runs.
    is_cancelled: bool = False
    #: The progress that it reported.
    progress: Progress | None = None
    errors: tuple[TaskFailure, ...] = ()
    return_value: Any = None
    #: Whether it was marked as sensitive when it was pushed, so that its arguments, result and tracebacks are hidden.
    sensitive: bool = False
    #: What middleware gave it on its way (NewTask.metadata), or what its latest failed attempt left in its place.
    metadata: dict[str, str] = field(default_factory=dict)

    def without_contents(self) -> TaskInfo:
        """Return the task without its arguments, result and tracebacks. The classes of its errors stay."""
        errors = tuple(TaskFailure(error.exception_class_path, "") for error in self.errors)
        return replace(self, args=[], kwargs={}, return_value=None, errors=errors)

    def contains(self, text: str) -> bool:
        """Return whether the id, name, arguments or latest error contain *text*, ignoring case."""
        error = self.errors[-1] if self.errors else None
        parts = [self.id, self.name, *((error.exception_class_path, error.traceback) if error else ())]
        with suppress(RecursionError):  # too deeply nested to be searched
            parts.append(json.dumps([self.args, self.kwargs], ensure_ascii=False))
        return text.casefold() in "\n".join(parts).casefold()

    @classmethod
    def of(cls, facts: dict[str, Any]) -> TaskInfo:
        """Return TaskInfo(**facts), which must have the metadata, in a third of the constructor's time."""
        info = object.__new__(cls)
        info.__dict__.update(facts)
        return info


@dataclass(frozen=True)
class Look(Generic[_T]):
    """What a bounded look at the tasks of a queue in a state has found: tasks, or failures of dead ones."""

    found: list[_T]
    #: How many tasks were looked at, and how many of the listing come before these.
    looked_at: int
    offset: int
    #: The place of the last one, for the look that continues from there.
    after: str


@dataclass(frozen=True, kw_only=True)
class QueueStats:
    """The number of tasks of a queue in each state. *successful* counts those that can still be listed."""

    name: str
    ready: int = 0
    delayed: int = 0
    running: int = 0
    dead: int = 0
    successful: int = 0
    #: Seconds for which the oldest ready task has been waiting.
    oldest_age: float | None = None
    next_due_at: datetime | None = None
    paused: bool = False
    #: How many starts were cut off. It is reset after 30 days without one.
    cut_off: int = 0
    #: How many delayed tasks have been started before, of the thousand that are due first.
    retrying: int = 0
    #: How many dead tasks "dead_limit" has removed. It is reset after a day without one.
    trimmed: int = 0


@dataclass(frozen=True, kw_only=True)
class WorkerInfo:
    """A worker or poller, as of its last heartbeat."""

    id: str
    kind: str
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    running: int
    started_at: datetime
    seen_at: datetime
    #: Whether its last heartbeat is younger than a lease.
    alive: bool = False
    #: Whether it takes no new tasks.
    is_quiet: bool = False
    #: The request that it was sent: "quiet", "stop" or "".
    order: str = ""
    #: Which site it belongs to (kit/ids.py); "" for a worker of an older release.
    site: str = ""
    #: The modules with tasks that it cannot import.
    broken: tuple[str, ...] = ()


def unserved(queues: Sequence[QueueStats], workers: Sequence[WorkerInfo]) -> list[QueueStats]:
    """Return those of *queues* in which tasks wait that none of *workers* takes."""
    served = {name for worker in taking(workers) for name in worker.queues}
    return _waiting_outside(queues, served)


def saturated(queues: Sequence[QueueStats], workers: Sequence[WorkerInfo]) -> list[QueueStats]:
    """Return those of *queues* in which tasks wait although *workers* serve them, since all of these are busy."""
    serving = taking(workers)
    served = {name for worker in serving for name in worker.queues}
    free = {name for worker in serving if worker.running < worker.concurrency for name in worker.queues}
    waiting = _waiting_outside(queues, free)
    return waiting if "*" in served else [queue for queue in waiting if queue.name in served]


def taking(workers: Sequence[WorkerInfo]) -> list[WorkerInfo]:
    """Return those of *workers* that take tasks."""
    return [worker for worker in workers if worker.alive and worker.kind == "worker" and not worker.is_quiet]


def _waiting_outside(queues: Sequence[QueueStats], names: Set[str]) -> list[QueueStats]:
    """Return those of *queues* in which tasks wait, except those with one of *names*; "*" stands for all."""
    if "*" in names:
        return []
    return [queue for queue in queues if queue.ready and not queue.paused and queue.name not in names]


def late_queues(queues: Sequence[QueueStats], now: datetime) -> list[QueueStats]:
    """Return those of *queues* in which a delayed task has been due for too long, the longest first."""
    late = [queue for queue in queues if queue.next_due_at and now - queue.next_due_at > LATE]
    return sorted(late, key=lambda queue: queue.next_due_at or now)


@dataclass(frozen=True)
class Cancelled:
    """The result of cancelling tasks."""

    #: How many were waiting, and are dead now.
    at_once: int
    #: How many are running, and will be asked to end.
    asked: int


@dataclass(frozen=True)
class Resent:
    """The result of sending dead tasks again."""

    sent: int
    #: The ids of tasks that stay dead, because other unfinished tasks have their unique keys.
    refused: list[str]
