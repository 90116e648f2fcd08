"""`manage.py runworker --processes`: a parent and its children, as operators and accidents treat them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import psutil
import pytest

from components.embedded import EmbeddedServer
from components.kit.commands import processes
from components.kit.commands.processes import Processes, Program
from components.servers import inspect_server
from components.services.queues import Consumer, TaskQueue
from tests.commands.processes import Command, Held, run_worker
from tests.support.queues import claim, places
from tests.support.waiting import eventually, has_ended

SIGNALS = [signal.SIGTERM, signal.SIGINT]

HoldMany = Callable[[int], list[Held]]


@pytest.fixture
def hold(queue: TaskQueue, tmp_path: Path) -> HoldMany:
    """Push so many tasks that run until they are ended."""
    return lambda number: [Held(queue, tmp_path / f"held-{each}") for each in range(number)]


def run_workers(url: str, number: int, *arguments: str, **environment: str) -> Command:
    return run_worker(url, "--processes", str(number), *arguments, **environment)


def working(parent: Command, number: int) -> list[psutil.Process]:
    """The children, when so many of them are listed workers."""

    found: list[psutil.Process] = []

    def look() -> bool:
        listed = {worker.pid for worker in TaskQueue().workers()}
        found[:] = [child for child in parent.children if child.pid in listed]
        return len(found) == number

    assert eventually(look)
    return found


def all_begin(tasks: list[Held]) -> bool:
    return all(task.has_begun() for task in tasks)


@pytest.mark.slow
def test_several_processes_work_at_the_same_time(
    server: EmbeddedServer, queue: TaskQueue, hold: HoldMany
) -> None:
    tasks = hold(3)
    with run_workers(server.url, 3) as parent:
        assert all_begin(tasks)
        children = working(parent, 3)
        assert {worker.pid for worker in queue.workers()} == {child.pid for child in children}
        assert len({queue.get(task.id).worker_ids for task in tasks}) == 3
        for task in tasks:
            task.end()

        assert eventually(lambda: queue.stats("default").successful == 3)
        parent.signal(signal.SIGTERM)
        assert parent.exit_code() == 0
    assert queue.workers() == []
    assert f"INFO 3 processes for default: {inspect_server().name} " in parent.output
    assert "Traceback" not in parent.output


# --- When a process ends unasked -------------------------------------------------------------------


@pytest.mark.slow
def test_a_killed_child_is_replaced(server: EmbeddedServer, queue: TaskQueue) -> None:
    with run_workers(server.url, 2) as parent:
        first, second = working(parent, 2)
        first.kill()
        assert parent.says(f"Process {first.pid} of worker")
        assert parent.says("was killed by SIGKILL; starting another in 1 s.")

        assert eventually(lambda: len(working(parent, 2)) == 2)
        assert second in parent.children
        parent.signal(signal.SIGTERM)
        assert parent.exit_code() == 0


@pytest.mark.slow
def test_a_child_that_has_reached_a_limit_is_replaced_at_once(
    server: EmbeddedServer, queue: TaskQueue
) -> None:
    for _ in range(4):
        queue.push("tests.tasks.echo")
    with run_workers(server.url, 2, "--max-tasks", "1") as parent:
        assert eventually(lambda: queue.stats("default").successful == 4, within=60)
        parent.signal(signal.SIGTERM)
        assert parent.exit_code() == 0
    assert "ended with 0; starting another." in parent.output


@pytest.mark.slow
def test_after_a_burst_no_child_is_replaced(server: EmbeddedServer, queue: TaskQueue) -> None:
    for _ in range(10):
        queue.push("tests.tasks.echo")
    with run_workers(server.url, 2, "--burst") as parent:
        assert parent.exit_code() == 0

    assert queue.stats("default").successful == 10
    assert "starting another" not in parent.output


@pytest.mark.slow
def test_when_the_parent_is_killed_no_child_goes_on_and_no_task_is_lost(
    server: EmbeddedServer, queue: TaskQueue, hold: HoldMany
) -> None:
    tasks = hold(2)
    waiting = queue.push("tests.tasks.echo")
    with run_workers(server.url, 2) as parent:
        assert all_begin(tasks)
        children = working(parent, 2)
        parent.signal(signal.SIGKILL)
        assert eventually(lambda: parent.output.count("Stopping: 1 running tasks") == 2)
        for task in tasks:
            task.end()

        assert eventually(lambda: all(has_ended(child) for child in children))
    assert queue.workers() == []
    assert places()["ready"] == [waiting]
    assert queue.stats("default").successful == 2


# --- Stopping --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_lets_the_tasks_of_all_end(
    server: EmbeddedServer, queue: TaskQueue, hold: HoldMany, number: signal.Signals
) -> None:
    tasks = hold(2)
    with run_workers(server.url, 2) as parent:
        assert all_begin(tasks)
        waiting = queue.push("tests.tasks.echo")
        parent.signal(number)
        assert eventually(lambda: parent.output.count("Stopping: 1 running tasks") == 2)
        for task in tasks:
            task.end()

        assert parent.exit_code() == 0
    assert places()["ready"] == [waiting]
    assert queue.stats("default").successful == 2
    assert "Traceback" not in parent.output


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_the_second_signal_ends_all_at_once_and_gives_back_what_runs(
    server: EmbeddedServer, queue: TaskQueue, hold: HoldMany, number: signal.Signals
) -> None:
    tasks = hold(2)
    with run_workers(server.url, 2) as parent:
        assert all_begin(tasks)
        parent.signal(number)
        assert eventually(lambda: parent.output.count("Stopping: 1 running tasks") == 2)
        parent.signal(number)

        assert parent.exit_code() == 1
    assert parent.output.count("Stopping at once.") == 2
    assert {claimed.id for claimed in claim(Consumer(), 2)} == {task.id for task in tasks}
    assert queue.workers() == []


@pytest.mark.slow
def test_it_can_be_stopped_while_children_still_start(server: EmbeddedServer, queue: TaskQueue) -> None:
    with run_workers(server.url, 2) as parent:
        assert eventually(lambda: len(parent.children) == 2)
        children = parent.children
        parent.signal(signal.SIGTERM)

        assert parent.exit_code() == 0
    assert all(has_ended(child) for child in children)


DEAF = """
import pathlib, signal, sys, time
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""


