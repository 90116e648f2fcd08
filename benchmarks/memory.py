"""
The memory of a worker, and of Redis, over a million tasks.

Tasks that do nothing are pushed, then one worker process drains them while its memory is measured. All results are
kept for the default time, so Redis' memory includes their cost.
"""

from __future__ import annotations

from argparse import Namespace

from benchmarks import tasks
from benchmarks.harness import Bench, Crew, Turn, running, say
from benchmarks.report import at_most, print_bars, print_table
from components.services.queues import NewTask, TaskQueue

MARKS = (0.1, 0.25, 0.5, 0.75, 1.0)  # the memory is measured when these parts of all tasks are done
# How many megabytes a worker may grow by: less than six bytes for each task, so no part of a task remains.
FLAT = 5.0
FILLED_AT_ONCE = 10_000
PATIENCE = 900.0  # seconds for the whole benchmark
# Seconds between two checks of the queue, in which some hundred tasks are done.
GLANCE = 0.02


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    count, queue, empty = options.tasks, TaskQueue(), bench.memory()
    for begin in range(0, count, FILLED_AT_ONCE):
        say(f"filling: {begin:,} of {count:,}")
        queue.push_many([NewTask(name=tasks.noop.module_path)] * min(FILLED_AT_ONCE, count - begin))
    full = bench.memory()
    looks = drain(bench, queue, count)
    rows = (
        [f"{each['done']:,}", f"{each['seconds']:.0f}", mb(each["worker"]), mb(each["redis"])]
        for each in looks
    )
    print_table(["tasks done", "seconds", "worker, MB", "Redis, MB"], [["0", "0", "-", mb(full)], *rows])
    waiting, kept = (full - empty) / count, (looks[-1]["redis"] - empty) / count
    print(f"\nA ready task takes {waiting:.0f} bytes of Redis, a stored result {kept:.0f}.")
    first, last = looks[0], looks[-1]
    grown = (last["worker"] - first["worker"]) / 1e6 if last["worker"] and first["worker"] else None
    what = f"growth of a worker between {first['done']:,} and {last['done']:,} tasks"
    print_bars([at_most(what, FLAT, grown, ".1f", " MB")])


def drain(bench: Bench, queue: TaskQueue, count: int) -> list[Turn]:
    """
    Return, at each of MARKS, the tasks done, the seconds, and the bytes of the worker and of Redis. Raises Stuck.
    """
    done, found = 0, []

    def is_at(least: float) -> bool:
        nonlocal done
        stats = queue.stats("default")
        done = count - stats.ready - stats.running
        say(f"drained: {done:,} of {count:,}")
        return done >= least

    with running(["manage.py", "runworker", "--no-reload", "--verbosity", "0"]) as worker:
        began = worker.wait_for(lambda: is_at(1), glance=GLANCE)
        for part in MARKS:
            at = worker.wait_for(lambda: is_at(part * count), patience=PATIENCE, glance=GLANCE)  # noqa: B023
            look = {"done": done, "seconds": at - began, "worker": worker.memory(), "redis": bench.memory()}
            found.append(look)
    return found


def mb(size: int | None) -> str:
    return f"{size / 1e6:.1f}" if size else "-"
