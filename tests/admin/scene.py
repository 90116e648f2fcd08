"""Tasks of every state and workers, made the way real ones come about; each function returns what it made."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from components.services.queues import Claimed, Consumer, Finished, NewTask, TaskFailure, TaskQueue
from components.services.queues.records import write_errors, write_result

TRACEBACK = (
    'Traceback (most recent call last):\n  File "tasks.py", line 4, in send\nOSError: <b>no route</b>\n'
)


def ready(queue: str = "mail", count: int = 1, **task: Any) -> list[str]:
    new = NewTask(name="market.tasks.send", queue=queue, **task)
    return [info.id for info in TaskQueue().push_many([new] * count)]


def delayed(queue: str = "mail", count: int = 1) -> list[str]:
    return ready(queue, count, delay=3600)


def running(queue: str = "mail", **task: Any) -> str:
    return _claim(worker(queue), queue, **task).id


def dead(queue: str = "mail", failures: int = 1, **task: Any) -> str:
    consumer = worker(queue)
    errors = write_errors([TaskFailure("builtins.OSError", TRACEBACK)] * failures)
    return _hand_in(consumer, _claim(consumer, queue, **task), "dead", errors)


def successful(queue: str = "mail", result: Any = None, **task: Any) -> str:
    consumer = worker(queue)
    claimed = _claim(consumer, queue, **task)
    info = replace(claimed.read(), finished_at=datetime.now(UTC), return_value=result)
    return _hand_in(consumer, claimed, "successful", write_result(info))


def worker(*queues: str, **options: Any) -> Consumer:
    consumer = Consumer(**options)
    consumer.renew(queues)
    return consumer


def one_of_each(queue: str = "mail") -> dict[str, str]:
    """A task in each state; ids by state. The ready one comes last, or the others would be it."""
    return {
        "running": running(queue),
        "dead": dead(queue),
        "successful": successful(queue),
        "delayed": delayed(queue)[0],
        "ready": ready(queue)[0],
    }


def _claim(consumer: Consumer, queue: str, **task: Any) -> Claimed:
    ready(queue, **task)
    return consumer.advance(consumer.request({queue: 1}, 1)).claimed[0]


def _hand_in(
    consumer: Consumer, claimed: Claimed, outcome: Literal["successful", "dead"], document: str
) -> str:
    consumer.advance(consumer.request({claimed.queue: 0}, 0, [Finished(claimed, outcome, document)]))
    consumer.leave()
    return claimed.id
