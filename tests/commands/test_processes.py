"""`manage.py runworker --processes`: a parent and its children, as operators and accidents treat them."""

import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

from components.embedded import EmbeddedServer
from components.servers import inspect_server
from components.services.queues import TaskQueue
from components.workers import processes
from components.workers.processes import Processes, Program
from components.workers.reexec import flush
from tests.commands.processes import Command, Held, run_worker
from tests.support.queues import places
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
        parent.signal(signal.SIGTTIN)
        assert eventually(lambda: parent.output.count(" in hold\n") == 3), "each shows its stacks"
        for task in tasks:
            task.end()

        assert eventually(lambda: queue.stats("default").successful == 3)
        parent.signal(signal.SIGTERM)
        assert parent.exit_code() == 0
    assert queue.workers() == []
    assert f"INFO 3 processes for default: {inspect_server().name} " in parent.output
    assert "Traceback" not in parent.output


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
@pytest.mark.parametrize("is_burst", [False, True])
def test_a_child_that_has_reached_a_limit_is_replaced_at_once_but_none_after_a_burst(
    server: EmbeddedServer, queue: TaskQueue, is_burst: bool
) -> None:
    for _ in range(4):
        queue.push("tests.tasks.echo")
    with run_workers(server.url, 2, *(["--burst"] if is_burst else ["--max-tasks", "1"])) as parent:
        assert eventually(lambda: queue.stats("default").successful == 4, within=60)
        if not is_burst:
            parent.signal(signal.SIGTERM)
        assert parent.exit_code() == 0
    assert ("ended with 0; starting another." in parent.output) == (not is_burst)


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


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("times", [1, 2])
def test_the_first_signal_lets_the_tasks_of_all_end_and_the_second_gives_them_back(
    server: EmbeddedServer, queue: TaskQueue, hold: HoldMany, number: signal.Signals, times: int
) -> None:
    tasks = hold(2)
    with run_workers(server.url, 2) as parent:
        assert all_begin(tasks)
        waiting = queue.push("tests.tasks.echo")
        parent.signal(number)
        assert eventually(lambda: parent.output.count("Stopping: 1 running tasks") == 2)
        if times == 1:
            for task in tasks:
                task.end()
        else:
            parent.signal(number)

        assert parent.exit_code() == times - 1
    assert parent.output.count("Stopping at once.") == (2 if times == 2 else 0)
    ready = {waiting} if times == 1 else {waiting, *(task.id for task in tasks)}
    assert {*places()["ready"]} == ready
    assert queue.stats("default").successful == (2 if times == 1 else 0)
    assert queue.workers() == []
    assert "Traceback" not in parent.output


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


PROGRAM = ("-m", "tests.commands.stuck")


def ids() -> set[str]:
    return {worker.id for worker in TaskQueue().workers()}


def is_replaced(before: set[str]) -> bool:
    """Whether there come to be other workers instead."""
    return eventually(lambda: bool(now := ids()) and now.isdisjoint(before))


def is_held_back(pid: int, number: signal.Signals) -> bool:
    """Whether a signal is pending in the main thread of a process, as far as this system tells."""
    status = Path(f"/proc/{pid}/task/{pid}/status")
    if not status.exists():
        return True
    pending = re.search(r"^SigPnd:\s*(\w+)", status.read_text(), re.MULTILINE)
    return bool(pending and int(pending[1], 16) >> (number - 1) & 1)


@pytest.mark.slow
def test_a_stuck_worker_becomes_a_new_one_in_the_same_process(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    with Command(server.url, str(tmp_path), program=PROGRAM) as worker:
        assert worker.is_working()
        before = ids()
        (tmp_path / "gate").touch()

        assert is_replaced(before)
        assert [info.pid for info in queue.workers()] == [worker.pid]
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
    assert worker.output.count("A task is stuck in a thread; restarting") == 1
    assert worker.output.count("INFO Stub") == 2


@pytest.mark.slow
def test_the_new_one_holds_the_lifeline_of_the_old_one(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    lifeline, held = os.pipe()
    try:
        with Command(
            server.url, str(tmp_path), str(lifeline), program=PROGRAM, inherits=[lifeline]
        ) as worker:
            assert worker.is_working()
            before = ids()
            (tmp_path / "gate").touch()
            assert is_replaced(before)
            assert not worker.has_ended()
            os.close(held)

            assert worker.exit_code() == 0
    finally:
        os.close(lifeline)


@pytest.mark.slow
def test_a_worker_that_is_told_to_stop_while_it_starts_anew_does_so(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    with Command(server.url, str(tmp_path), program=PROGRAM) as worker:
        assert worker.is_working()
        (tmp_path / "gate").touch()
        assert worker.says("restarting")
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() in (0, -signal.SIGTERM)  # by the new one, or in the moment of exec


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_stop_waits_for_the_new_process_though_a_stuck_thread_would_accept_it(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "hold").touch()  # the worker has ended, and has not started anew
    with Command(server.url, str(tmp_path), program=PROGRAM) as worker:
        assert worker.is_working()
        (tmp_path / "gate").touch()
        assert worker.says("restarting")
        for each in (number, signal.SIGTTIN):
            worker.signal(each)
            assert eventually(lambda held=each: is_held_back(worker.pid, held))
        (tmp_path / "hold").unlink()

        assert worker.exit_code() == 0
    assert worker.output.count("INFO Stub") == 2


def test_a_stuck_worker_that_was_told_to_stop_ends_with_1(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    with Command(server.url, str(tmp_path), program=PROGRAM) as worker:
        assert worker.is_working()
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() == 1
    assert "restarting" not in worker.output


def test_last_words_that_fail_keep_no_process_alive(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever flushes ends the process next, or begins it anew."""
    monkeypatch.setattr(logging, "shutdown", lambda: None)  # it would close what pytest listens with

    flush(lambda: [][0])

    assert "The final step of this process failed" in caplog.text
    assert "IndexError" in caplog.text


def test_a_signal_that_comes_while_it_begins_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    install = signal.signal

    def raise_at_once(number: int, handler: Any) -> Any:
        before = install(number, handler)
        if number == signal.SIGTERM and callable(handler):
            signal.raise_signal(number)
        return before

    with monkeypatch.context() as patch:
        patch.setattr(signal, "signal", raise_at_once)
        with processes._heard_signals() as heard:
            patch.undo()
            assert signal.SIGTERM in processes._wait(heard, 1)
