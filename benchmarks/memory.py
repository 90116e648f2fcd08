"""
The memory of a worker, and of Redis, over a million tasks: `python benchmarks/memory.py`.

A million tasks that do nothing are pushed, then one worker process drains them, while its memory is looked at.
All results are kept, as long as they are by default, so Redis' memory does not hide what they cost.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bench import Bench, running, say
from benchmarks.server import standing_bench
from benchmarks.tables import Bar, print_bars, print_conditions, print_table

MARKS = (0.1, 0.25, 0.5, 0.75, 1.0)  # parts of all tasks, after which the memory is looked at
FLAT = 5_000_000  # bytes that a worker may grow by: less than six for each task, so nothing stays of one
FILLED_AT_ONCE = 10_000  # tasks
PATIENCE = 900.0  # seconds for all of it
_GLANCE = 0.02  # seconds between two looks at the queue: some hundred tasks


@dataclass(frozen=True)
class Sample:
    """After *done* tasks and so many seconds: bytes of the worker, if the system tells, and of Redis."""

    done: int
    seconds: float
    worker: int | None
    redis: int


def main() -> None:
    parser = ArgumentParser(description="The memory of a worker over many tasks.")
    parser.add_argument("--tasks", type=int, default=1_000_000, help="How many (default: 1000000).")
    count = parser.parse_args().tasks
    with standing_bench() as bench:
        print_conditions(bench.redis, f"{count:,} tasks")
        empty = bench.memory()
        fill(count)
        full = bench.memory()
        samples = drain(bench, count)
    report(count, empty, full, samples)


def fill(count: int) -> None:
    from benchmarks import tasks
    from components.services.queues import NewTask, TaskQueue

    queue = TaskQueue()
    for begin in range(0, count, FILLED_AT_ONCE):
        say(f"filling: {begin:,} of {count:,}")
        queue.push_many([NewTask(name=tasks.noop.module_path)] * min(FILLED_AT_ONCE, count - begin))


def drain(bench: Bench, count: int) -> list[Sample]:
    """What is seen at each of MARKS. Raises Stuck."""
    from benchmarks.peers.ours import Ours
    from components.services.queues import TaskQueue

    queue, samples = TaskQueue(), []
    done = 0

    def look() -> int:
        nonlocal done
        stats = queue.stats("default")
        done = count - stats.ready - stats.running
        say(f"drained: {done:,} of {count:,}")
        return done

    with running(Ours("components", "").worker()) as worker:
        began = worker.wait_for(lambda: look() > 0, glance=_GLANCE)
        for part in MARKS:
            at = worker.wait_for(lambda: look() >= part * count, patience=PATIENCE, glance=_GLANCE)  # noqa: B023
            samples.append(Sample(done, at - began, worker.memory(), bench.memory()))
    say("")
    return samples


def report(count: int, empty: int, full: int, samples: list[Sample]) -> None:
    """What was seen, what a task and a result cost Redis, and the bar."""
    print_table(
        ["tasks done", "seconds", "worker, MB", "Redis, MB"],
        [
            ["0", "0", "-", _mb(full)],
            *([f"{s.done:,}", f"{s.seconds:.0f}", _mb(s.worker), _mb(s.redis)] for s in samples),
        ],
    )
    waiting, kept = (full - empty) / count, (samples[-1].redis - empty) / count
    print(f"\nA ready task takes {waiting:.0f} bytes of Redis, a result that is kept {kept:.0f}.")
    first, last = samples[0], samples[-1]
    grown = last.worker - first.worker if last.worker and first.worker else None
    what = f"growth of a worker between {first.done:,} and {last.done:,} tasks"
    measured = f"{grown / 1e6:.1f} MB" if grown is not None else None
    print_bars([Bar(what, f"at most {FLAT / 1e6:.0f} MB", measured, (grown or 0) <= FLAT)])


def _mb(size: int | None) -> str:
    return f"{size / 1e6:.1f}" if size else "-"


if __name__ == "__main__":
    main()
