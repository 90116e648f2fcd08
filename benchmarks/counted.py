"""
What COUNT_SERVICES costs a task: the same tasks, enqueued one by one and drained by a worker, with it and without.

The two take turns, and a figure is a median. Processor time says more than seconds where other programs use the
machine; that of the worker has a resolution of 10 ms a turn.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from statistics import median

from django.test import override_settings

from benchmarks.harness import COUNTED, Bench, Crew, Rounds, Turn
from benchmarks.queues import drain, ours
from benchmarks.report import at_most, compare, mid, print_bars
from components.services.counters import flush

OFF, ON = "components, not counted", "components, counted"
#: The largest part of a drained task's processor time that counting may take.
MOST = 0.03
#: The processor time of enqueueing and of draining a task, ours and Redis'.
ENQUEUED, DRAINED = ("producer", "enqueue redis"), ("worker", "drain redis")


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    turns = compare(
        "Tasks",
        (OFF, ON),
        options.rounds,
        lambda name: turn(bench, name, options.tasks),
        mid("enqueue/s", "enqueue"),
        mid("CPU µs: producer", "producer", ".1f"),
        mid("Redis, enqueue", "enqueue redis", ".1f"),
        mid("drain/s", "drain"),
        mid("worker", "worker", ".1f"),
        mid("Redis, drain", "drain redis", ".1f"),
    )
    print_bars(
        [
            at_most(
                "counting, of the processor time to enqueue a task", MOST, growth(turns, ENQUEUED), ".1%"
            ),
            at_most("counting, of the processor time to drain a task", MOST, growth(turns, DRAINED), ".1%"),
        ]
    )


def turn(bench: Bench, name: str, tasks: int) -> Turn:
    with counting() if name == ON else nullcontext():
        found = drain(bench, ours(), tasks)
        flush()  # what is left would be sent in the next turn
        return found


def growth(turns: Rounds, keys: Sequence[str]) -> float:
    """Return by how much more processor time a task takes when it is counted: the median of the rounds."""
    off, on = ([sum(each[key] for key in keys) for each in turns[name]] for name in (OFF, ON))
    return median(with_it / without - 1 for without, with_it in zip(off, on, strict=True))


@contextmanager
def counting() -> Iterator[None]:
    """Count services in this process and in those that it starts."""
    os.environ[COUNTED] = "1"
    try:
        with override_settings(COMPONENTS={"COUNT_SERVICES": True}):
            yield
    finally:
        del os.environ[COUNTED]
