"""What a worker does with tasks that fail, run too long, or are to be cancelled."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from components.kit.compat import Task, TaskError, TaskResult, TaskResultStatus, task_finished, task_started
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


def kind(error: TaskError) -> str:
    return error.exception_class_path.rpartition(".")[2]


def test_a_task_is_tried_again_and_signals_tell_of_each_start_and_one_end(make_worker: MakeWorker) -> None:
    result, at_last = jobs.fail_thrice.enqueue(), jobs.succeed_at_last.enqueue()
    with listening(task_started) as started, listening(task_finished) as finished:
        make_worker(max_tasks=6).run()
    result.refresh()
    at_last.refresh()

    # A thread that an earlier test left in a stuck task may tell of its end just now.
    starts = [told for _sender, told in started if told.id == result.id]
    assert [told.attempts for told in starts] == [1, 2, 3]
    assert [len(told.errors) for told in starts] == [0, 1, 2]
    [told] = [told for sender, told in finished if (sender, told.id) == (RedisBackend, result.id)]
    assert (told.status, told.attempts) == (TaskResultStatus.FAILED, 3)
    assert told.errors == result.errors
    assert (at_last.status, at_last.return_value, at_last.attempts) == (TaskResultStatus.SUCCESSFUL, 3, 3)
    assert [error.exception_class for error in at_last.errors] == [ValueError, ValueError]


def test_each_attempt_is_a_line_in_the_log(make_worker: MakeWorker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "components.done")
    failed, successful = jobs.fail_thrice.enqueue(), tasks.echo.enqueue()

    make_worker(max_tasks=4, concurrency=1).run()

    lines = [(each.levelno, each.getMessage()) for each in caplog.records if each.name == "components.done"]
    told = [level for level, text in lines if failed.id in text and "ValueError('no')" in text]
    assert sorted(told) == [logging.INFO, logging.INFO, logging.ERROR]
    assert [level for level, text in lines if successful.id in text] == [logging.INFO]


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


def test_a_coroutine_that_runs_too_long_is_cancelled_and_tried_again(make_worker: MakeWorker) -> None:
    result, own = jobs.sleep_too_long.enqueue(), jobs.own_timeout.enqueue()
    assert make_worker(burst=True).run() == 0
    told = [jobs.told.get_nowait() for _ in range(2)]
    with options(timeout=0.05):
        by_option = jobs.until_cancelled.enqueue()
        make_worker(burst=True).run()
    for each in (result, own, by_option):
        each.refresh()

    assert told == ["cancelled"] * 2
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 2)
    assert [kind(error) for error in result.errors] == ["TaskTimedOut"] * 2
    assert [kind(error) for error in by_option.errors] == ["TaskTimedOut"]
    assert [kind(error) for error in own.errors] == ["TimeoutError"]


@pytest.mark.parametrize("declared", [jobs.stuck, jobs.unwilling], ids=["function", "coroutine"])
def test_what_runs_too_long_ends_its_worker_when_the_others_have_ended(
    backend: RedisBackend,
    make_worker: MakeWorker,
    patient: None,
    monkeypatch: pytest.MonkeyPatch,
    declared: Task,
) -> None:
    monkeypatch.setattr("components.services.queues.worker.execution.UNWILLING", 0.05)
    [beside] = push(WAIT)
    worker = make_worker(concurrency=3)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(worker.run)
        assert eventually(worker._pool.begun)
        result = declared.enqueue()
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
    assert [kind(error) for error in result.errors] == ["TaskTimedOut"]


def test_a_task_beside_a_stuck_one_is_cut_off_and_counted_after_the_shutdown_timeout(
    backend: RedisBackend, make_worker: MakeWorker, patient: None
) -> None:
    beside = push(WAIT)
    worker = make_worker(concurrency=2, shutdown_timeout=0.2)
    with ThreadPoolExecutor() as pool:
        running = pool.submit(worker.run)
        assert eventually(worker._pool.begun)
        result = jobs.stuck.enqueue()
        beside += push(WAIT)
        assert running.result(10) == STUCK

    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
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


@pytest.fixture
def brisk(backend: RedisBackend) -> Iterator[None]:
    """Workers send their heartbeat every third of a second."""
    with options(lease=1.0):
        yield


def run_and_cancel(worker: Worker, start: Start, result: TaskResult) -> None:
    start(worker)
    assert jobs.told.get(timeout=10) == "begun"
    assert TaskQueue().cancel("default", [result.id]).asked == 1


def test_a_coroutine_is_cancelled_and_cleans_up(brisk: None, make_worker: MakeWorker, start: Start) -> None:
    result = jobs.until_cancelled.enqueue()
    with listening(task_finished) as finished:
        run_and_cancel(make_worker(), start, result)
        assert reaches(dead=1)

    assert jobs.told.get_nowait() == "cleaned up"
    result.refresh()
    assert [kind(error) for error in result.errors] == ["TaskCancelled"]
    assert [told.status for _sender, told in finished] == [result.status] == [TaskResultStatus.FAILED]


def test_a_cancelled_task_is_not_tried_again(brisk: None, make_worker: MakeWorker, start: Start) -> None:
    with options(lease=1.0, max_attempts=5, backoff=0.0):
        result = jobs.until_told.enqueue()
        run_and_cancel(make_worker(), start, result)

        assert reaches(dead=1)
    result.refresh()
    assert result.attempts == 1
    assert [kind(error) for error in result.errors] == ["InterruptedError", "TaskCancelled"]
