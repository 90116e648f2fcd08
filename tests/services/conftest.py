"""Every test of a service runs twice: on a plain server, and on one in cluster mode."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.services.queues import Consumer, Progress, State
from components.testing import empty
from tests.support.queues import claim, failed, hand_in, push_new, succeeded


@pytest.fixture
def server(redis_mode: str, request: pytest.FixtureRequest) -> EmbeddedServer:
    fixture = "redis_server" if redis_mode == "plain" else "redis_cluster_server"
    server: EmbeddedServer = request.getfixturevalue(fixture)
    return server


@pytest.fixture
def redis(server: EmbeddedServer) -> Iterator[Redis]:
    """The project's Redis, empty; in cluster mode a key of another slot is an error."""
    with empty(server) as client:
        yield client


@pytest.fixture
def one_of_each(redis: Redis) -> dict[State, str]:
    """A task in each state, each with a unique key of its own; ids by state."""
    consumer = Consumer()
    successful, dead, running, ready = (push_new(unique=str(number)) for number in range(4))
    done, bad, still_running = claim(consumer, 3)
    for task in (bad, still_running):
        consumer.progress(task, Progress(1))
    hand_in(consumer, succeeded(done), failed(bad))
    delayed = push_new(delay=60, unique="later")
    return {"ready": ready, "delayed": delayed, "running": running, "dead": dead, "successful": successful}


@pytest.fixture
def alarm() -> Iterator[Any]:
    """alarm(seconds): then KeyboardInterrupt is raised in the main thread, wherever it is."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
