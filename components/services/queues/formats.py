"""
How a task is written down, and how it is read.

Strings of their own for what changes at different times, so that scripts never touch the payload: the task
record (a head of words, a line feed, the body as pushed), the run record (words, from the first claim on), the
errors and the progress (JSON). The result of a successful task is these, as they were, a line each. The record,
the run and the errors begin with, or hold, the number of their format: a reader knows every older one, and
leaves what is newer than itself to the newer release.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from components.exceptions import UnknownFormat
from components.services.queues.records import (
    EPOCH,
    Progress,
    State,
    TaskFailure,
    TaskInfo,
    from_us,
    to_us,
)

FORMAT = 1
MOST_ERRORS = 20  # a task that fails for weeks keeps its latest
LONGEST_NOTE = 10_000  # characters of what a task says of its progress

#: What reading raises where something else is stored than was written here; all become a ValueError.
NONSENSE = (AttributeError, KeyError, TypeError, OverflowError, IndexError, RecursionError)

#: Ends that no worker wrote down.
_UNSAID = {
    "crashed": (
        TaskFailure(
            "components.exceptions.WorkerDied",
            "The workers that started this task died, or stopped renewing its lease, before it had ended.",
        ),
    ),
    "cancelled": (
        TaskFailure("components.exceptions.TaskCancelled", "The task was cancelled before it had ended."),
    ),
}


def read_task(
    task_id: str,
    state: State,
    record: bytes,
    run: bytes | None = None,
    errors: bytes | None = None,
    progress: bytes | None = None,
) -> TaskInfo:
    """
    A task that has not succeeded, from its strings.

    Raises UnknownFormat if a newer release wrote it, ValueError if it is no task record at all.
    """
    head, body = _split(task_id, record)
    try:
        facts = _read_record(task_id, head, body)
        facts |= _read_run(run)
        facts |= {"state": state, "errors": _read_errors(run, errors), "progress": _read_progress(progress)}
        return TaskInfo.of(facts)
    except NONSENSE as error:
        raise _nonsense(task_id, error) from error


def read_result(task_id: str, result: bytes) -> TaskInfo:
    """A successful task from write_result(). Raises UnknownFormat if a newer release wrote it, or ValueError."""
    head, rest = _split(task_id, result)
    try:
        body, run, finished_us, errors, value = rest.split(b"\n")
    except ValueError:
        raise ValueError(f"The result of task {task_id} cannot be read: it has not six lines.") from None
    try:
        known = _read_run(run) | {"finished_at": from_us(finished_us), "is_cancelled": False}
        return TaskInfo(
            **_read_record(task_id, head, body),
            state="successful",
            **known,
            errors=_read_errors(run, errors),
            return_value=json.loads(value),
        )
    except NONSENSE as error:
        raise _nonsense(task_id, error) from error


def write_result(record: bytes, run: bytes, errors: bytes, finished_at: datetime, value: str) -> bytes:
    """The result of a task that was claimed with these strings and returned *value*, JSON."""
    return b"\n".join((record, run, b"%d" % to_us(finished_at), errors, value.encode()))


def write_errors(errors: Sequence[TaskFailure]) -> str:
    """The JSON of *errors*, oldest first; of many, the latest."""
    kept = [[error.exception_class_path, error.traceback] for error in errors[-MOST_ERRORS:]]
    return json.dumps({"v": FORMAT, "errors": kept})


def write_progress(progress: Progress) -> str:
    """The JSON of *progress*; of a long note, the beginning."""
    at = to_us(progress.at) if progress.at else 0
    note = str(progress.note)[:LONGEST_NOTE]
    return json.dumps({"v": FORMAT, "done": progress.done, "total": progress.total, "note": note, "at": at})


def unreadable(task_id: str, queue: str, state: State, reason: str, errors: bytes | None = None) -> TaskInfo:
    """What can be shown of an entry that read_task() refused."""
    failures: tuple[TaskFailure, ...] = ()
    if errors:
        with suppress(UnknownFormat, ValueError, *NONSENSE):
            failures = _read_errors(None, errors)
    return TaskInfo(
        id=task_id,
        name="",
        args=[],
        kwargs={},
        queue=queue,
        priority=0,
        state=state,
        enqueued_at=EPOCH,
        errors=failures or (TaskFailure("builtins.ValueError", reason),),
    )


def run_state(run: bytes | None) -> str:
    """
    The word of a run record: waiting (as before any, or if it cannot be read), running, cancelling, dead, crashed or
    cancelled.
    """
    words = (run or b"").split(b" ", 2)
    return words[1].decode(errors="replace") if len(words) > 1 else "waiting"


def unique_key(record: bytes) -> bytes:
    """The unique key in a task record that read_task() has read; "-" if it has none."""
    return record.split(b" ", 7)[6]


def own_lease(record: bytes) -> int:
    """The milliseconds of a record's own lease; 0 if it has none, or if it is no record."""
    words = record.split(b" ", 6)
    return int(words[5]) if len(words) == 7 and words[0] == b"1" and words[5].isdigit() else 0


