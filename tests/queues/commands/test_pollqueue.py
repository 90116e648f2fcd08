"""`manage.py pollqueue` as a process."""

from __future__ import annotations

import signal
from contextlib import suppress

import psutil
import pytest

from components.embedded import EmbeddedServer
from components.services.queues import TaskQueue
from tests.commands.processes import Command
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

WATCHED = 2.0  # seconds


def test_the_poller_moves_due_tasks_until_it_is_told_to_stop(
    server: EmbeddedServer, queue: TaskQueue
) -> None:
    with Command(server.url, "pollqueue") as poller:
        assert poller.is_working()
        queue.push("tests.tasks.echo", delay=0.2)
        assert eventually(lambda: queue.stats("default").ready == 1)
        poller.signal(signal.SIGINT)

        assert poller.exit_code() == 0
    assert "INFO Poller" in poller.output
    assert "Traceback" not in poller.output
    assert queue.workers() == []


@pytest.mark.parametrize("arguments", [["pollqueue"], ["runworker", "--no-reload"]], ids=["poller", "worker"])
def test_while_nothing_is_due_it_uses_next_to_no_cpu(
    server: EmbeddedServer, queue: TaskQueue, arguments: list[str]
) -> None:
    queue.push("tests.tasks.echo", delay=3600)
    queue.push("tests.tasks.echo", queue="paused")
    queue.pause("paused")
    with Command(server.url, *arguments) as command:
        assert command.is_working()
        process = psutil.Process(command.pid)
        assert eventually(lambda: process.status() == psutil.STATUS_SLEEPING)
        before = sum(process.cpu_times()[:2])
        with suppress(psutil.TimeoutExpired):
            process.wait(WATCHED)

        assert sum(process.cpu_times()[:2]) - before < 0.1 * WATCHED  # measured: 0.002
