"""A server and a queue for the tests of task queues."""

from __future__ import annotations

import pytest
from redis import Redis

from components.services.queues import TaskQueue
from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401


@pytest.fixture
def queue(redis: Redis) -> TaskQueue:  # noqa: F811
    return TaskQueue()
