"""What becomes of a task that runs too long, of its neighbours, and of the process that runs them."""

from __future__ import annotations

import signal
from itertools import pairwise
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.services.queues import TaskQueue
from tests.commands.processes import Held, run_worker
from tests.support.queues import found
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

OVERRUN = "tests.commands.jobs.overrun"


def runs(folder: Path, name: str = "overrun") -> list[tuple[float, float]]:
    """When each run of the job began, and when it was last seen; by a clock that all processes share."""
    told = sorted(folder.glob(f"{name}-*"))
    times = [[float(line) for line in file.read_text().splitlines()[:-1]] for file in told]
    return [(each[0], each[-1]) for each in times if each]


def test_a_function_that_timed_out_is_not_tried_again_before_its_process_has_ended(
    server: EmbeddedServer, queue: TaskQueue, held: Held, tmp_path: Path
) -> None:
    """Its process has to wait for a neighbour, and another worker for something to do."""
    folder = tmp_path / "overrun"
    folder.mkdir()
    environment = {"MAX_ATTEMPTS": "9", "BACKOFF": "0"}
    with run_worker(server.url, "-c", "2", **environment) as one:
        assert held.has_begun()
        task_id = queue.push(OVERRUN, [str(folder)])
        assert one.says("Taking no more tasks")
        with run_worker(server.url, **environment) as other:
            assert eventually(lambda: len(queue.workers()) == 2)
            echo = queue.push("tests.tasks.echo")
            assert queue.wait_for(echo, wait=10).state == "successful"
            assert found(task_id).state == "running"
            assert len(runs(folder)) == 1
            held.end()
            assert eventually(lambda: len(runs(folder)) >= 3)
            for worker in (one, other):
                worker.signal(signal.SIGKILL)
                assert worker.exit_code() == -signal.SIGKILL

    for (_began, last_seen), (next_began, _last) in pairwise(runs(folder)):
        assert last_seen < next_began


def test_a_worker_that_is_stopped_beside_a_stuck_function_hands_its_failure_in(
    server: EmbeddedServer, queue: TaskQueue, held: Held, tmp_path: Path
) -> None:
    overrun = queue.push(OVERRUN, [str(tmp_path)])
    with run_worker(server.url, "-c", "2") as worker:
        assert worker.says("Taking no more tasks")
        worker.signal(signal.SIGTERM)
        held.end()

        assert worker.exit_code() == 1
    assert found(overrun).errors[0].exception_class_path == "components.exceptions.TaskTimedOut"
    assert found(held.id).state == "successful"
    assert queue.workers() == []


def test_the_next_under_a_concurrency_limit_does_not_wait_for_the_lease_of_what_timed_out(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    for _ in range(2):
        queue.push("tests.commands.jobs.overrun_alone", [str(tmp_path)])
    with run_worker(server.url, "-c", "2", LEASE="600") as worker:
        assert eventually(lambda: len(runs(tmp_path, "overrun_alone")) == 2)
        worker.signal(signal.SIGKILL)
        worker.exit_code()

    [(_began, last_seen), (next_began, _last)] = runs(tmp_path, "overrun_alone")
    assert last_seen < next_began  # never two at a time
