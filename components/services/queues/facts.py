"""The facts of task queues: all that is known of a task, the sizes of a queue, a worker, what became of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from components.kit.stored import EPOCH

State = Literal["ready", "delayed", "running", "dead", "successful"]

MICROSECOND = timedelta(microseconds=1)
LAST_INSTANT = datetime(9999, 12, 1, tzinfo=UTC)  # that every time zone can show


def from_us(microseconds: int | str | bytes) -> datetime:
    """Return the instant so many microseconds after 1970, exactly. Raises ValueError or OverflowError."""
    return EPOCH + timedelta(0, 0, int(microseconds))


def to_us(instant: datetime) -> int:
    """Return the microseconds from 1970 to an aware datetime, exactly."""
    return (instant - EPOCH) // MICROSECOND


def read_instant(microseconds: bytes) -> datetime:
    """Return the instant of a score; LAST_INSTANT for a score that is none."""
    try:
        return from_us(int(float(microseconds)))
    except (ValueError, OverflowError):
        return LAST_INSTANT


def to_ms(seconds: float) -> int:
    """Return a duration in milliseconds."""
    return round(seconds * 1000)


@dataclass(frozen=True)
class TaskFailure:
    """Why an attempt failed: the dotted path of the exception's class, and its traceback as text."""

    exception_class_path: str
    traceback: str


@dataclass(frozen=True)
class Progress:
    """How far a task is: *done* of *total*, in units of its own, and a *note*."""

    done: float
    total: float | None = None
    note: str = ""
    #: When it said so.
    at: datetime | None = None

    @property
    def percent(self) -> float | None:
        """How much is done, 0 to 100, or None without a total."""
        return min(100.0, 100 * self.done / self.total) if self.total else None


@dataclass(frozen=True, kw_only=True)
class TaskInfo:
    """All that is known of one task. Instants are aware, UTC, by the clock of Redis."""

    id: str
    #: The dotted path of the task's function.
    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    queue: str
    priority: int
    state: State
    enqueued_at: datetime
    #: The earliest it may run, if it was delayed.
    run_after: datetime | None = None
    #: When its next attempt is due; of delayed tasks.
    due_at: datetime | None = None
    #: When it was first and last claimed.
    started_at: datetime | None = None
    last_attempted_at: datetime | None = None
    finished_at: datetime | None = None
    #: When the claim ends unless the worker renews it; of running tasks.
    lease_expires_at: datetime | None = None
    #: One entry per start; of more than a thousand, the latest.
    worker_ids: tuple[str, ...] = ()
    #: How often it was started, and how many workers died of it, or under it, since it was last sent.
    starts: int = 0
    crashes: int = 0
    #: How many starts were cut off since it was last sent: the worker ended before the task did. None of them is
    #: counted in *starts*.
    cut_off: int = 0
    #: A running task that is to be cancelled, or one that was.
    is_cancelled: bool = False
    #: How far it says it is.
    progress: Progress | None = None
    errors: tuple[TaskFailure, ...] = ()
    return_value: Any = None
    #: Whether it was pushed with the mark that its arguments, result and tracebacks are not to be shown.
    sensitive: bool = False

    @classmethod
    def of(cls, facts: dict[str, Any]) -> TaskInfo:
        """Return TaskInfo(**facts), in a third of the time: a frozen dataclass sets its fields one by one."""
        info = object.__new__(cls)
        info.__dict__.update(facts)
        return info


@dataclass(frozen=True, kw_only=True)
class QueueStats:
    """The size of each state of one queue. *successful* counts what can still be listed."""

    name: str
    ready: int
    delayed: int
    running: int
    dead: int
    successful: int
    #: Seconds that the longest waiting ready task has been runnable.
    oldest_age: float | None
    next_due_at: datetime | None
    paused: bool
    #: How many starts were cut off, until none was for 30 days.
    cut_off: int = 0


@dataclass(frozen=True, kw_only=True)
class WorkerInfo:
    """A worker or poller by its last heartbeat."""

    id: str
    kind: str
    host: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int
    running: int
    started_at: datetime
    seen_at: datetime
    #: Its heartbeat is younger than a lease.
    alive: bool
    #: It takes no new tasks.
    is_quiet: bool = False
    #: What it was asked to do: "quiet", "stop" or "".
    order: str = ""
    #: Which site it belongs to (kit/site.py); "" for a worker of an older release.
    site: str = ""


def unserved(queues: Sequence[QueueStats], workers: Sequence[WorkerInfo]) -> list[QueueStats]:
    """Return those of *queues* in which tasks wait that none of *workers* takes."""
    served = {
        name
        for worker in workers
        if worker.alive and worker.kind == "worker" and not worker.is_quiet
        for name in worker.queues
    }
    if "*" in served:
        return []
    return [queue for queue in queues if queue.ready and not queue.paused and queue.name not in served]


@dataclass(frozen=True)
class Cancelled:
    """What became of tasks that were to be cancelled."""

    #: How many waited, and are among the dead now.
    at_once: int
    #: How many run, and will be told.
    asked: int


@dataclass(frozen=True)
class Resent:
    """What became of dead tasks that were to be sent again."""

    sent: int
    #: Ids that stay dead: other unfinished tasks have their unique keys.
    refused: list[str]
