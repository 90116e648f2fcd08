"""What a worker counts of the tasks that it runs."""

from __future__ import annotations

from typing import Any

import pytest

from components.services.counters import CounterReader, buffer, flush
from tests.fixtures.worker import NOTE, MakeWorker, push
from tests.support.queues import options


def test_ends_are_counted_of_all_queues_and_of_each_with_the_time_that_tasks_took(
    make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, settings: Any
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
    runs = {"tests.tasks.note": 3, "tests.tasks.fail": 2}
    for task, count in runs.items():
        for name in (f"runs-us:{task}", f"runs-waited-us:{task}"):
            times.append(found.pop(name))
            assert CounterReader().histograms([name], 3_600)[name].count == count
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
        "runs:retry": 1,
        "runs-retry:tests.tasks.fail": 1,
        "runs:dead": 1,
        "runs-dead:tests.tasks.fail": 1,
    }
