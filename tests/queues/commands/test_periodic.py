"""Periodic tasks in processes that know nothing of each other."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.services.queues import TaskQueue
from tests.commands.processes import Command, run_worker
from tests.support.waiting import eventually


@pytest.mark.slow
def test_each_tick_is_run_once_however_many_processes_tick(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    strikes = tmp_path / "strikes"
    environment = {"APPS": "tests.commands.clockwork", "STRIKES": str(strikes)}
    strikes.touch()

    def ticks() -> list[datetime]:
        return sorted(datetime.fromisoformat(line) for line in strikes.read_text().splitlines())

    def each_second(count: int) -> list[datetime]:
        return [ticks()[0] + timedelta(seconds=number) for number in range(count)]

    with ExitStack() as stack:
        commands = [run_worker(server.url, **environment) for _number in range(3)]
        commands.append(Command(server.url, "pollqueue", **environment))
        for command in commands:
            stack.enter_context(command)
        assert all(command.is_working() for command in commands)
        before = len(ticks())

        assert eventually(lambda: len(found := ticks()) >= before + 3 and found == each_second(len(found)))

    assert len(set(ticks())) == len(ticks())
