"""What the tests of workers share: one backend, and the tasks' gates shut before and open after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from redis import Redis

from components.backends.tasks import RedisBackend
from components.compat import task_backends
from tests import tasks
from tests.workers import jobs


@pytest.fixture
def backend(redis: Redis) -> Iterator[RedisBackend]:
    for gate in (tasks.gate, jobs.agate):
        gate.clear()
    tasks.notes.clear()
    jobs.crowded.clear()
    yield cast(RedisBackend, task_backends["default"])
    for gate in (tasks.gate, jobs.agate):
        gate.set()
