"""What becomes of one claimed task, whatever it does: in a worker, and in run_tasks() of components.testing."""

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from copy import deepcopy
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections
from django.dispatch import Signal
from django.test.utils import modify_settings
from redis import Redis

from components.embedded import EmbeddedServer
from components.kit.compat import Task, TaskResult, TaskResultStatus
from components.services.queues import Claimed, Consumer, Finished, TaskInfo, TaskQueue, keys, policy
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.execution import Execution
from components.services.queues.worker.runs import Run, ServerClock
from components.testing import redis_at, run_tasks
from tests import tasks
from tests.fixtures.worker import NOTE, MakeWorker, counts, push
from tests.queues.worker import jobs
from tests.support.monitoring import sent_to
from tests.support.queues import claim_one, come_due, end_lease, found, outlive, server_time
from tests.support.waiting import eventually

REPORTS = pytest.mark.parametrize("report", [jobs.report, jobs.areport], ids=["sync", "async"])


def elsewhere(function: Callable[..., Any], *args: Any) -> Future[Any]:
    """Call it in another thread, as a worker does; one that hangs does not hold up the tests."""
    answer: Future[Any] = Future()

    def call() -> None:
        try:
            answer.set_result(function(*args))
        except BaseException as error:  # noqa: BLE001  (for the thread that asks)
            answer.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return answer


class Runner:
    """A worker in slow motion: each step by itself."""

    def __init__(self, backend: RedisBackend) -> None:
        self.backend = backend
        self.consumer = Consumer(backend.alias)
        self.clock = ServerClock()
        self.execution = Execution(backend, self.clock)

    def claim(self) -> Claimed:
        step = self.consumer.advance(self.consumer.request({"default": 1}, 1))
        self.clock.set(step.now)
        return step.claimed[0]

    def execute(self, claimed: Claimed) -> Finished | None:
        """Run it in this thread; what became of it."""
        finished = self.execution.run(Run(claimed, self.consumer, self.clock))
        assert finished is None or isinstance(finished, Finished)
        return finished

    def hand_in(self, finished: Finished | None) -> TaskInfo:
        """Tell Redis what became of it; the task as it is then."""
        assert finished is not None
        self.consumer.advance(self.consumer.request({}, 0, [finished]))
        info = self.backend.queue.get(finished.task.id)
        assert info is not None
        return info

    def run(self, claimed: Claimed) -> TaskInfo:
        """Run it as a worker does, and hand in how it ended."""
        return self.hand_in(elsewhere(self.execute, claimed).result(10))

    def call(self, task: Task, /, *args: Any, **kwargs: Any) -> TaskResult:
        """Enqueue and run it; its result as everyone can read it."""
        result = task.enqueue(*args, **kwargs)
        self.run(self.claim())
        return task.get_result(result.id)


@pytest.fixture
def runner(backend: RedisBackend) -> Runner:
    return Runner(backend)


@contextmanager
def listening(signal: Signal) -> Iterator[list[tuple[type, TaskResult]]]:
    """What is sent with *signal*: the senders, and the results as they were."""
    sent: list[tuple[type, TaskResult]] = []

    def receive(sender: type, task_result: TaskResult, **kwargs: Any) -> None:
        sent.append((sender, deepcopy(task_result)))

    signal.connect(receive)
    try:
        yield sent
    finally:
        signal.disconnect(receive)


@pytest.mark.parametrize("parameters", [jobs.parameters, jobs.aparameters], ids=["sync", "async"])
def test_keyword_arguments_may_have_any_name(runner: Runner, parameters: Task) -> None:
    given = {"func": 1, "task": 2, "args": 3, "context": 4, "claimed": 5}

    assert runner.call(parameters, **given).return_value == given


@pytest.mark.parametrize("attempt", [tasks.attempt, jobs.aattempt], ids=["sync", "async"])
def test_a_context_tells_how_often_a_task_was_started(runner: Runner, redis: Redis, attempt: Task) -> None:
    result = attempt.enqueue()
    dies = runner.claim()
    redis.zadd(keys.QueueKeys("default", "default").running, {dies.id: 1})  # its lease ended long ago

    info = runner.run(runner.claim())

    assert info.return_value == 2
    assert attempt.get_result(result.id).attempts == 2


@pytest.mark.parametrize("fail", [tasks.fail, tasks.afail], ids=["sync", "async"])
def test_a_task_that_raises_has_failed_with_the_traceback(runner: Runner, fail: Task) -> None:
    result = runner.call(fail)

    assert result.status == TaskResultStatus.FAILED
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert error.traceback.startswith("Traceback (most recent call last):")
    assert f"in {fail.func.__name__}" in error.traceback
    assert "ValueError: no" in error.traceback


