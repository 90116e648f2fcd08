"""What operators do with a running `manage.py runworker`: quiet it, look into it, probe it, limit it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.services.queues import TaskQueue
from tests.commands.processes import Command, Held, run_worker
from tests.support.queues import places
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow
BEATS = {"LEASE": "1"}  # a heartbeat every third of it


# --- Signals ---------------------------------------------------------------------------------------


def test_a_quiet_worker_ends_what_runs_and_takes_nothing_more(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url, "-c", "2") as worker:
        assert held.has_begun()
        worker.signal(signal.SIGTSTP)
        assert eventually(lambda: [info.is_quiet for info in queue.workers()] == [True])
        waiting = queue.push("tests.tasks.echo")
        held.end()
        assert eventually(lambda: queue.get(held.id).state == "successful")

        assert places() == {"ready": [waiting], "successful": [held.id]}
        assert not worker.has_ended()
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
    assert places()["ready"] == [waiting]


def test_a_quiet_poller_goes_on_moving_tasks_until_it_is_stopped(
    server: EmbeddedServer, queue: TaskQueue
) -> None:
    with Command(server.url, "pollqueue") as poller:
        assert poller.is_working()
        poller.signal(signal.SIGTSTP)
        assert eventually(lambda: [info.is_quiet for info in queue.workers()] == [True])
        queue.push("tests.tasks.echo", delay=0.1)

        assert eventually(lambda: queue.stats("default").ready == 1)
        poller.signal(signal.SIGTERM)
        assert poller.exit_code() == 0
    assert queue.workers() == []


def test_a_worker_shows_what_its_threads_do_and_goes_on(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url) as worker:
        assert held.has_begun()
        worker.signal(signal.SIGTTIN)
        assert worker.says("Current thread")
        assert worker.says(" in hold\n")
        held.end()

        assert eventually(lambda: queue.get(held.id).state == "successful")
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0


# --- The heartbeat file ----------------------------------------------------------------------------


def grow_old(path: Path) -> float:
    os.utime(path, (1, 1))
    return path.stat().st_mtime


@pytest.mark.parametrize("command", ["runworker", "pollqueue"])
def test_the_heartbeat_file_is_touched_also_while_redis_is_away(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path, command: str
) -> None:
    beat = tmp_path / "beat"
    with Command(server.url, command, "--heartbeat-file", str(beat), **BEATS) as worker:
        assert worker.is_working()
        old = grow_old(beat)
        assert eventually(lambda: beat.stat().st_mtime > old)
        server.kill()
        assert worker.says("Waiting for Redis")
        old = grow_old(beat)
        assert eventually(lambda: beat.stat().st_mtime > old)
        server.start()
        assert worker.says("Redis answers again")
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() == 0
    assert not beat.exists()


def test_a_heartbeat_file_that_cannot_be_touched_is_said_once_and_stops_nothing(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with run_worker(server.url, "--heartbeat-file", str(folder / "beat"), **BEATS) as worker:
        assert worker.is_working()
        (folder / "beat").unlink()
        folder.rmdir()
        assert worker.says("The heartbeat file cannot be updated")
        queue.push("tests.tasks.echo")
        assert eventually(lambda: queue.stats("default").successful == 1)
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() == 0
    assert worker.output.count("cannot be updated") == 1


# --- Limits ----------------------------------------------------------------------------------------


def test_a_worker_that_has_grown_too_large_ends(server: EmbeddedServer, queue: TaskQueue) -> None:
    grown = queue.push("tests.commands.jobs.grow", [300])
    with run_worker(server.url, "--max-memory", "300", **BEATS) as worker:
        assert worker.exit_code() == 0

    assert "A limit is reached" in worker.output
    assert places() == {"successful": [grown]}
