"""
The strings that tasks are stored as.

What changes at different times has a string of its own, so that scripts never touch the payload: the task record (a
line of fields and the name of the queue, then the body as pushed), the run record (from the first claim on), the
errors and the progress (JSON). The result of a successful task is these, as they were, a line each. Records, errors
and progress hold the number of their format: a reader knows every older format, and leaves what is newer than itself
to the newer release. The fields are declared in lua/_task.lua and lua/_run.lua.
"""

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, get_args

from components.exceptions import UnknownFormat
from components.kit.decoding import EPOCH, instant_of
from components.kit.lua_headers import record
from components.services.queues.facts import (
    Progress,
    QueueStats,
    State,
    TaskFailure,
    TaskInfo,
    WorkerInfo,
    expires_at,
    from_us,
    read_instant,
    to_us,
)

FORMAT = 1
TASK, RUN = record("queues", "task"), record("queues", "run")
SPAN = 2**43  # milliseconds of one rank, as in lua/_place.lua
_HEAD = (*TASK.fields, "queue")
_read_json = json.JSONDecoder().raw_decode  # in a third of the time of json.loads()
MOST_ERRORS = 20  # a task that fails for weeks keeps its latest
_MOST_BYTES = 1_048_576  # of errors, unless the caller says otherwise: max_result's default
_LONGEST_PATH = 200  # characters of the dotted path of an exception's class
LONGEST_NOTE = 10_000  # characters of what a task says of its progress

#: What reading may raise for data that this app has not written; it becomes a ValueError.
NONSENSE = (AttributeError, KeyError, TypeError, OverflowError, IndexError, RecursionError)

