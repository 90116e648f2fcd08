"""What the tests of workers share: a backend, workers in threads, and tasks that wait for a gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any, Protocol, cast

import pytest
from redis import Redis

from components.kit.compat import task_backends
from components.kit.worker import base
from components.kit.worker.base import Worker
from components.services.queues import NewTask, State, TaskQueue
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.choice import QueueChoice
from components.services.queues.worker.tasks import TaskWorker
from tests import tasks
from tests.support.queues import options
from tests.support.waiting import eventually
from tests.workers import jobs

NOTE, WAIT, CROWD = "tests.tasks.note", "tests.tasks.wait", "tests.workers.jobs.crowd"
GATES = (tasks.gate, jobs.agate)


def current_backend() -> RedisBackend:
    """The one of the settings as they are now."""
    return cast(RedisBackend, task_backends["default"])


@pytest.fixture
def backend(redis: Redis) -> Iterator[RedisBackend]:
    """The tasks' gates are shut, and open again afterwards. No listener of a test before is left to take a token."""
    assert eventually(lambda: unblock(redis) == 0)
    for gate in GATES:
        gate.clear()
    tasks.notes.clear()
    jobs.crowded.clear()
    while not jobs.told.empty():
        jobs.told.get_nowait()
    yield current_backend()
    for gate in GATES:
        gate.set()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers do not look by themselves before minutes have gone: only what wakes them can bring a task."""
    monkeypatch.setattr(base, "_LONGEST_BEAT", 600.0)
    with options(lease=1800.0):
        yield


class MakeWorker(Protocol):
    def __call__(
        self,
        *queues: str,
        weights: Mapping[str, int] = ...,
        round_robin: bool = ...,
        **options: Any,
    ) -> TaskWorker: ...


@pytest.fixture
def make_worker(backend: RedisBackend) -> MakeWorker:
    """A worker of those queues ("default"), or with all_queues=True of all."""

    def make(*queues, weights=None, round_robin=False, all_queues=False, **options):
        choice = QueueChoice(
            [] if all_queues else queues or ["default"], weights or {}, round_robin or all_queues
        )
        return TaskWorker(current_backend(), choice, all_queues=all_queues, **options)

    return make


@pytest.fixture
def start(backend: RedisBackend) -> Iterator[Callable[[Worker], Worker]]:
    """Let a worker run in a thread of its own; it is stopped when the test is over."""
    with ExitStack() as stack:
        yield lambda worker: stack.enter_context(working(worker))


@contextmanager
def working(worker: Worker) -> Iterator[Worker]:
    thread = Thread(target=worker.run, name="worker")
    thread.start()
    try:
        yield worker
    finally:
        for gate in GATES:
            gate.set()
        worker.stop()
        thread.join(20)
        client = worker.consumer._client
        assert eventually(lambda: unblock(client) >= 0 and not worker._listener.is_alive())
        assert not thread.is_alive()


def listeners(redis: Redis) -> list[dict[str, str]]:
    """The clients that wait for a token, the one that waits longest first."""
    waiting = [
        client for client in redis.client_list() if client["cmd"] == "blpop" and "b" in client["flags"]
    ]
    return sorted(waiting, key=lambda client: int(client["id"]))


def unblock(redis: Redis) -> int:
    """Let their waits time out now; how many."""
    return sum(redis.client_unblock(int(client["id"])) for client in listeners(redis))


def push(name: str, count: int = 1, queue: str = "default") -> list[str]:
    """Push some of the same; a note says its queue and its number there."""
    args = [[f"{queue} {number}"] if name == NOTE else [] for number in range(count)]
    new = [NewTask(name=name, args=each, queue=queue) for each in args]
    return [info.id for info in TaskQueue().push_many(new) if info]


def counts(queue: str = "default") -> dict[State, int]:
    """How many tasks are in each state, where there are any."""
    stats = TaskQueue().stats(queue)
    states: tuple[State, ...] = ("ready", "delayed", "running", "dead", "successful")
    return {state: number for state in states if (number := getattr(stats, state))}


def reaches(queue: str = "default", **wanted: int) -> bool:
    """Whether the counts of the queue become these."""
    return eventually(lambda: counts(queue) == wanted)


def is_listening(redis: Redis, number: int = 1) -> bool:
    return eventually(lambda: len(listeners(redis)) == number)
