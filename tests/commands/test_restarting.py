"""How a worker process becomes a new one when a thread of it is stuck."""

from __future__ import annotations

import logging
import os
import re
import signal
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.kit.commands.restarting import flush
from components.services.queues import TaskQueue
from tests.commands.processes import Command
from tests.support.waiting import eventually

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