#: The states of a run record, as they are shown.
_STATES: dict[str, State] = {
    "running": "running",
    "cancelling": "running",
    "dead": "dead",
    "crashed": "dead",
    "cancelled": "dead",
    "expired": "dead",
}
#: The errors that are shown for ends that no worker has stored.
UNSAID = {
    "crashed": TaskFailure(
        "components.exceptions.WorkerDied",
        "The workers that started this task died, or stopped renewing its lease, before it had ended: perhaps "
        "they were killed for their memory, or the task held the GIL for longer than its lease, as C code can. "
        "Then give it a longer lease.",
    ),
    "cancelled": TaskFailure(
        "components.exceptions.TaskCancelled", "The task was cancelled before it had ended."
    ),
    "expired": TaskFailure(
        "components.exceptions.TaskExpired", "The task had expired before a worker could start it."
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
    Return a task that has not succeeded, from its strings.

    Raises UnknownFormat if a newer release wrote it, ValueError if it is not a task record at all.
    """
    head, body = _split(task_id, record)
    try:
        facts = _read_record(task_id, head, body)
        facts["state"] = state
        if progress:
            facts["progress"] = _read_progress(progress)
        if errors:
            facts |= _read_errors(errors)
        if run:
            found = RUN.read(run.decode())
            facts |= _read_run(found)
            if found["state"] in UNSAID:
                facts["errors"] = (*facts.get("errors", ()), UNSAID[found["state"]])
        return TaskInfo.of(facts)
    except NONSENSE as error:
        raise _nonsense(task_id, error) from error


def queue_of(stored: bytes) -> str:
    """Return the queue of a task from its record or its result."""
    return stored.partition(b"\n")[0].split(b" ", len(TASK.fields))[-1].decode(errors="replace")


def read_result(task_id: str, result: bytes) -> TaskInfo:
    """
    Return a successful task from what write_result() wrote.

    Raises UnknownFormat if a newer release wrote it, ValueError if it is none.
    """
    head, rest = _split(task_id, result)
    try:
        body, run, finished_us, errors, value = rest.split(b"\n")
    except ValueError:
        raise ValueError(
            f"The result of task {task_id} cannot be read: it does not have six lines."
        ) from None
    try:
        known = _read_run(RUN.read(run.decode())) if run else {}
        known |= {"finished_at": from_us(finished_us), "is_cancelled": False}
        known |= _read_errors(errors) if errors else {}
        return TaskInfo(
            **(_read_record(task_id, head, body) | known), state="successful", return_value=json.loads(value)
        )
    except NONSENSE as error:
        raise _nonsense(task_id, error) from error


def write_result(record: bytes, run: bytes, errors: bytes, finished_at: datetime, value: str) -> bytes:
    """Return the result of a task that was claimed with these strings and returned *value*, JSON."""
    return b"\n".join((record, run, b"%d" % to_us(finished_at), errors, value.encode()))


def write_errors(errors: Sequence[TaskFailure], most: int = _MOST_BYTES, metadata: str = "") -> str:
    """
    Return the JSON of *errors*, oldest first, and of the *metadata* that the attempt has left, which are JSON.

    Of many errors the latest are kept, in *most* bytes at most. A traceback that takes more than a quarter loses its
    middle, and says so.
    """
    kept: list[str] = []
    more = f', "metadata": {metadata}' if metadata else ""
    left = most - len(_ERRORS % ("", ""))
    for error in reversed(errors[-MOST_ERRORS:]):
        written = _write_error(error, most // 4)
        if len(written) + 2 > left:
            break
        kept.insert(0, written)
        left -= len(written) + 2
    return _ERRORS % (", ".join(kept), more)


_ERRORS = f'{{"v": {FORMAT}, "errors": [%s]%s}}'


def _write_error(error: TaskFailure, most: int) -> str:
    path, traceback = error.exception_class_path[:_LONGEST_PATH], error.traceback
    written = json.dumps([path, traceback])
    # A character takes one byte as a rule, and twelve at most; so what is cut for twelve surely fits.
    for bytes_each in (1, 6, 12):
        if len(written) <= most:
            break
        half = max(0, (most - len(path) * bytes_each - 200) // (2 * bytes_each))
        said = f"\n[... {len(traceback) - 2 * half:,} of {len(traceback):,} characters are left out ...]\n"
        written = json.dumps([path, traceback[:half] + said + traceback[len(traceback) - half :]])
    return written


def write_progress(progress: Progress) -> str:
    """Return the JSON of *progress*; of a long note, its beginning."""
    at = to_us(progress.at) if progress.at else 0
    note = str(progress.note)[:LONGEST_NOTE]
    return json.dumps({"v": FORMAT, "done": progress.done, "total": progress.total, "note": note, "at": at})


def read_row(
    queue: str, state: State, task_id: str, score: float, stored: Sequence[bytes | None]
) -> TaskInfo | None:
    """
    Return a task of a listing, or None if its result has expired since it was listed. Of one that cannot be read,
    return what can be shown, with the reason as its error.

    What is *stored* is the result if it has succeeded, else its record, run, errors and progress.
    """
    record, *others = stored
    try:
        if state == "successful":
            return read_result(task_id, record) if record else None
        info = read_task(task_id, state, record or b"", *others)
    except (UnknownFormat, ValueError) as reason:
        errors: tuple[TaskFailure, ...] = ()
        if others and others[1]:
            with suppress(UnknownFormat, ValueError, *NONSENSE):
                errors = _read_errors(others[1])["errors"]
        return TaskInfo(
            id=task_id,
            name="",
            args=[],
            kwargs={},
            queue=queue,
            priority=0,
            state=state,
            enqueued_at=EPOCH,
            errors=errors or (TaskFailure("builtins.ValueError", str(reason)),),
        )
    return placed(info, due_us=score if state == "delayed" else None, ends_ms=score)


def placed(info: TaskInfo, *, due_us: float | None, ends_ms: float | None) -> TaskInfo:
    """Return *info* with what only its place tells: when it is due, or when its lease ends."""
    if info.state == "running":
        return replace(info, lease_expires_at=instant_of(ends_ms) if ends_ms is not None else None)
    return replace(info, state="delayed", due_at=read_instant(b"%f" % due_us)) if due_us is not None else info


def read_sizes(queue: str, sizes: Sequence[Any]) -> QueueStats:
    """Return the sizes of a queue, from what a script has counted."""
    *counts, paused, age, due, cut, retrying, trimmed = sizes
    return QueueStats(
        name=queue,
        **dict(zip(get_args(State), counts, strict=True)),
        paused=bool(paused),
        oldest_age=age / 1000 if age >= 0 else None,
        next_due_at=read_instant(due) if due != b"0" else None,
        cut_off=cut,
        retrying=retrying,
        trimmed=trimmed,
    )


def read_worker(
    worker_id: str,
    about: bytes,
    started: bytes | None,
    order: bytes | None,
    seen_at: datetime,
    now: datetime,
    lease: timedelta,
) -> WorkerInfo:
    """Return what a worker says of itself; if that cannot be read, an unreadable worker that is not alive."""
    facts: dict[str, Any] = {"kind": "unreadable", "host": "", "queues": (), "started_at": seen_at}
    facts |= dict.fromkeys(("pid", "concurrency", "running"), 0)
    with suppress(ValueError, *NONSENSE):
        said = json.loads(about)
        facts = {
            "kind": str(said["kind"]),
            "host": str(said["host"]),
            "pid": int(said["pid"]),
            "queues": tuple(str(queue) for queue in said["queues"]),
            "concurrency": int(said["concurrency"]),
            "running": int(said["running"]),
            "started_at": from_us(started or b""),
            # What is later was seen by a clock that had jumped ahead.
            "alive": now - lease < seen_at < now + lease,
            "is_quiet": bool(said.get("quiet", False)),
            "order": (order or b"").decode(errors="replace"),
            "site": str(said.get("site", "")),
            "broken": tuple(str(name) for name in said.get("broken", ())),
        }
    return WorkerInfo(id=worker_id, seen_at=seen_at, **facts)


def state_of(run: bytes | None) -> State:
    """Return the state that a run record tells; "ready" before any claim, or if it cannot be read."""
    return _STATES.get(RUN.read(run or b"")["state"], "ready")


def starts_of(run: bytes, _at: int = RUN.fields.index("starts")) -> int:
    """Return how often a task was started, from a run record that a script has written."""
    return int(run.split(b" ", _at + 1)[_at])


def crashes_of(run: bytes, _at: int = RUN.fields.index("crashes")) -> int:
    """Return how many workers have died under a task, from a run record that a script has written."""
    return int(run.split(b" ", _at + 1)[_at])


def waited(
    run: bytes, _last: int = RUN.fields.index("last"), _place: int = RUN.fields.index("place")
) -> float:
    """Return for how many seconds a claimed task was runnable, from a run record that a script has written."""
    fields = run.split(b" ", _place + 1)
    return max(0.0, int(fields[_last]) / 1e6 - int(fields[_place]) % SPAN / 1e3)


def unique_key(record: bytes, _at: int = TASK.fields.index("unique")) -> bytes:
    """Return the unique key in a task record that read_task() has read; "-" if it has none."""
    return record.split(b" ", _at + 1)[_at]


def own_lease(record: bytes, _at: int = TASK.fields.index("lease")) -> int:
    """Return the milliseconds of a record's own lease; 0 if it has none, or if it is not a record."""
    if record.split(b" ", _at + 1)[_at : _at + 1] == [b"0"]:  # as in most tasks
        return 0
    words = record.partition(b"\n")[0].split(b" ", len(TASK.fields))[: len(TASK.fields)]
    is_ours = len(words) == len(TASK.fields) and words[0] == b"1" and b"" not in words
    return int(words[_at]) if is_ours and words[_at].isdigit() else 0


def _split(task_id: str, record: bytes) -> tuple[dict[str, str], bytes]:
    """Return the fields of a task record, the name of its queue among them, and its body."""
    head, separator, body = record.partition(b"\n")
    words = head.decode().split(" ", len(TASK.fields))
    if words[0].isdigit() and int(words[0]) > FORMAT:
        raise UnknownFormat(
            f"Task {task_id} is stored in format {words[0]}, and this release knows formats up to {FORMAT}: "
            "a newer release has to run it."
        )
    if not separator or len(words) != len(_HEAD) or words[0] != str(FORMAT):
        raise ValueError(f"Task {task_id} has no readable record; it begins with {record[:60]!r}.")
    return dict(zip(_HEAD, words)), body  # noqa: B905  (they are as many)


def _read_record(task_id: str, head: dict[str, str], body: bytes) -> dict[str, Any]:
    text = body.decode()
    payload, end = _read_json(text)
    if end != len(text):
        raise ValueError(f"The body of task {task_id} cannot be read: its JSON ends at character {end}.")
    name, args, kwargs = payload["task"], payload["args"], payload["kwargs"]
    if not (isinstance(name, str) and isinstance(args, list) and isinstance(kwargs, dict)):
        kinds = {"task": str, "args": list, "kwargs": dict}
        wrong = next(field for field, kind in kinds.items() if not isinstance(payload[field], kind))
        raise TypeError(f"{wrong} is {type(payload[wrong]).__name__}, not {kinds[wrong].__name__}")
    facts = {
        "id": task_id,
        "name": name,
        "args": args,
        "kwargs": kwargs,
        "queue": head["queue"],
        "priority": int(head["priority"]),
        "enqueued_at": from_us(head["enqueued"]),
        "metadata": _read_metadata(payload["metadata"]) if "metadata" in payload else {},
    }
    if int(head["due"]):
        facts["run_after"] = from_us(head["due"])
    if "expires" in payload:
        runnable_at = max(int(head["enqueued"]), int(head["due"]))
        facts["expires_at"] = expires_at(payload["expires"], from_us(runnable_at))
    if payload.get("sensitive") is True:
        facts["sensitive"] = True
    return facts


def _read_run(found: dict[str, str]) -> dict[str, Any]:
    if int(found["format"]) > FORMAT:
        raise UnknownFormat(f"Its run is stored in format {found['format']}, newer than {FORMAT}.")
    first, last, ended = found["first"], found["last"], found["ended"]
    started_at = from_us(first) if first != "0" else None
    return {
        "started_at": started_at,
        "last_attempted_at": started_at if last == first else from_us(last) if last != "0" else None,
        "finished_at": from_us(ended) if ended != "0" else None,
        "worker_ids": tuple(found["workers"].split(",")) if found["workers"] else (),
        "starts": int(found["starts"]),
        "crashes": int(found["crashes"]),
        "cut_off": int(found["cut"]),
        "is_cancelled": found["state"] in ("cancelling", "cancelled"),
    }


def _read_metadata(found: Any) -> dict[str, str]:
    """Return the texts in *found*. Metadata that make no sense keep no task from running."""
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


def _read_errors(errors: bytes) -> dict[str, Any]:
    """Return the errors of a task, and the metadata that its latest attempt has left, if any."""
    document = json.loads(errors)
    if document["v"] > FORMAT:
        raise UnknownFormat(f"Its errors are stored in format {document['v']}, newer than {FORMAT}.")
    facts: dict[str, Any] = {
        "errors": tuple(TaskFailure(str(path), str(said)) for path, said in document["errors"])
    }
    if "metadata" in document:
        facts["metadata"] = _read_metadata(document["metadata"])
    return facts


def _read_progress(progress: bytes) -> Progress | None:
    document = json.loads(progress)
    if document["v"] > FORMAT:
        return None
    done, total = document["done"], document["total"]
    if not all(math.isfinite(number) for number in (done, 0 if total is None else total)):
        raise ValueError(f"Its progress is {done!r} of {total!r}, which cannot be shown as numbers.")
    at = from_us(document["at"]) if document["at"] else None
    return Progress(done, total, str(document["note"]), at)


def _nonsense(task_id: str, error: Exception) -> ValueError:
    return ValueError(f"What is stored of task {task_id} cannot be read: {error!r}.")
