"""A server and a queue for the tests of task queues."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker
from redis import Redis

from components.kit.compat import TaskResult, task_enqueued
from components.services.queues import TaskQueue, periodic_tasks
from tests.fixtures.service import alarm, one_of_each, redis, server  # noqa: F401


@pytest.fixture
def queue(redis: Redis) -> TaskQueue:  # noqa: F811
    return TaskQueue()


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """The ids that the signal task_enqueued told."""
    ids: list[str] = []

    def hear(task_result: TaskResult, **kwargs: Any) -> None:
        ids.append(task_result.id)

    task_enqueued.connect(hear)
    yield ids
    task_enqueued.disconnect(hear)


@pytest.fixture
def nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No periodic task is declared: what installed apps declare is declared before, and put aside."""
    periodic_tasks.declared()
    monkeypatch.setattr(periodic_tasks, "_declared", {})


@pytest.fixture
def file(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The alias of a second database, in a file, without the transaction of the test."""
    connections.settings["file"] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "db.sqlite3"),
        "OPTIONS": {},
    }
    with django_db_blocker.unblock():
        yield "file"
        connections["file"].close()
    del connections["file"]
    del connections.settings["file"]
