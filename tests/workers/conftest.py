"""What the tests of workers share: a backend, workers in threads, and tasks that wait for a gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any, Protocol, cast

import pytest
from redis import Redis

from components.backends.tasks import RedisBackend
from components.compat import task_backends
from components.workers import base
from components.workers.base import Worker
from components.workers.choice import QueueChoice
from components.workers.tasks import TaskWorker
from tests import tasks
from tests.support.waiting import eventually
from tests.workers import jobs

GATES = (tasks.gate, jobs.agate)


def current_backend() -> RedisBackend:
    """The one of the settings as they are now."""
    return cast(RedisBackend, task_backends["default"])


@pytest.fixture
def backend(redis: Redis) -> Iterator[RedisBackend]:
    """The tasks' gates are shut, and open again afterwards."""
    for gate in GATES:
        gate.clear()
    tasks.notes.clear()
    jobs.crowded.clear()
    yield current_backend()
    for gate in GATES:
        gate.set()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers do not look by themselves before minutes have gone: only what wakes them can bring a task."""
    monkeypatch.setattr(base, "_LONGEST_BEAT", 600.0)


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

    def make(*queues, weights={}, round_robin=False, all_queues=False, **options):
        choice = QueueChoice(
            [] if all_queues else queues or ["default"], dict(weights), round_robin or all_queues
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
        assert eventually(lambda: not unblock(client) and not worker._listener.is_alive())
        assert not thread.is_alive()


def listeners(redis: Redis) -> list[dict[str, str]]:
    """The clients that wait for a token, the one that waits longest first."""
    waiting = [client for client in redis.client_list() if client["cmd"] == "blpop" and "b" in client["flags"]]
    return sorted(waiting, key=lambda client: int(client["id"]))


def unblock(redis: Redis) -> int:
    """Let their waits time out now; how many."""
    return sum(redis.client_unblock(int(client["id"])) for client in listeners(redis))
