"""What queue_sizes.py measures at one size of the queue. Each is done often, and the median counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any

from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from benchmarks import tasks
from benchmarks.alone import succeeded
from components.services.queues import Consumer, Finished, NewTask, Step, TaskQueue
from components.services.queues.arguments import encode

QUEUE = "default"
STEP = 100  # tasks that one step claims, while it acknowledges those of the step before
ENQUEUED, STEPS, LOOKS, PAGES = 4 * STEP, 40, 100, 15  # how often
WINDOW = 1_000  # tasks that a search reads, here all, since nothing is found
PAYLOAD = len(encode(tasks.noop.module_path, [], {}, max_body=1_000))

_queue, _consumer = TaskQueue(), Consumer()


def fill(count: int) -> None:
    """Let *count* more tasks be ready."""
    _queue.push_many([NewTask(name=tasks.noop.module_path)] * count)


def costs(size: int) -> Mapping[str, float]:
    """What things cost while *size* tasks are ready, in milliseconds by name."""
    return {name: 1e3 * median(seconds) for name, seconds in [*_work(), *_looks(), *_pages(size)]}


def _work() -> Iterator[tuple[str, list[float]]]:
    enqueued = [_seconds(tasks.noop.enqueue) for _ in range(ENQUEUED)]
    yield "enqueue one", enqueued
    _consumer.renew([QUEUE])
    finished: list[Finished] = []
    for _ in range(ENQUEUED // STEP):
        finished = succeeded(_advance(STEP, finished))
    stepped = []
    for _ in range(STEPS):
        began = time.perf_counter()
        step = _advance(STEP, finished)
        stepped.append(time.perf_counter() - began)
        finished = succeeded(step)
        fill(STEP)
    _advance(0, finished)
    yield f"claim and ack {STEP}", stepped


def _advance(want: int, finished: list[Finished]) -> Step:
    return _consumer.advance(_consumer.request({QUEUE: want}, want, finished))


def _looks() -> Iterator[tuple[str, list[float]]]:
    yield "stats", [_seconds(lambda: _queue.stats(QUEUE)) for _ in range(LOOKS)]
    yield "all_stats", [_seconds(_queue.all_stats) for _ in range(LOOKS)]
    search = lambda: list(_queue.search(QUEUE, "ready", "no task has it", window=WINDOW))  # noqa: E731
    yield f"search among {WINDOW:,}", [_seconds(search) for _ in range(PAGES)]


def _pages(size: int) -> Iterator[tuple[str, list[float]]]:
    client = Client(raise_request_exception=True)
    client.force_login(_staff())
    [task_id] = _queue.ids(QUEUE, "ready", limit=1)
    listed = {"alias": _queue.alias, "queue": QUEUE, "state": "ready"}
    for name, page, query in (
        ("page: queues", "changelist", {}),
        ("page: tasks", "tasks", listed),
        ("page: tasks, the last page", "tasks", {**listed, "offset": size - 50}),
        ("page: tasks, a search", "tasks", {**listed, "q": "no task has it"}),
        ("page: a task", "task", {"alias": _queue.alias, "id": task_id}),
    ):
        get = _getter(client, reverse(f"admin:components_queue_{page}"), query)
        get()  # templates are compiled
        yield name, [_seconds(get) for _ in range(PAGES)]


def _getter(client: Client, address: str, query: Mapping[str, Any]) -> Callable[[], None]:
    def get() -> None:
        response = client.get(address, query)
        if response.status_code != 200:
            raise RuntimeError(f"{address} with {query} answered {response.status_code}.")

    return get


def _staff() -> Any:
    users = get_user_model().objects
    return users.filter(username="staff").first() or users.create_superuser("staff")


def _seconds(what: Callable[[], object]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began
