"""What each process does: it copies logs, or counts them, by the commands that there are for that, but slowly."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from django.core.management import call_command

from components.services.logs import PLACES, Aggregation, Chunk, Consumer
from tests.chaos.visits import plan

#: By role: what says whose sums are counted.
_COUNTED = {
    "worker": [],
    "counter": ["--callback", "tests.chaos.visits.events.Events", "--aggregation", plan.EVENTS],
}


def act(role: str, folder: Path, random: Random, *options: str) -> None:
    if role == "producer":
        copy(folder / "logs")
    else:
        if not options:
            be_slow(random, plan.SLOWEST[role])
        call_command(
            "aggregatelogs", "--job", plan.JOB, "--lease", str(plan.LEASE), *_COUNTED[role], *options
        )


def copy(folder: Path) -> None:
    limits = ("--limit", str(plan.LIMIT), "--chunk", str(plan.CHUNK))
    call_command(
        "copylogs", str(folder), "--job", plan.JOB, *limits, "--complete", "--no-progress", verbosity=0
    )


def send_again() -> int:
    """What was given up, because each of those who held it was killed or late; how many chunks."""
    aggregations = [Aggregation(name, job=plan.JOB) for name in (PLACES, plan.EVENTS)]
    return sum(each.resend([chunk for chunk, _at in each.dead(1_000)]) for each in aggregations)


def be_slow(random: Random, slowest: float) -> None:
    """
    From now on it takes this process a while to read a chunk, and at times longer than a lease to flush, as if it was
    stopped at the worst moment.
    """
    read: Callable[[Consumer, Chunk], bytes] = Consumer.read
    flush: Callable[..., None] = Consumer.flush

    def slow(consumer: Consumer, chunk: Chunk) -> bytes:
        time.sleep(random.uniform(0, slowest))
        return read(consumer, chunk)

    def late(consumer: Consumer, *args: Any) -> None:
        if random.random() < plan.LATE:
            time.sleep(1.5 * plan.LEASE)
        flush(consumer, *args)

    Consumer.read = slow  # type: ignore[method-assign]
    Consumer.flush = late  # type: ignore[method-assign]