@pytest.mark.parametrize(
    ("leave", "raised"),
    [
        (tasks.leave, SystemExit),
        (tasks.interrupt, KeyboardInterrupt),
        (jobs.aleave, SystemExit),
        (jobs.ainterrupt, KeyboardInterrupt),
        (jobs.leave_behind, None),
    ],
)
def test_no_task_can_end_its_worker(runner: Runner, leave: Task, raised: type[BaseException] | None) -> None:
    result = runner.call(leave)

    assert [error.exception_class for error in result.errors] == ([raised] if raised else [])
    assert runner.call(tasks.aecho, "alive").return_value == "alive"


@pytest.mark.parametrize("note", [tasks.note, jobs.anote], ids=["sync", "async"])
def test_a_task_that_was_cancelled_before_its_turn_is_not_called(runner: Runner, note: Task) -> None:
    result = note.enqueue("called")
    claimed = runner.claim()
    runner.backend.queue.cancel("default", [result.id])
    run = Run(claimed, runner.consumer, runner.clock)
    run.cancel()

    info = runner.hand_in(elsewhere(runner.execution.run, run).result(10))

    assert tasks.notes == []
    assert (info.state, info.is_cancelled) == ("dead", True)
    assert [error.exception_class_path for error in info.errors] == ["components.exceptions.TaskCancelled"]


def test_a_module_that_fails_is_the_reason(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "breaking_app"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "breaks_on_import.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)

    with modify_settings(INSTALLED_APPS={"append": "breaking_app"}):
        runner.backend.queue.push("breaking_app.breaks_on_import.echo")
        info = runner.run(runner.claim())

    assert (info.state, info.errors[0].exception_class_path) == ("dead", "builtins.ZeroDivisionError")


@pytest.mark.parametrize("connect", [jobs.connect, jobs.connect_and_fail], ids=["success", "failure"])
def test_an_idle_worker_leaves_no_connection_open(make_worker: MakeWorker, file: str, connect: Task) -> None:
    jobs.used.clear()
    connect.enqueue(file)

    make_worker(concurrency=1, max_tasks=1).run()

    [used] = jobs.used
    assert eventually(lambda: used.connection is None)


def test_a_task_sees_no_language_zone_or_variable_of_the_task_before_it(
    backend: RedisBackend, make_worker: MakeWorker
) -> None:
    [first, second] = [jobs.surroundings.enqueue(leaves) for leaves in (True, False)]

    make_worker(concurrency=1, burst=True).run()

    found = [backend.queue.get(each.id).return_value for each in (first, second)]
    assert found[0] == found[1]


def test_a_thread_without_the_context_of_its_task_is_told_of_once(
    runner: Runner, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "_is_said", threading.Event())
    asked = [policy.is_cancelled, partial(policy.progress, 1)] * 2

    def work() -> None:
        for each in asked:
            for target in (each, partial(copy_context().run, each)):
                thread = threading.Thread(target=target, name=f"thread {asked.index(each)}")
                thread.start()
                thread.join()

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "notes", SimpleNamespace(append=lambda value: work()))
        runner.call(tasks.note, 1)

    said = [record.getMessage() for record in caplog.records if record.name.endswith("policy")]
    assert len(said) == 1
    assert "thread 0" in said[0]


@pytest.mark.parametrize("how", ["killed", "cut off"])
def test_a_task_that_may_not_be_started_again_is_not(runner: Runner, redis: Redis, how: str) -> None:
    task_id = jobs.once_only.enqueue().id
    consumer = Consumer()
    claimed = claim_one(consumer)
    if how == "killed":
        end_lease(redis, task_id)
    else:
        consumer.release([claimed], begun=[claimed])

    info = runner.run(runner.claim())

    assert (info.state, [error.exception_class_path.rpartition(".")[2] for error in info.errors]) == (
        "dead",
        ["WorkerDied"],
    )


@pytest.mark.parametrize("is_retried", [False, True])
def test_a_task_that_has_expired_is_dropped_and_may_be_sent_again(
    runner: Runner, redis: Redis, is_retried: bool
) -> None:
    task_id = jobs.brief.enqueue(is_retried).id
    if is_retried:
        runner.run(runner.claim())
        come_due(redis, task_id)
    outlive(redis, task_id)

    info = runner.run(runner.claim())

    kinds = [error.kind.rpartition(".")[2] for error in info.errors]
    assert (info.state, kinds) == ("dead", ["ValueError"] * is_retried + ["TaskExpired"])
    assert jobs.brief.get_result(task_id).status == TaskResultStatus.FAILED
    assert TaskQueue().resend([task_id]).sent == 1
    again = runner.run(runner.claim())
    assert again.state == ("delayed" if is_retried else "successful")
    assert again.expires_at is not None
    assert again.expires_at > server_time()