@pytest.mark.parametrize("patience", [0.1, 60.0], ids=["told once", "told twice"])
def test_a_child_that_does_not_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr(processes, "MARGIN", 0.1)
    begun = tmp_path / "begun"

    def stop() -> None:
        assert eventually(begun.exists)
        os.kill(os.getpid(), signal.SIGTERM)
        if patience > 1:
            os.kill(os.getpid(), signal.SIGINT)

    stopper = Thread(target=stop)
    stopper.start()
    deaf = Program("deaf", [sys.executable, "-c", DEAF, str(begun)])
    code = Processes([deaf], patience=patience).run()
    stopper.join()

    assert code == 1


def test_without_redis_it_ends_with_2_and_one_clear_line(tmp_path: Path) -> None:
    with run_workers(f"unix://{tmp_path}/nothing.sock", 2) as parent:
        assert parent.exit_code() == 2

    [line] = parent.output.splitlines()
    assert "ERROR Redis does not answer" in line


# --- Other signals ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_quiet_parent_has_quiet_children_from_their_first_moment(
    server: EmbeddedServer, queue: TaskQueue
) -> None:
    with run_workers(server.url, 2) as parent:
        assert eventually(lambda: len(parent.children) == 2)
        parent.signal(signal.SIGTSTP)
        first, _second = working(parent, 2)
        assert eventually(lambda: all(worker.is_quiet for worker in queue.workers()))
        first.terminate()
        assert parent.says("starting another")
        assert first not in working(parent, 2)
        assert all(worker.is_quiet for worker in queue.workers())
        waiting = queue.push("tests.tasks.echo")
        parent.signal(signal.SIGTERM)

        assert parent.exit_code() == 0
    assert places() == {"ready": [waiting]}


@pytest.mark.slow
def test_every_child_shows_its_stacks_one_after_the_other(
    server: EmbeddedServer, queue: TaskQueue, hold: HoldMany
) -> None:
    tasks = hold(2)
    with run_workers(server.url, 2) as parent:
        assert all_begin(tasks)
        parent.signal(signal.SIGTTIN)

        assert eventually(lambda: parent.output.count(" in hold\n") == 2)
        assert eventually(lambda: parent.output.count("Current thread") == 2)
