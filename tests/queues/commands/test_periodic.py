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


def test_an_app_whose_tasks_cannot_be_imported_is_named_and_the_worker_works(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    app = tmp_path / "broken_app"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "tasks.py").write_text("from components.services.queues import cron\n\ncron('61 * * * *')\n")
    with run_worker(server.url, APPS="broken_app", PYTHONPATH=str(tmp_path)) as worker:
        task_id = queue.push("tests.tasks.echo")

        assert eventually(lambda: (info := queue.get(task_id)) and info.state == "successful")

    assert "broken_app.tasks cannot be imported" in worker.output
    assert "its minute is '61'" in worker.output
