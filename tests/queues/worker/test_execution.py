"""What becomes of one claimed task, whatever it does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.dispatch import Signal
from django.test.utils import modify_settings
from pytest_django import DjangoDbBlocker
from redis import Redis

from components.kit.compat import Task, TaskResult, TaskResultStatus, task_finished
from components.services.queues import Claimed, Consumer, Finished, TaskInfo, keys
from components.services.queues.backend import RedisBackend
from components.services.queues.consumer import Parking
from components.services.queues.worker.execution import Execution, _shown
from components.services.queues.worker.runs import Run, ServerClock
from tests import tasks
from tests.fixtures.worker import MakeWorker
from tests.queues.worker import jobs
from tests.support.waiting import eventually


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
        self.execution = Execution(backend, self.clock, Parking(self.consumer))

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

    def call_named(self, name: str) -> TaskInfo:
        """Push and run what may be no task."""
        self.backend.queue.push(name)
        return self.run(self.claim())


@pytest.fixture
def runner(backend: RedisBackend) -> Runner:
    return Runner(backend)


@contextmanager
def receiving(signal: Signal, receive: Callable[..., Any]) -> Iterator[None]:
    signal.connect(receive)
    try:
        yield
    finally:
        signal.disconnect(receive)


@contextmanager
def listening(signal: Signal) -> Iterator[list[tuple[type, TaskResult]]]:
    """What is sent with *signal*: the senders, and the results as they were."""
    sent: list[tuple[type, TaskResult]] = []

    def receive(sender: type, task_result: TaskResult, **kwargs: Any) -> None:
        sent.append((sender, deepcopy(task_result)))

    with receiving(signal, receive):
        yield sent


@pytest.mark.parametrize("parameters", [jobs.parameters, jobs.aparameters], ids=["sync", "async"])
def test_keyword_arguments_may_have_any_name(runner: Runner, parameters: Task) -> None:
    given = {"func": 1, "task": 2, "args": 3, "context": 4, "claimed": 5}

    assert runner.call(parameters, **given).return_value == given


@pytest.mark.parametrize("attempt", [tasks.attempt, jobs.aattempt], ids=["sync", "async"])
def test_a_task_that_asks_for_its_context_learns_how_often_it_was_started(
    runner: Runner, redis: Redis, attempt: Task
) -> None:
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
    ],
    ids=["SystemExit", "KeyboardInterrupt", "async SystemExit", "async KeyboardInterrupt"],
)
def test_a_task_cannot_end_its_worker(runner: Runner, leave: Task, raised: type[BaseException]) -> None:
    result = runner.call(leave)

    assert result.status == TaskResultStatus.FAILED
    assert result.errors[0].exception_class is raised
    assert runner.call(tasks.aecho, "alive").return_value == "alive"


def test_a_leaked_coroutine_cannot_stop_the_event_loop(runner: Runner) -> None:
    runner.call(jobs.leave_behind)

    assert runner.call(tasks.aecho, "alive").return_value == "alive"


@pytest.mark.parametrize("note", [tasks.note, jobs.anote], ids=["sync", "async"])
def test_a_task_that_was_cancelled_while_it_waited_for_a_thread_is_not_called(
    runner: Runner, note: Task
) -> None:
    result = note.enqueue("called")
    claimed = runner.claim()
    runner.backend.queue.cancel("default", [result.id])
    run = Run(claimed, runner.consumer, runner.clock)
    run.cancel()

    info = runner.hand_in(elsewhere(runner.execution.run, run).result(10))

    assert tasks.notes == []
    assert (info.state, info.is_cancelled) == ("dead", True)
    assert [error.exception_class_path for error in info.errors] == ["components.exceptions.TaskCancelled"]


def test_a_value_that_is_not_json_is_a_failure_that_names_it(runner: Runner) -> None:
    (error,) = runner.call(tasks.give_back_a_set).errors

    assert error.exception_class is TypeError  # as Django's own backends have it


class Unshowable(Exception):
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("no"), "ValueError('no')"),
        (ValueError("x" * 988), f"ValueError('{'x' * 988}… (1,002 characters)"),
        (ValueError("x" * 986), f"ValueError('{'x' * 986}')"),
        (Unshowable(), "Unshowable, whose repr() failed"),
    ],
)
def test_an_error_is_shown_in_the_log_as_far_as_that_goes(error: Exception, shown: str) -> None:
    assert _shown(error) == shown


def test_a_task_whose_module_cannot_be_imported_dies_with_the_reason(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "breaking_app"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "breaks_on_import.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)

    with modify_settings(INSTALLED_APPS={"append": "breaking_app"}):
        info = runner.call_named("breaking_app.breaks_on_import.echo")

    assert (info.state, info.errors[0].exception_class_path) == ("dead", "builtins.ZeroDivisionError")


@pytest.mark.parametrize("use_tz", [True, False], ids=["aware", "naive"])
def test_the_finished_signal_of_a_success_carries_what_get_result_will_give(
    runner: Runner, settings: Any, use_tz: bool
) -> None:
    settings.USE_TZ = use_tz
    with listening(task_finished) as sent:
        result = runner.call(tasks.echo, ("sword", 97))

    assert sent == [(RedisBackend, result)]
    assert result.enqueued_at <= result.started_at <= result.finished_at  # type: ignore[operator]


@pytest.fixture
def database(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """A database in a file: connections to it can be seen to close."""
    connections.settings["file"] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "db.sqlite3"),
        "OPTIONS": {},
    }
    with django_db_blocker.unblock():
        yield "file"
    del connections.settings["file"]


@pytest.mark.parametrize("connect", [jobs.connect, jobs.connect_and_fail], ids=["success", "failure"])
def test_a_worker_with_nothing_to_do_leaves_no_database_connection_open(
    make_worker: MakeWorker, database: str, connect: Task
) -> None:
    jobs.used.clear()
    connect.enqueue(database)

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


def test_a_task_begins_without_a_connection_that_was_left_open(runner: Runner, database: str) -> None:
    def run_with_a_connection(claimed: Claimed) -> Finished | None:
        connections[database].ensure_connection()
        return runner.execute(claimed)

    result = jobs.connect.enqueue(database)
    runner.hand_in(elsewhere(run_with_a_connection, runner.claim()).result(10))

    assert jobs.connect.get_result(result.id).return_value is False
