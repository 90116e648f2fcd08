"""What each process does: it copies logs, or counts them, by the commands that there are for that, but slowly."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from django.core.management import call_command

from components.services.logs import Chunk, Consumer
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
        be_slow(random, plan.SLOWEST[role])
        call_command(
            "aggregatelogs", "--job", plan.JOB, "--lease", str(plan.LEASE), *_COUNTED[role], *options
        )


def copy(folder: Path) -> None:
    limits = ("--limit", str(plan.LIMIT), "--chunk", str(plan.CHUNK))
    call_command("copylogs", str(folder), "--job", plan.JOB, *limits, "--no-progress", verbosity=0)


def be_slow(random: Random, slowest: float) -> None:
    """From now on it takes this process a while to read a chunk."""
    read: Callable[[Consumer, Chunk], bytes] = Consumer.read

    def slow(consumer: Consumer, chunk: Chunk) -> bytes:
        time.sleep(random.uniform(0, slowest))
        return read(consumer, chunk)

    Consumer.read = slow  # type: ignore[method-assign]
