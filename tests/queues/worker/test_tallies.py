"""What a worker counts of the tasks that it runs."""

from __future__ import annotations

from typing import Any

import pytest

from components.services.counters import CounterReader, buffer, flush
from components.services.queues.backend import RedisBackend
from tests.fixtures.worker import NOTE, MakeWorker, push
from tests.support.queues import options


def test_ends_are_counted_of_all_queues_and_of_each_with_the_time_that_tasks_took(
    backend: RedisBackend, make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)
    push(NOTE, 3)
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    push("tests.tasks.fail", queue="mail")
    with options(max_attempts=2, backoff=0):
        assert make_worker("default", "mail", burst=True).run() == 0
    flush()

    found = {
        info.name: CounterReader().read([info.name], 3_600)[info.name].total
        for info in CounterReader().page()
    }
    times = [found.pop(f"tasks-us:{queue}") for queue in ("default", "mail")]
    assert all(0 < each < 60_000_000 for each in times)
    assert found == {
        "tasks:enqueued": 1,
        "tasks-enqueued:mail": 1,
        "tasks:successful": 3,
        "tasks-successful:default": 3,
        "tasks:retried": 1,
        "tasks-retried:mail": 1,
        "tasks:failed": 1,
        "tasks-failed:mail": 1,
    }
