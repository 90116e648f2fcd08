"""
What the chaos test does to whom: the queue's options, the kinds of tasks and how many of each, how long it takes.

CHAOS_SECONDS (45) is how long things go wrong, CHAOS_SEED a number of an earlier run, to have its plan again. There
are 20,000 tasks at least, and 450 for each second.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from random import Random

from components.kit.ids import uuid7
from components.services.queues import NewTask

SECONDS = float(os.environ.get("CHAOS_SECONDS", "45"))
SEED = int(os.environ.get("CHAOS_SEED") or secrets.randbelow(1_000_000))
TASKS = max(21_000, round(450 * SECONDS))  # so that more than 20,000 are left without the unique ones

LEASE = 2.0  # seconds
OWN_LEASE = 3.0  # seconds, of the tasks that have one of their own
LATEST_RETRY = 0.5  # seconds after a failure
MAX_ATTEMPTS = 3  # of the tasks that fail each time
ASKS_AGAIN = LEASE / 3  # seconds until a worker notices at the latest that Redis is back
# Seconds from then on in which it takes nothing over: to one that noticed so late each outage is longer than a third
# of the lease.
GRACE = ASKS_AGAIN + 0.5
CONCURRENCY = 4
QUEUES = ("a", "b")
SOCKET_TIMEOUT = 2.0  # seconds: how long a reply that was lost silently is waited for
OPTIONS = {
    "lease": LEASE,
    # So many that only those die of it that kill each worker: under one that runs for a second, the monkey kills or
    # stops every third worker.
    "max_crashes": 12,
    "backoff": 0.2,
    "max_backoff": LATEST_RETRY,
    "successful_limit": 10_000_000,
    "dead_limit": 10_000_000,
}

#: Shares of the kinds in a thousand tasks; the rest is "quick". "killer" and "stuck", which end their processes, come
#: at fixed places.
SHARES = {
    "delayed": 60,
    "urgent": 60,
    "coroutine": 50,
    "nap": 30,
    "once": 25,
    "flaky": 25,
    "failing": 6,
    "doomed": 4,
    "leased": 3,
    "patient": 2,
    "late": 1,
}
_KINDS = [kind for kind, share in SHARES.items() for _ in range(share)]
_KINDS += ["quick"] * (1_000 - len(_KINDS))
_ENDERS = ("killer", "stuck")  # of each producer, spread over its first half
_KEYS = 12  # unique keys
_JOB = {"delayed": "quick", "urgent": "quick", "doomed": "quick", "leased": "nap"}

#: How each kind may end, unless it is cancelled: None is success, else the class of its last error.
ENDS: dict[str, str | None] = {
    "failing": "builtins.ValueError",
    "killer": "components.exceptions.WorkerDied",
    "stuck": "components.exceptions.TaskTimedOut",
    "late": "components.exceptions.TaskTimedOut",
    "doomed": "components.exceptions.TaskCancelled",
}


def tasks(count: int, name: str) -> Iterator[tuple[str, NewTask]]:
    """*count* tasks, each with its kind; with the same seed they are the same, but for their ids."""
    random = Random(f"{SEED} {name}")
    enders = {count * (n + 1) // (2 * len(_ENDERS) + 2): kind for n, kind in enumerate(_ENDERS)}
    for number in range(count):
        kind = enders.get(number) or random.choice(_KINDS)
        yield kind, _task(kind, random)


def _task(kind: str, random: Random) -> NewTask:
    task_id, key = uuid7(), f"key-{random.randrange(_KEYS)}"
    arguments = {
        "nap": [random.uniform(0.02, 0.2)],
        "leased": [random.uniform(0.02, 0.2)],
        "flaky": [random.choice((1, 1, 2))],
        "once": [random.uniform(0.005, 0.05)],
    }
    delays = {"delayed": random.uniform(0.05, 5.0), "doomed": 86_400.0}
    return NewTask(
        id=task_id,
        name=f"tests.chaos.jobs.{_JOB.get(kind, kind)}",
        args=[task_id, *arguments.get(kind, [])],
        queue=random.choice(QUEUES),
        priority=random.choice((1, 5, 10)) if kind == "urgent" else 0,
        delay=delays.get(kind),
        lease=OWN_LEASE if kind == "leased" else None,
        unique=key if kind == "once" else None,
        kwargs={"key": key} if kind == "once" else {},
    )
