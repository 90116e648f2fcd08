"""
The buttons that break things and move the charts. Each says what it will do. All are bounded, and undo themselves.

A show that is still on is refused, so that pressing a button twice does not double what it does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.core.cache import cache
from django_redis import get_redis_connection
from redis.exceptions import RedisError

from components.conf import conf
from components.exceptions import RedisUnavailable
from components.services.queues import TaskQueue

from . import tasks

#: Seconds for which the mail server stays broken.
BROKEN_FOR = 60
#: Seconds that one waits for a worker to begin.
_PATIENCE = 3


@dataclass(frozen=True)
class Show:
    """A button: its text, what it says before, and what it does. run() returns a sentence for the visitor."""

    name: str
    label: str
    say: str
    run: Callable[[], str]
    #: The page of the control room that shows it: its text, and the name of its view.
    room: tuple[str, str]
    #: Seconds for which it is on.
    lasts: int


class StillOn(Exception):
    """The show was begun a moment ago, and is not over."""


def begin(show: Show) -> str:
    """Begin a show, and return what to tell the visitor. Raises StillOn, RedisUnavailable."""
    # Redis itself may be what the show ends, so its key must be there before.
    try:
        is_first = cache.add(f"tour:{show.name}", 1, show.lasts)
    except RedisError as error:
        raise RedisUnavailable(f"Redis is away: {error}") from error
    if not is_first:
        raise StillOn(f"“{show.label}” is still going on. Try again in {show.lasts} seconds.")
    return show.run()


def is_mail_broken() -> bool:
    """Return whether the demo's mail server plays dead."""
    return cache.get("tour:mail") is not None


def _rush() -> str:
    tasks.rush()
    return (
        f"{tasks.BUYERS:,} people want one of {tasks.PIECES} lanterns at the same time. "
        f"Exactly {tasks.PIECES} will get one."
    )


def _break_mail() -> str:
    return (
        f"The mail server is broken for {BROKEN_FOR} seconds. Buy something now: the mail about it is retried until "
        "it is sent."
    )


def _kill_worker() -> str:
    for _ in range(tasks.NAPS):
        tasks.nap.enqueue()
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        busy = {info.worker_ids[-1] for info in TaskQueue().tasks(tasks.QUEUE, "running") if info.worker_ids}
        # Of a worker for all queues, which serves the whole site, the demo would not start another.
        crew = [each for each in TaskQueue().workers() if each.queues == (tasks.QUEUE,) and each.id in busy]
        if crew:
            os.kill(crew[0].pid, signal.SIGKILL)
            return (
                f"The worker with process {crew[0].pid} was killed while it ran tasks. Another takes them over when "
                "their lease ends, and a new worker is started."
            )
        time.sleep(0.1)
    return "No worker was busy, so none was killed. Try again."


def _kill_redis() -> str:
    server = get_redis_connection(conf().cache)
    os.kill(server.info("server")["process_id"], signal.SIGKILL)
    return "Redis was killed. It comes back after some seconds. Until then the site says what does not work."


def _fight() -> str:
    tasks.fight.enqueue()
    return f"{tasks.FIGHTERS} fighters want the lock “{tasks.ARENA}” again and again, for {tasks.SECONDS} seconds."


def _write_lines() -> str:
    tasks.write_lines.enqueue()
    return (
        f"{tasks.LINES:,} lines are being written into a log of their own, the job “{tasks.JOB}”, and counted "
        "meanwhile. In ten minutes they are deleted, with all figures of them."
    )


SHOWS: dict[str, Show] = {
    show.name: show
    for show in (
        Show(
            "rush",
            "A thousand buyers at once",
            "They all want a lantern, and there are only a hundred.",
            _rush,
            ("Queues", "admin:components_queue_changelist"),
            20,
        ),
        Show(
            "mail",
            "Break the mail server",
            "No mail can be sent for a minute. Then the tasks that failed are retried.",
            _break_mail,
            ("Queues", "admin:components_queue_changelist"),
            BROKEN_FOR,
        ),
        Show(
            "worker",
            "Kill a worker",
            "A worker process is killed while it runs tasks. Another worker takes them over.",
            _kill_worker,
            ("Queues", "admin:components_queue_changelist"),
            10,
        ),
        Show(
            "redis",
            "Kill Redis",
            "The server is killed, and started again after ten seconds.",
            _kill_redis,
            ("Queues", "admin:components_queue_changelist"),
            20,
        ),
        Show(
            "fight",
            "Fight for a lock",
            "A dozen threads want the same lock for some seconds.",
            _fight,
            ("Locks", "admin:components_lock_changelist"),
            15,
        ),
        Show(
            "lines",
            "Write a million log lines",
            "They have a log of their own, and are counted while they are written. They are deleted in ten minutes.",
            _write_lines,
            ("Logs", "admin:components_logjob_changelist"),
            60,
        ),
    )
}
