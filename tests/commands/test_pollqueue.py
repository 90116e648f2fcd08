"""`manage.py pollqueue` as a process."""

from __future__ import annotations

import signal

import pytest

from components.embedded import EmbeddedServer
from components.services.queues import TaskQueue
from tests.commands.processes import Command
from tests.support.waiting import eventually


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_poller_moves_due_tasks_until_it_is_told_to_stop(
    server: EmbeddedServer, queue: TaskQueue, number: signal.Signals
) -> None:
    with Command(server.url, "pollqueue") as poller:
        assert poller.is_working()
        queue.push("tests.tasks.echo", delay=0.2)
        assert eventually(lambda: queue.stats("default").ready == 1)
        poller.signal(number)

        assert poller.exit_code() == 0
    assert "INFO Poller" in poller.output
    assert "Traceback" not in poller.output
    assert queue.workers() == []
