"""What a running task says of how far it is, and what it can ask."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.kit.compat import Task
from components.services.queues import Progress, TaskQueue
from components.services.queues.backend import RedisBackend
from components.testing import redis_at
from tests.queues.worker import jobs
from tests.queues.worker.test_execution import Runner, elsewhere
from tests.support.monitoring import sent_to
from tests.support.queues import found, server_time

REPORTS = pytest.mark.parametrize("report", [jobs.report, jobs.areport], ids=["sync", "async"])


@pytest.fixture
def runner(backend: RedisBackend) -> Runner:
    return Runner(backend)


def said(task_id: str) -> Progress | None:
    return found(task_id).progress


@REPORTS
def test_the_progress_of_a_running_task_can_be_seen(runner: Runner, report: Task) -> None:
    result = report.enqueue(3)
    claimed = runner.claim()

    elsewhere(runner.execute, claimed).result(10)

    progress = said(result.id)
    assert progress is not None
    assert (progress.done, progress.total, progress.note, progress.percent) == (0, 3, "step 0", 0.0)
    info = found(result.id)
    assert info.last_attempted_at is not None
    assert progress.at is not None
    assert info.last_attempted_at <= progress.at <= server_time()


@REPORTS
def test_in_a_loop_it_is_written_down_now_and_then(
    runner: Runner, redis_server: EmbeddedServer, report: Task
) -> None:
    report.enqueue(500)
    claimed = runner.claim()

    with sent_to(redis_server) as commands:
        elsewhere(runner.execute, claimed).result(10)

    assert 1 <= sum(command.startswith("EVAL") for command in commands) < 10


def test_the_end_is_written_down_however_soon_it_comes(runner: Runner) -> None:
    result = jobs.report_the_end.enqueue()
    claimed = runner.claim()

    elsewhere(runner.execute, claimed).result(10)

    progress = said(result.id)
    assert progress is not None
    assert (progress.done, progress.note, progress.percent) == (3, "done", 100.0)


@REPORTS
def test_while_redis_is_away_it_is_only_logged(
    runner: Runner, report: Task, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = report.enqueue(3)
    claimed = runner.claim()

    with redis_at(f"unix://{tmp_path}/nothing.sock"):
        finished = elsewhere(runner.execute, claimed).result(10)

    assert runner.hand_in(finished).state == "successful"
    told = [entry for entry in caplog.records if entry.levelno == logging.WARNING]
    assert {result.id in entry.getMessage() for entry in told} == {True}


@REPORTS
def test_a_task_learns_from_its_progress_that_it_is_to_be_cancelled(runner: Runner, report: Task) -> None:
    result = report.enqueue(1)
    claimed = runner.claim()
    TaskQueue().cancel("default", [result.id])

    info = runner.hand_in(elsewhere(runner.execute, claimed).result(10))

    if report is jobs.report:  # a function has to ask
        assert info.return_value is True
    else:
        assert [each.exception_class_path for each in info.errors] == ["components.exceptions.TaskCancelled"]
