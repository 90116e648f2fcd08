"""
Other task queues. A module is imported only for its turn, because its library may not be installed.

Each queue is started as its documentation says, with its usual options; if there are several usual ways, in the
fastest one. All log at WARNING.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import which

from redis import Redis

from benchmarks.harness import Call

FIRST, LAST = "first", "last"  # the marks of the first and the last task of a turn


@dataclass(frozen=True)
class Peer:
    """A way to enqueue tasks, to start one worker process, and to check that nothing is queued or unacknowledged."""

    #: Enqueue *count* tasks one by one; return the seconds if another process does it.
    enqueue: Callable[[int], float | None]
    worker: Sequence[str]
    is_done: Callable[[Redis], bool]


def one_by_one(note: Callable[[str], object], noop: Call) -> Callable[[int], None]:
    """Return a function that enqueues a task that sets FIRST, tasks that do nothing, and a task that sets LAST."""

    def enqueue(count: int) -> None:
        note(FIRST)
        for _ in range(count - 2):
            noop()
        note(LAST)

    return enqueue


def by_program(*command: str) -> Callable[[int], float]:
    """
    Return such a function for a program that takes "enqueue" and the count, and prints the seconds without its start.
    """

    def enqueue(count: int) -> float:
        done = subprocess.run([*command, "enqueue", str(count)], check=True, capture_output=True, text=True)
        return float(json.loads(done.stdout))

    return enqueue


def here(name: str) -> str:
    """Return the path of a program in this folder."""
    return str(Path(__file__).with_name(name))


@cache
def bullmq_version() -> str | None:
    """Return BullMQ's version, and let Node find globally installed packages."""
    if not which("node") or not which("npm"):
        return None
    found = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True).stdout.strip()
    os.environ["NODE_PATH"] = os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), found]))
    asked = subprocess.run(["node", here("bullmq.mjs"), "version"], capture_output=True, text=True)
    return asked.stdout.strip() if asked.returncode == 0 else None


@cache
def sidekiq_version() -> str | None:
    if not which("sidekiq") or not which("ruby"):
        return None
    asked = subprocess.run(["sidekiq", "--version"], capture_output=True, text=True)
    return asked.stdout.split()[-1] if asked.returncode == 0 and asked.stdout.split() else None
