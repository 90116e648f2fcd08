"""The poller moves what is due, when it is due, and leaves the rest alone."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from redis import Redis

from components.services.queues import Consumer, TaskQueue, keys
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.poller import Poller
from components.services.queues.worker.worker import Worker
from tests.fixtures.worker import NOTE, is_listening, push, reaches
from tests.support.queues import claim_one, options

pytestmark = pytest.mark.usefixtures("patient")

Start = Callable[[Worker], Worker]


def test_the_poller_moves_the_due_tasks_of_every_queue_also_of_new_ones(
    backend: RedisBackend, redis: Redis, start: Start
) -> None:
    TaskQueue().push(NOTE, ["due"], delay=0.1, queue="old")
    TaskQueue().push(NOTE, ["tomorrow"], delay=86_400, queue="new")
    start(Poller())
    assert is_listening(redis)

    TaskQueue().push(NOTE, ["due"], delay=0.1, queue="new")

    assert reaches("old", ready=1)
    assert reaches("new", ready=1, delayed=1)
    (info,) = backend.queue.workers()
    assert (info.kind, info.pid, info.queues) == ("poller", os.getpid(), ("*",))


def test_the_poller_brings_back_the_tasks_of_dead_workers(start: Start) -> None:
    with options(lease=1.0):
        push(NOTE)
        claim_one(Consumer())
        start(Poller())

        assert reaches(ready=1)


def test_the_poller_rests_although_tasks_are_waiting_for_workers(
    backend: RedisBackend, redis: Redis, start: Start
) -> None:
    push(NOTE)
    push(NOTE, queue="paused")
    backend.queue.pause("paused")
    poller = start(Poller())
    TaskQueue().push(NOTE, ["due"], delay=0.2)
    assert reaches(ready=2)

    assert poller.consumer.request({}, 0).number < 10  # steps so far
    assert redis.llen(keys.QueueKeys("default", "default").wake) == 1  # for a worker
