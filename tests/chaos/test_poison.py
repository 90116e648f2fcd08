"""A task that kills its workers goes to the dead set, and takes nobody along."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.services.queues import NewTask, TaskQueue
from tests.commands.processes import run_worker
from tests.support.queues import places
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


def test_tasks_that_were_claimed_together_with_a_killer_are_done(
    server: EmbeddedServer, queue: TaskQueue
) -> None:
    names = ["tests.tasks.echo"] * 2 + ["tests.tasks.kill_worker"] + ["tests.tasks.echo"] * 5
    pushed = [info.id for info in queue.push_many(NewTask(name=name) for name in names) if info]
    killer = pushed.pop(2)
    while not all_have_ended(queue):
        with run_worker(server.url, "-c", "8", LEASE="1", MAX_CRASHES="3") as worker:
            assert eventually(lambda w=worker: w.has_ended() or all_have_ended(queue))

    assert places()["dead"] == [killer]
    assert sorted(places()["successful"]) == sorted(pushed)


def test_a_long_task_that_was_claimed_together_with_a_killer_is_done(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    long = NewTask(name="tests.tasks.append", args=[str(tmp_path / "lines"), "long", 0.7])
    pushed = [info.id for info in queue.push_many([long, NewTask(name="tests.tasks.kill_worker")]) if info]
    while not all_have_ended(queue):
        with run_worker(server.url, "-c", "2", LEASE="1", MAX_CRASHES="3") as worker:
            assert eventually(lambda w=worker: w.has_ended() or all_have_ended(queue))

    assert places()["successful"] == pushed[:1]
    assert places()["dead"] == pushed[1:]


def all_have_ended(queue: TaskQueue) -> bool:
    stats = queue.stats("default")
    return not stats.ready + stats.delayed + stats.running
