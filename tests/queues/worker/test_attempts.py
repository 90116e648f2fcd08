"""What a worker does with tasks that fail, run too long, or are to be cancelled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from components.kit.compat import TaskResult, TaskResultStatus, task_finished, task_started
from components.services.queues import Concurrency, TaskQueue
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.tasks import STUCK
from components.services.queues.worker.worker import Worker
from components.services.semaphores import Semaphore
from tests import tasks
from tests.fixtures.worker import WAIT, MakeWorker, counts, push, reaches
from tests.queues.worker import jobs
from tests.queues.worker.test_execution import listening
from tests.support.queues import options
from tests.support.waiting import eventually

Start = Callable[[Worker], Worker]


# --- Attempts --------------------------------------------------------------------------------------


def test_a_task_is_tried_again_until_it_succeeds(make_worker: MakeWorker) -> None:
    result = jobs.succeed_at_last.enqueue()

    make_worker(max_tasks=3).run()
    result.refresh()

    assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, 3, 3)
    assert [error.exception_class for error in result.errors] == [ValueError, ValueError]
    assert result == jobs.succeed_at_last.get_result(result.id)


def test_the_signals_tell_of_each_start_and_of_one_end(make_worker: MakeWorker) -> None:
    result = jobs.fail_thrice.enqueue()
    with listening(task_started) as started, listening(task_finished) as finished:
        make_worker(max_tasks=3).run()
    result.refresh()

    # A thread that an earlier test left in a stuck task may tell of its end just now.
    starts = [told for _sender, told in started if told.id == result.id]
    assert [told.attempts for told in starts] == [1, 2, 3]
    assert [len(told.errors) for told in starts] == [0, 1, 2]
    (told,) = (told for _sender, told in finished if told.id == result.id)
    assert (told.status, told.attempts) == (TaskResultStatus.FAILED, 3)
    assert told.errors == result.errors


def test_each_attempt_is_a_line_in_the_log(make_worker: MakeWorker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    failed, successful = jobs.fail_thrice.enqueue(), tasks.echo.enqueue()

    make_worker(max_tasks=4, concurrency=1).run()

    lines = [
        (
            entry.levelno,
            *(part in entry.getMessage() for part in (failed.id, successful.id, "ValueError('no')")),
        )
        for entry in caplog.records
        if entry.name == "components.done"
    ]
    again, done = (logging.INFO, True, False, True), (logging.INFO, False, True, False)
    assert sorted(lines) == sorted([again, again, done, (logging.ERROR, True, False, True)])


@pytest.mark.parametrize(
    ("kind", "state"), [("notes", "dead"), ("backoff", "dead"), ("receiver", "successful")]
)
def test_whatever_hooks_raise_the_task_ends_and_the_slot_goes_on(
    make_worker: MakeWorker, kind: str, state: str
) -> None:
    def leave(**told: object) -> None:
        raise SystemExit("receiver")

    results = [jobs.raise_anything.enqueue(kind) for _ in range(2)]
    for signal in (task_started, task_finished):
        signal.connect(leave)
    try:
        assert make_worker(concurrency=1, max_tasks=2).run() == 0
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(leave)

    for result in results:
        info = TaskQueue().get(result.id)
        assert (info.state, len(info.errors)) == (state, int(state == "dead"))


# --- Leases of their own ---------------------------------------------------------------------------


def test_a_lease_of_its_own_is_renewed_although_the_workers_is_longer(
    make_worker: MakeWorker, start: Start, patient: None
) -> None:
    result = jobs.wait_under_a_short_lease.enqueue()
    start(make_worker(concurrency=1))
    assert reaches(running=1)
    first = TaskQueue().get(result.id).lease_expires_at

    assert eventually(lambda: TaskQueue().get(result.id).lease_expires_at > first)
    jobs.agate.set()
    assert reaches(successful=1)


# --- Timeouts --------------------------------------------------------------------------------------


def test_a_coroutine_that_runs_too_long_is_cancelled_fails_and_is_tried_again(
    make_worker: MakeWorker,
) -> None:
    result = jobs.sleep_too_long.enqueue()

    assert make_worker(max_tasks=2).run() == 0
    result.refresh()

    assert [jobs.told.get_nowait() for _ in range(2)] == ["cancelled"] * 2
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 2)
    for error in result.errors:
        assert error.exception_class_path == "components.exceptions.TaskTimedOut"


def test_a_timeout_may_be_that_of_the_options_or_the_coroutines_own(make_worker: MakeWorker) -> None:
    own = jobs.own_timeout.enqueue()
    make_worker(burst=True).run()
    with options(timeout=0.05):
        result = jobs.until_cancelled.enqueue()
        make_worker(burst=True).run()

    assert [each.exception_class for each in jobs.own_timeout.get_result(own.id).errors] == [TimeoutError]
    assert [each.exception_class.__name__ for each in jobs.until_cancelled.get_result(result.id).errors] == [
        "TaskTimedOut"
    ]


def test_a_function_that_runs_too_long_ends_its_worker_when_the_others_have_ended(
    backend: RedisBackend, make_worker: MakeWorker, patient: None
) -> None:
    result = jobs.stuck.enqueue()
    [beside] = push(WAIT)
    worker = make_worker(concurrency=3)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(worker.run)
        assert eventually(lambda: worker._stuck)
        [waiting] = push(WAIT)
        assert worker._want() == 0  # although a thread is free
        assert counts() == {"ready": 1, "running": 2}  # what has timed out is still this worker's
        assert backend.queue.get(result.id).errors == ()
        jobs.agate.set()  # it ends after all: too late
        tasks.gate.set()

        assert running.result(10) == STUCK

    assert counts() == {"ready": 1, "successful": 1, "dead": 1}
    assert [backend.queue.get(task_id).starts for task_id in (beside, waiting)] == [1, 0]
    result.refresh()
    assert [error.exception_class_path for error in result.errors] == ["components.exceptions.TaskTimedOut"]


def test_a_task_beside_a_stuck_one_is_cut_off_and_counted_after_the_shutdown_timeout(
    backend: RedisBackend, make_worker: MakeWorker, patient: None
) -> None:
    result = jobs.stuck.enqueue()
    beside = push(WAIT, 2)
    worker = make_worker(concurrency=2, shutdown_timeout=0.2)

    assert worker.run() == STUCK

    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    (error,) = result.errors
    assert error.exception_class_path == "components.exceptions.TaskTimedOut"
    assert counts() == {"ready": 2, "dead": 1}
    infos = [backend.queue.get(task_id) for task_id in beside]
    assert [(info.starts, info.cut_off, info.worker_ids) for info in infos] == [(0, 1, ()), (0, 0, ())]
    assert infos[0].started_at is not None
    assert backend.queue.stats("default").cut_off == 1
    assert TaskQueue().workers() == []
    jobs.agate.set()
    tasks.gate.set()
    make_worker(burst=True).run()
    info = backend.queue.get(beside[0])
    assert (info.state, info.starts, len(info.worker_ids), info.cut_off) == ("successful", 1, 1, 1)


@pytest.mark.parametrize("cut", ["timed out", "cut off"])
def test_the_permit_of_what_still_ran_ends_with_its_worker_and_not_with_the_lease(
    make_worker: MakeWorker, patient: None, cut: str
) -> None:
    limited = jobs.stuck_alone if cut == "timed out" else jobs.waits_alone
    limit = Concurrency(1).name_for(limited.module_path, [], {})
    limited.enqueue()
    if cut == "cut off":
        jobs.stuck.enqueue()
    worker = make_worker(concurrency=2, shutdown_timeout=0.2)

    assert worker.run() == STUCK

    assert eventually(Semaphore(limit, limit=1).try_acquire, within=5)


def test_a_coroutine_that_does_not_end_when_it_is_cancelled_is_stuck(
    make_worker: MakeWorker, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.services.queues.worker.execution.UNWILLING", 0.05)
    result = jobs.unwilling.enqueue()

    assert make_worker(concurrency=1).run() == STUCK

    (error,) = jobs.unwilling.get_result(result.id).errors
    assert error.exception_class_path == "components.exceptions.TaskTimedOut"


def test_a_stuck_function_is_tried_again_by_another_worker(
    make_worker: MakeWorker, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with options(max_attempts=2, backoff=0.0, lease=1800.0):
        result = jobs.stuck.enqueue()
        assert make_worker(concurrency=1).run() == STUCK
        assert jobs.stuck.get_result(result.id).status == TaskResultStatus.READY
        jobs.agate.set()  # this time it ends in time, however slow the machine is
        monkeypatch.setattr(jobs, "stuck", replace(jobs.stuck, timeout=30.0))

        assert make_worker(concurrency=1, max_tasks=1).run() == 0
        result.refresh()

    assert (result.status, result.attempts, len(result.errors)) == (TaskResultStatus.SUCCESSFUL, 2, 1)


# --- Cancelling ------------------------------------------------------------------------------------


@pytest.fixture
def brisk(backend: RedisBackend) -> Iterator[None]:
    """Workers send their heartbeat every third of a second."""
    with options(lease=1.0):
        yield


def run_and_cancel(worker: Worker, start: Start, result: TaskResult) -> None:
    start(worker)
    assert jobs.told.get(timeout=10) == "begun"
    assert TaskQueue().cancel("default", [result.id]).asked == 1


def test_a_running_coroutine_is_cancelled_and_cleans_up(
    brisk: None, make_worker: MakeWorker, start: Start
) -> None:
    result = jobs.until_cancelled.enqueue()
    with listening(task_finished) as finished:
        run_and_cancel(make_worker(), start, result)
        assert reaches(dead=1)

    assert jobs.told.get_nowait() == "cleaned up"
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class.__name__ for error in result.errors] == ["TaskCancelled"]
    assert TaskQueue().get(result.id).is_cancelled
    assert [told.status for _sender, told in finished] == [TaskResultStatus.FAILED]


def test_a_cancelled_task_is_not_tried_again(brisk: None, make_worker: MakeWorker, start: Start) -> None:
    with options(lease=1.0, max_attempts=5, backoff=0.0):
        result = jobs.until_told.enqueue()
        run_and_cancel(make_worker(), start, result)

        assert reaches(dead=1)
    result.refresh()
    assert result.attempts == 1
    assert [error.exception_class.__name__ for error in result.errors] == [
        "InterruptedError",
        "TaskCancelled",
    ]
