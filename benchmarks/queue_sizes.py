"""The waiting times of producers, workers and the control room with a thousand to a million tasks in a queue."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from benchmarks import tasks
from benchmarks.harness import Bench, Call, Crew, say, seconds
from benchmarks.queues import succeeded
from benchmarks.report import Bar, at_most, print_bars, print_table
from components.services.queues import Consumer, Finished, NewTask, Step, TaskQueue

SIZES = (1_000, 10_000, 100_000, 1_000_000)
# Tasks that exist before memory is measured, because the memory of a script and a connection belongs to no task.
BEFORE = 500
FILLED_AT_ONCE = 10_000
STEP = 100  # tasks that one step claims while it acknowledges the tasks of the step before
ENQUEUED, STEPS, LOOKS, PAGES = 4 * STEP, 40, 100, 15  # how often each action is done
WINDOW = 1_000  # tasks that a search reads; it reads all of them because nothing is found
PAYLOAD = len('{"task":"","args":[],"kwargs":{}}') + len(tasks.noop.module_path)

BYTES = "Redis, bytes per task"
#: Actions that may cost at most STEADY times as much with the most tasks as with the fewest, which fit a processor's
#: cache.
STEADY_COSTS = ("enqueue one", f"claim and ack {STEP}", "stats", "all_stats", "page: queues", "page: tasks")
STEADY = 1.5

_queue, _consumer = TaskQueue(), Consumer()


def run(bench: Bench, crew: Crew, options: Namespace) -> None:
    call_command("migrate", verbosity=0)
    measured = dict(grow(bench, [size for size in SIZES if size <= options.largest]))
    report(measured)


def grow(bench: Bench, sizes: list[int]) -> Iterator[tuple[int, Mapping[str, float]]]:
    """Yield each size, with the milliseconds of each action and the bytes at that size."""
    fill(BEFORE)
    count, grown = BEFORE, 0
    for size in sizes:
        before = bench.memory()
        while count < size:
            say(f"filling: {count:,} of {size:,}")
            some = min(FILLED_AT_ONCE, size - count)
            fill(some)
            count += some
        grown += bench.memory() - before
        say(f"measuring at {size:,}")
        costs = {name: 1e3 * median(times) for name, times in [*work(), *looks(), *pages(size)]}
        yield size, {**costs, BYTES: grown / (size - BEFORE)}
    say("")


def fill(count: int) -> None:
    _queue.push_many([NewTask(name=tasks.noop.module_path)] * count)


def work() -> Iterator[tuple[str, list[float]]]:
    """Measure the actions of producers and workers, which leave the size of the queue unchanged."""
    yield "enqueue one", [seconds(tasks.noop.enqueue) for _ in range(ENQUEUED)]
    _consumer.renew(["default"])
    finished: list[Finished] = []
    for _ in range(ENQUEUED // STEP):
        finished = succeeded(advance(STEP, finished))
    stepped = []
    for _ in range(STEPS):
        began = time.perf_counter()
        step = advance(STEP, finished)
        stepped.append(time.perf_counter() - began)
        finished = succeeded(step)
        fill(STEP)
    advance(0, finished)
    yield f"claim and ack {STEP}", stepped


def advance(want: int, finished: list[Finished]) -> Step:
    return _consumer.advance(_consumer.request({"default": want}, want, finished))


def looks() -> Iterator[tuple[str, list[float]]]:
    yield "stats", [seconds(lambda: _queue.stats("default")) for _ in range(LOOKS)]
    yield "all_stats", [seconds(_queue.all_stats) for _ in range(LOOKS)]
    search = lambda: list(_queue.search("default", "ready", "no task has it", window=WINDOW))  # noqa: E731
    yield f"search among {WINDOW:,}", [seconds(search) for _ in range(PAGES)]


def pages(size: int) -> Iterator[tuple[str, list[float]]]:
    """Measure pages of the control room by Django's test client, as a member of the staff."""
    client = Client(raise_request_exception=True)
    users = get_user_model().objects
    client.force_login(users.filter(username="staff").first() or users.create_superuser("staff"))
    [task_id] = _queue.ids("default", "ready", limit=1)
    listed = {"alias": _queue.alias, "queue": "default", "state": "ready"}
    for name, page, query in (
        ("page: queues", "changelist", {}),
        ("page: tasks", "tasks", listed),
        ("page: tasks, the last page", "tasks", {**listed, "offset": size - 50}),
        ("page: tasks, a search", "tasks", {**listed, "q": "no task has it"}),
        ("page: a task", "task", {"alias": _queue.alias, "id": task_id}),
    ):
        get = getter(client, reverse(f"admin:components_queue_{page}"), query)
        get()  # compiles the templates
        yield name, [seconds(get) for _ in range(PAGES)]


def getter(client: Client, address: str, query: Mapping[str, Any]) -> Call:
    def get() -> None:
        response = client.get(address, query)
        if response.status_code != 200:
            raise RuntimeError(f"{address} with {query} answered {response.status_code}.")

    return get


def report(measured: Mapping[int, Mapping[str, float]]) -> None:
    smallest, largest = measured[min(measured)], measured[max(measured)]
    print_table(
        ["ready tasks", *(f"{size:,}" for size in measured), "last/first"],
        (
            [
                name if name == BYTES else f"{name}, ms",
                *(shown(name, costs[name]) for costs in measured.values()),
                f"{largest[name] / smallest[name]:.2f}",
            ]
            for name in largest
        ),
    )
    print(f"\nOf these, {PAYLOAD} bytes per task are the payload.")
    print_bars(bars(measured))


def bars(measured: Mapping[int, Mapping[str, float]]) -> Iterator[Bar]:
    first, last = min(measured), max(measured)
    for name in STEADY_COSTS:
        ratio = measured[last][name] / measured[first][name]
        yield at_most(f"{name}: {last:,} ready beside {first:,}", STEADY, ratio, ".2f", " times")
    slowest = max((cost, name) for name, cost in measured[last].items() if name.startswith("page"))
    yield at_most(f"slowest page with {last:,} ready: {slowest[1]}", 100, slowest[0], ".0f", " ms")
    most = max(costs[BYTES] for costs in measured.values()) - PAYLOAD
    yield at_most("Redis bytes per ready task, beside the payload", 450, most, ".0f")


def shown(name: str, cost: float) -> str:
    return f"{cost:.0f}" if name == BYTES else f"{cost:.2f}" if cost >= 1 else f"{cost:.3f}"
