"""Tasks of every state, workers and periodic tasks, made as real ones come about; functions return what they made."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from components.services.queues import (
    Claimed,
    Consumer,
    Finished,
    NewTask,
    PeriodicTask,
    Progress,
    TaskFailure,
    TaskQueue,
    cron,
    every,
    task,
)
from components.services.queues import periodic_tasks as periodic
from components.services.queues.formats import write_errors
from tests.support.queues import hand_in, succeeded, to_retry
from tests.support.waiting import eventually

TRACEBACK = (
    'Traceback (most recent call last):\n  File "tasks.py", line 4, in send\nOSError: <b>no route</b>\n'
)
KIND = "builtins.OSError"
ROOT = "/admin/components/queue/"
MAIL = {"alias": "default", "queue": "mail"}


def of(verb: str, state: str, *ids: str, **query: str) -> str:
    """The address of a verb, for those tasks of a state."""
    return f"{ROOT}{verb}/?{urlencode({**MAIL, 'state': state, **query, 'id': ids}, doseq=True)}"


def ready(queue: str = "mail", count: int = 1, **task: Any) -> list[str]:
    new = NewTask(**{"name": "market.tasks.send", "queue": queue, **task})
    return [info.id for info in TaskQueue().push_many([new] * count) if info]


def delayed(queue: str = "mail", count: int = 1) -> list[str]:
    return ready(queue, count, delay=3600)


def running(queue: str = "mail", progress: Progress | None = None, **task: Any) -> str:
    consumer = worker(queue)
    claimed = _claim(consumer, queue, **task)
    if progress:
        assert consumer.progress(claimed, progress)
    return claimed.id


def retrying(queue: str = "mail", **task: Any) -> str:
    """It has failed once, and is due again in an hour."""
    consumer = worker(queue)
    claimed = _claim(consumer, queue, **task)
    return _hand_in(consumer, to_retry(claimed, seconds=3600))


def dead(queue: str = "mail", failures: int = 1, **task: Any) -> str:
    consumer = worker(queue)
    claimed = _claim(consumer, queue, **task)
    errors = write_errors([TaskFailure(KIND, TRACEBACK)] * failures)
    return _hand_in(consumer, Finished(claimed, "dead", _started(claimed), errors))


def successful(queue: str = "mail", result: Any = None, **task: Any) -> str:
    consumer = worker(queue)
    return _hand_in(consumer, succeeded(_claim(consumer, queue, **task), result))


def worker(*queues: str, **options: Any) -> Consumer:
    consumer = Consumer(**options)
    consumer.renew(queues)
    return consumer


def one_of_each(queue: str = "mail", result: Any = None, **task: Any) -> dict[str, str]:
    """A task in each state; ids by state. The ready one comes last, or the others would be it."""
    return {
        "running": running(queue, **task),
        "dead": dead(queue, **task),
        "successful": successful(queue, result, **task),
        "delayed": ready(queue, delay=3600, **task)[0],
        "ready": ready(queue, **task)[0],
    }


def _claim(consumer: Consumer, queue: str, **task: Any) -> Claimed:
    ready(queue, **task)
    return consumer.advance(consumer.request({queue: 1}, 1)).claimed[0]


def _started(claimed: Claimed) -> datetime:
    at = claimed.read().last_attempted_at
    assert at
    return at


def _hand_in(consumer: Consumer, finished: Finished) -> str:
    """Hand it in, and wait for the next millisecond: lists are sorted by those, and tests say in which order."""
    hand_in(consumer, finished)
    consumer.leave()
    ended = _milliseconds()
    assert eventually(lambda: _milliseconds() > ended, pause=0)
    return finished.task.id


def _milliseconds() -> int:
    """By the clock of this machine, which is that of Redis as well."""
    return time.time_ns() // 1_000_000


@task
def sweep(until: str = "now") -> None: ...


@task(unique=True)
def once_at_a_time() -> None: ...


HOURLY = PeriodicTask(sweep, every(hours=1), "once", [], {})
NIGHTLY = PeriodicTask(sweep, cron("0 3 * * *", tz="Europe/Berlin"), "skip", ["<b>month</b>"], {})
UNIQUE = PeriodicTask(once_at_a_time, every(days=1), "all", [], {})


@contextmanager
def declare_only(*entries: PeriodicTask) -> Iterator[None]:
    """These periodic tasks are declared in this process, and no others."""
    periodic.declared()  # what the apps declare is known from now on
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(periodic, "_declared", {entry.name: entry for entry in entries})
        yield
