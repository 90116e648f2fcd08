"""The figures of task queues and workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from components.conf import queue_options
from components.kit.figures import Ask, Event, Family, Gauges
from components.kit.scripts import Script
from components.kit.stored import text_of
from components.services.queues.backend import redis_aliases
from components.services.queues.facts import QueueStats, WorkerInfo, from_us
from components.services.queues.formats import instant_of_ms, read_sizes, read_worker
from components.services.queues.keys import QueueKeys

GAUGE = Script("queues/gauge")

_ENDED = "components_tasks_ended", "Runs of tasks that have ended, by queue.", "queue"
_RUNS = "components_task_runs", "Runs of tasks that have ended, by task.", "task"

EVENTS = (
    Event("tasks:enqueued", "components_tasks_enqueued", "Tasks that were stored.", "queue"),
    Event("tasks:successful", *_ENDED, (("outcome", "successful"),)),
    Event("tasks:retried", *_ENDED, (("outcome", "retried"),)),
    Event("tasks:failed", *_ENDED, (("outcome", "failed"),)),
    Event("runs:successful", *_RUNS, (("outcome", "successful"),)),
    Event("runs:retry", *_RUNS, (("outcome", "retried"),)),
    Event("runs:dead", *_RUNS, (("outcome", "failed"),)),
    Event("tasks:run", "components_task_run_seconds", "How long runs took.", "task", is_histogram=True),
    Event(
        "tasks:wait",
        "components_task_wait_seconds",
        "How long runs waited, from the instant at which their task could run.",
        "task",
        is_histogram=True,
    ),
)


def ask_state(alias: str) -> Ask:
    """Return the question for the queues and workers of *alias*, at most a thousand of each."""
    keys = QueueKeys(alias, "")
    return Ask(keys.names, partial(GAUGE.put, keys=keys))


def read_state(alias: str, answer: Sequence[Any]) -> tuple[list[QueueStats], list[WorkerInfo]]:
    """Return the queues, by name, and the workers of *alias* from the answer to ask_state()."""
    clock, sizes, seen = answer
    queues = [read_sizes(text_of(name), found) for name, found in zip(sizes[::2], sizes[1::2], strict=True)]
    lease = timedelta(seconds=queue_options(alias).lease)
    workers = [
        read_worker(
            text_of(worker_id), about or b"", started, None, instant_of_ms(float(at)), from_us(clock), lease
        )
        for worker_id, at, (about, started) in zip(seen[::3], seen[1::3], seen[2::3], strict=True)
    ]
    return sorted(queues, key=lambda queue: queue.name), workers


def gauges() -> Gauges:
    """Count the tasks and workers of each alias."""
    tasks = Family("components_queue_tasks", "Tasks of a queue, by their state.")
    oldest = Family(
        "components_queue_oldest_seconds", "For how long the oldest ready task waits; 0 if none does."
    )
    paused = Family("components_queue_paused", "1 if the queue is paused.")
    workers = Family("components_workers", "Processes that are alive, by what they do.")
    slots = Family("components_worker_slots", "Tasks that the living workers can run at a time.")
    running = Family("components_worker_running", "Tasks that the living workers run.")
    aliases = redis_aliases()
    answers = yield [ask_state(alias) for alias in aliases]
    for alias, answer in zip(aliases, answers, strict=True):
        queues, seen = read_state(alias, answer)
        for stats in queues:
            for state in ("ready", "delayed", "running", "dead", "successful"):
                tasks.add(getattr(stats, state), alias=alias, queue=stats.name, state=state)
            oldest.add(stats.oldest_age or 0.0, alias=alias, queue=stats.name)
            paused.add(stats.paused, alias=alias, queue=stats.name)
        totals = defaultdict[str, list[int]](lambda: [0, 0, 0])
        for info in seen:
            if info.alive:
                for number, value in enumerate((1, info.concurrency, info.running)):
                    totals[info.kind][number] += value
        for kind in sorted({"worker", "poller", *totals}):
            for family, value in zip((workers, slots, running), totals[kind], strict=True):
                family.add(value, alias=alias, kind=kind)
    return [tasks, oldest, paused, workers, slots, running]
