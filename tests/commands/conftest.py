"""A server of its own for each test, the queue on it as the test itself uses it, and a task in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.services.queues import TaskQueue
from components.testing import redis_at
from tests.commands.processes import Held


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedServer]:
    program = request.config.getoption("--redis-server")
    with EmbeddedServer(tmp_path / "redis", server=program, appendfsync="always") as server:
        yield server


@pytest.fixture
def queue(server: EmbeddedServer) -> Iterator[TaskQueue]:
    with redis_at(server.url):
        yield TaskQueue()


@pytest.fixture
def held(queue: TaskQueue, tmp_path: Path) -> Held:
    return Held(queue, tmp_path)
