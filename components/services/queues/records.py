"""
How a task is written down, and how it is read.

Three strings per task, so that scripts never touch the payload: the task record (a head of words, a line
feed, the body as pushed), the run record (words, from the first claim on) and a JSON list of errors.
A successful task is one JSON document. Each begins with, or holds, the number of its format: a reader
knows every older format, and leaves what is newer than itself to the newer release.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from components.exceptions import UnknownFormat

State = Literal["ready", "delayed", "running", "dead", "successful"]

FORMAT = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def from_us(microseconds: int | str | bytes) -> datetime:
    """An instant from microseconds of the epoch, exactly."""
    return _EPOCH + timedelta(microseconds=int(microseconds))


def to_us(instant: datetime) -> int:
    """Microseconds of the epoch from an aware datetime, exactly."""
    return (instant - _EPOCH) // MICROSECOND


@dataclass(frozen=True, kw_only=True)
class NewTask:
    """One task to push. Neither *delay* (seconds) nor *at* (aware datetime) means now."""

    name: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    queue: str = "default"
    priority: int = 0
    delay: float | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class TaskFailure:
    """Why an attempt failed: the dotted path of the exception's class, and its traceback as text."""

    exception_class_path: str
    traceback: str


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
    #: When it was first and last claimed.
    started_at: datetime | None = None
    last_attempted_at: datetime | None = None
    finished_at: datetime | None = None
    #: When the claim ends unless the worker renews it; of running tasks.
    lease_expires_at: datetime | None = None
    #: One entry per start.
    worker_ids: tuple[str, ...] = ()
    errors: tuple[TaskFailure, ...] = ()
    return_value: Any = None


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
    #: It takes no more tasks, and goes on with the running ones until it is stopped.
    quiet: bool


def read_task(task_id: str, state: State, record: bytes, run: bytes | None, errors: bytes | None) -> TaskInfo:
    """
    A task that has not succeeded, from its three strings.

    Raises UnknownFormat if a newer release wrote it, ValueError if it is no task record at all.
    """
    head, separator, body = record.partition(b"\n")
    words = head.decode().split(" ", 5)
    if words[0].isdigit() and int(words[0]) > FORMAT:
        raise UnknownFormat(
            f"Task {task_id} is stored in format {words[0]}, and this release knows formats up to {FORMAT}: "
            "a newer release has to run it."
        )
    if not separator or len(words) != 6 or words[0] != str(FORMAT):
        raise ValueError(f"Task {task_id} has no readable record; it begins with {record[:60]!r}.")
    with _nonsense_is_a_value_error(task_id):
        payload = json.loads(body)
        due = int(words[2])
        return TaskInfo(
            id=task_id,
            name=payload["task"],
            args=payload["args"],
            kwargs=payload["kwargs"],
            queue=words[5],
            priority=int(words[3]),
            state=state,
            enqueued_at=from_us(words[1]),
            run_after=from_us(due) if due else None,
            **_read_run(run),
            errors=_read_errors(state, errors),
        )


def unreadable(task_id: str, queue: str, state: State, reason: str, errors: bytes | None = None) -> TaskInfo:
    """What can be shown of an entry that read_task() refused."""
    failures: tuple[TaskFailure, ...] = ()
    if errors:
        with suppress(UnknownFormat, ValueError), _nonsense_is_a_value_error(task_id):
            failures = _read_errors(state, errors)
    return TaskInfo(
        id=task_id,
        name="",
        args=[],
        kwargs={},
        queue=queue,
        priority=0,
        state=state,
        enqueued_at=_EPOCH,
        errors=failures or (TaskFailure("builtins.ValueError", reason),),
    )


@contextmanager
def _nonsense_is_a_value_error(task_id: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"What is stored of task {task_id} cannot be read: {error!r}.") from error


def run_state(run: bytes | None) -> str:
    """The state in a run record: running, waiting or dead; "waiting" for a task never claimed."""
    return run.split(b" ", 2)[1].decode() if run else "waiting"


def _read_run(run: bytes | None) -> dict[str, Any]:
    if not run:
        return {}
    version, _state, _token, _starts, first, last, ended, _score, *workers = run.decode().split(" ")
    if int(version) > FORMAT:
        raise UnknownFormat(f"Its run is stored in format {version}, newer than {FORMAT}.")
    return {
        "started_at": from_us(first),
        "last_attempted_at": from_us(last),
        "finished_at": from_us(ended) if ended != "0" else None,
        "worker_ids": tuple(workers),
    }


def _read_errors(state: State, errors: bytes | None) -> tuple[TaskFailure, ...]:
    if errors:
        document = json.loads(errors)
        if document["v"] > FORMAT:
            raise UnknownFormat(f"Its errors are stored in format {document['v']}, newer than {FORMAT}.")
        return tuple(TaskFailure(*failure) for failure in document["errors"])
    if state == "dead":  # no worker lived to say why
        return (
            TaskFailure(
                "components.exceptions.WorkerDied",
                "Each worker that started this task died, or stopped renewing its lease, before the task ended.",
            ),
        )
    return ()


def write_errors(errors: Sequence[TaskFailure]) -> str:
    """The JSON of *errors*, oldest first."""
    return json.dumps(
        {"v": FORMAT, "errors": [[error.exception_class_path, error.traceback] for error in errors]}
    )


_INSTANTS = ("enqueued_at", "run_after", "started_at", "last_attempted_at", "finished_at")


def write_result(info: TaskInfo) -> str:
    """The JSON of a successful task."""
    document: dict[str, Any] = {"v": FORMAT, "task": info.name}
    for name in ("args", "kwargs", "queue", "priority", "worker_ids", "return_value"):
        document[name] = getattr(info, name)
    for name in _INSTANTS:
        instant = getattr(info, name)
        document[name] = to_us(instant) if instant else 0
    document["errors"] = [[error.exception_class_path, error.traceback] for error in info.errors]
    return json.dumps(document, separators=(",", ":"))


def read_result(task_id: str, result: bytes) -> TaskInfo:
    """A successful task from its JSON. Raises UnknownFormat if a newer release wrote it, or ValueError."""
    with _nonsense_is_a_value_error(task_id):
        return _read_result(task_id, json.loads(result))


def _read_result(task_id: str, document: dict[str, Any]) -> TaskInfo:
    if document["v"] > FORMAT:
        raise UnknownFormat(
            f"The result of task {task_id} is stored in format {document['v']}, newer than {FORMAT}."
        )
    instants: dict[str, Any] = {
        name: from_us(document[name]) if document[name] else None for name in _INSTANTS
    }
    return TaskInfo(
        id=task_id,
        name=document["task"],
        state="successful",
        worker_ids=tuple(document["worker_ids"]),
        errors=tuple(TaskFailure(*failure) for failure in document["errors"]),
        **{name: document[name] for name in ("args", "kwargs", "queue", "priority", "return_value")},
        **instants,
    )