@pytest.mark.parametrize(
    ("expires", "is_late"),
    [(timedelta(seconds=-1), True), (timedelta(hours=1), False), (None, False)],
)
def test_a_call_expires_at_an_instant(runner: Runner, expires: timedelta | None, is_late: bool) -> None:
    at = expires and server_time() + expires
    result = jobs.brief.using(expires=at).enqueue()

    assert found(result.id).expires_at == (at or result.enqueued_at + timedelta(seconds=60))
    assert runner.run(runner.claim()).state == ("dead" if is_late else "successful")


def test_a_task_begins_without_a_connection_that_was_left_open(runner: Runner, file: str) -> None:
    def run_with_a_connection(claimed: Claimed) -> Finished | None:
        connections[file].ensure_connection()
        return runner.execute(claimed)

    result = jobs.connect.enqueue(file)
    runner.hand_in(elsewhere(run_with_a_connection, runner.claim()).result(10))

    assert jobs.connect.get_result(result.id).return_value is False


def test_the_ready_tasks_run_in_order_and_the_answer_says_how_they_ended(redis: Redis) -> None:
    first = tasks.echo.enqueue("first")
    fails = tasks.fail.enqueue("no swords left")
    last = tasks.aecho.enqueue("last")

    ended = run_tasks()

    assert [info.id for info in ended] == [first.id, fails.id, last.id]
    assert [info.state for info in ended] == ["successful", "dead", "successful"]
    assert [info.return_value for info in ended] == ["first", None, "last"]
    assert "ValueError: no swords left" in ended[1].errors[0].traceback
    assert run_tasks() == []
    assert not [key for key in redis.scan_iter() if b"worker" in key]


def test_attempts_without_a_delay_and_tasks_that_tasks_enqueue_run_too(backend: RedisBackend) -> None:
    jobs.succeed_at_last.enqueue()
    states = [("ready", 1, None), ("ready", 2, None), ("successful", 2, 3)]
    assert [(info.state, len(info.errors), info.return_value) for info in run_tasks()] == states

    jobs.enqueue_another.enqueue(2)
    assert [info.return_value for info in run_tasks()] == [2, 1, 0]


def test_only_so_many_run_as_the_limit_says(backend: RedisBackend) -> None:
    push(NOTE, 5)

    assert len(run_tasks(limit=2)) == 2
    assert counts() == {"ready": 3, "successful": 2}
    assert run_tasks(limit=0) == []
    assert len(run_tasks(limit=9)) == 3


def test_a_keyboard_interrupt_ends_it_and_the_task_is_given_back(backend: RedisBackend) -> None:
    tasks.interrupt.enqueue()

    with pytest.raises(KeyboardInterrupt):
        run_tasks()

    assert counts() == {"ready": 1}


@pytest.mark.parametrize("task", [jobs.thread_name, jobs.thread_of_the_orm], ids=["sync", "async"])
def test_everything_runs_in_the_callers_thread(backend: RedisBackend, task) -> None:
    task.enqueue()

    assert run_tasks()[0].return_value == threading.current_thread().name


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


@REPORTS
def test_progress_is_written_now_and_then(runner: Runner, redis_server: EmbeddedServer, report: Task) -> None:
    result = report.enqueue(500)
    claimed = runner.claim()

    with sent_to(redis_server) as commands:
        elsewhere(runner.execute, claimed).result(10)

    assert 1 <= sum(command.startswith("EVAL") for command in commands) < 10
    info = found(result.id)
    progress = info.progress
    assert (progress.total, progress.note) == (500, f"step {progress.done}")
    assert info.last_attempted_at <= progress.at <= server_time()
    ended = jobs.report_the_end.enqueue()
    elsewhere(runner.execute, runner.claim()).result(10)
    at_the_end = found(ended.id).progress
    assert (at_the_end.done, at_the_end.note, at_the_end.percent) == (3, "done", 100.0)


@REPORTS
def test_while_redis_is_away_progress_is_only_logged(
    runner: Runner, report: Task, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = report.enqueue(3)
    claimed = runner.claim()

    with redis_at(f"unix://{tmp_path}/nothing.sock"):
        finished = elsewhere(runner.execute, claimed).result(10)

    assert runner.hand_in(finished).state == "successful"
    told = [entry for entry in caplog.records if entry.levelno == logging.WARNING]
    assert {result.id in entry.getMessage() for entry in told} == {True}