def _split(task_id: str, record: bytes) -> tuple[list[str], bytes]:
    head, separator, body = record.partition(b"\n")
    words = head.decode().split(" ", 7)
    if words[0].isdigit() and int(words[0]) > FORMAT:
        raise UnknownFormat(
            f"Task {task_id} is stored in format {words[0]}, and this release knows formats up to {FORMAT}: "
            "a newer release has to run it."
        )
    if not separator or len(words) != 8 or words[0] != str(FORMAT):
        raise ValueError(f"Task {task_id} has no readable record; it begins with {record[:60]!r}.")
    return words, body


def _read_record(task_id: str, head: list[str], body: bytes) -> dict[str, Any]:
    _format, enqueued, due, priority, _due_first, _lease, _unique, queue = head
    payload = json.loads(body.decode())  # of bytes, json would first guess the encoding
    for name, kind in {"task": str, "args": list, "kwargs": dict}.items():
        if not isinstance(payload[name], kind):
            raise TypeError(f"{name} is {type(payload[name]).__name__}, not {kind.__name__}")
    return {
        "id": task_id,
        "name": payload["task"],
        "args": payload["args"],
        "kwargs": payload["kwargs"],
        "queue": queue,
        "priority": int(priority),
        "enqueued_at": from_us(enqueued),
        "run_after": from_us(due) if int(due) else None,
        "sensitive": payload.get("sensitive", False) is True,
    }


def _read_run(run: bytes | None) -> dict[str, Any]:
    if not run:
        return {}
    version, *words = run.decode().split(" ")
    if int(version) > FORMAT:
        raise UnknownFormat(f"Its run is stored in format {version}, newer than {FORMAT}.")
    state, _token, starts, crashes, first, last, ended, _score, *workers = words
    return {
        "started_at": from_us(first) if first != "0" else None,
        "last_attempted_at": from_us(last) if last != "0" else None,
        "finished_at": from_us(ended) if ended != "0" else None,
        "worker_ids": tuple(workers),
        "starts": int(starts),
        "crashes": int(crashes),
        "is_cancelled": state in ("cancelling", "cancelled"),
    }


def _read_errors(run: bytes | None, errors: bytes | None) -> tuple[TaskFailure, ...]:
    read: tuple[TaskFailure, ...] = ()
    if errors:
        document = json.loads(errors)
        if document["v"] > FORMAT:
            raise UnknownFormat(f"Its errors are stored in format {document['v']}, newer than {FORMAT}.")
        read = tuple(TaskFailure(str(path), str(said)) for path, said in document["errors"])
    return (*read, *_UNSAID.get(run_state(run), ()))


def _read_progress(progress: bytes | None) -> Progress | None:
    if not progress:
        return None
    document = json.loads(progress)
    if document["v"] > FORMAT:
        return None
    done, total = document["done"], document["total"]
    if not all(math.isfinite(number) for number in (done, 0 if total is None else total)):
        raise ValueError(f"Its progress is {done!r} of {total!r}, which are no numbers that can be shown.")
    at = from_us(document["at"]) if document["at"] else None
    return Progress(done, total, str(document["note"]), at)


def _nonsense(task_id: str, error: Exception) -> ValueError:
    return ValueError(f"What is stored of task {task_id} cannot be read: {error!r}.")
