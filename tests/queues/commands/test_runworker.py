"""`manage.py runworker` as operators meet it: what it says, how it stops, its exit codes."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis

from components.embedded import EmbeddedServer
from components.kit.compat import Task
from components.management.commands.runworker import choose
from components.servers import inspect_server
from components.services.queues import Consumer, TaskQueue, keys
from tests.commands.processes import Command, Held, run_worker
from tests.fixtures.worker import current_backend
from tests.support.queues import claim_one, places
from tests.support.waiting import eventually

SIGNALS = pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGINT, signal.SIGHUP)),
    ],
)
DRAINING = "Stopping: 1 running tasks have 25 s to end."


def test_a_worker_says_who_it_is_what_it_serves_and_where(server: EmbeddedServer, queue: TaskQueue) -> None:
    with Command(server.url, "runworker", "-q", "high", "-q", "mail", "--no-reload") as worker:
        assert worker.is_working()
        [info] = queue.workers()
        [line] = worker.output.splitlines()

        assert f"INFO Worker for high, mail {info.id}: {inspect_server().name} " in line
        assert (info.queues, info.concurrency) == (("high", "mail"), 4)


@pytest.mark.slow
@SIGNALS
def test_the_first_signal_lets_running_tasks_end_and_begins_no_other(
    server: EmbeddedServer, queue: TaskQueue, held: Held, number: signal.Signals
) -> None:
    waiting = queue.push("tests.tasks.echo")
    with run_worker(server.url) as worker:
        assert held.has_begun()
        worker.signal(number)
        assert worker.says(DRAINING)
        held.end()

        assert worker.exit_code() == 0
    assert places() == {"ready": [waiting], "successful": [held.id]}
    assert queue.workers() == []


@pytest.mark.slow
@SIGNALS
def test_the_second_signal_ends_at_once_and_gives_back_what_runs(
    server: EmbeddedServer, queue: TaskQueue, held: Held, number: signal.Signals
) -> None:
    with run_worker(server.url) as worker:
        assert held.has_begun()
        worker.signal(number)
        assert worker.says(DRAINING)
        worker.signal(number)

        assert worker.exit_code() == 1
    assert "Stopping at once." in worker.output
    assert "Traceback" not in worker.output
    assert claim_one(Consumer()).id == held.id
    assert queue.workers() == []


@pytest.mark.slow
def test_tasks_longer_than_the_shutdown_timeout_are_released(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url, "--shutdown-timeout", "0.2") as worker:
        assert held.has_begun()
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() == 1
    assert claim_one(Consumer()).id == held.id


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["runworker", "--reload"], ["pollqueue"], ["queues"]])
def test_without_redis_the_commands_end_with_2_and_one_clear_line(
    tmp_path: Path, arguments: Sequence[str]
) -> None:
    url = f"unix://{tmp_path}/nothing.sock"
    with Command(url, *arguments) as command:
        assert command.exit_code() == 2

    [line] = command.output.splitlines()
    assert f"{tmp_path}/nothing.sock" in line
    assert "CACHES['default']" in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["runworker", "--concurrency", "none"],
        ["runworker", "--max-tasks", "0"],
        ["runworker", "--max-memory", "1.5"],
        ["runworker", "--max-memory", "1"],
        ["runworker", "--processes", "0"],
        ["runworker", "--shutdown-timeout=-1"],
        ["runworker", "--shutdown-timeout", "soon"],
        ["runworker", "--backend", "other"],
        ["runworker", "--backend", "plain"],
        ["runworker", "mail"],
        ["pollqueue", "--backend", "other"],
        ["queues", "--backend", "other"],
    ],
)
def test_wrong_usage_ends_with_2(settings: Any, arguments: Sequence[str]) -> None:
    plain = {"BACKEND": f"{Task.__module__.rpartition('.')[0]}.backends.dummy.DummyBackend"}
    settings.TASKS = {"default": settings.TASKS["default"], "plain": plain}

    with pytest.raises(CommandError) as refused:
        call_command(*arguments)

    # A parser that is called ends nothing, and says 1.
    assert refused.value.returncode == (1 if str(refused.value).startswith("Error: ") else 2)


@pytest.mark.slow
def test_a_heartbeat_file_that_cannot_be_made_ends_it_with_2(tmp_path: Path) -> None:
    with Command(f"unix://{tmp_path}/none", "runworker", "--heartbeat-file", "/nowhere/beat") as process:
        assert process.exit_code() == 2

    assert "--heartbeat-file" in process.output
    assert "Traceback" not in process.output


@pytest.mark.parametrize(
    ("given", "queues", "weights"),
    [
        (["b", "a"], ["b", "a"], {}),
        (["a=2", "b=1"], ["a", "b"], {"a": 2, "b": 1}),
        (["a=b=7"], ["a=b"], {"a=b": 7}),
        (["mail", "*"], None, None),
        (["a=0"], "a=0", None),
        (["a=x"], "a=x", None),
        (["a=2", "b"], "weight", None),
        ([""], "cannot be called", None),
    ],
)
def test_the_queues_to_serve(redis: Redis, given: list[str], queues: Any, weights: Any) -> None:
    if isinstance(queues, str):
        with pytest.raises(CommandError, match=queues) as refused:
            choose(given, current_backend(), round_robin=False)
        assert refused.value.returncode == 2
        return
    choice = choose(given, current_backend(), round_robin=True)

    assert (choice and (choice.queues, choice.weights, choice.round_robin)) == (
        queues and (queues, weights, True)
    )


def test_queues_that_the_settings_do_not_know_are_refused(redis: Redis) -> None:
    backend = current_backend()
    backend.queues = {"mail"}
    with pytest.raises(CommandError, match="only the queues mail"):
        choose(["mail", "news"], backend, round_robin=False)


@pytest.mark.slow
def test_a_worker_that_ends_by_an_error_says_so_and_ends_with_1(
    server: EmbeddedServer, queue: TaskQueue
) -> None:
    with Redis.from_url(server.url) as client:
        client.set(keys.QueueKeys("default", "default").ready, "not a sorted set")
    with run_worker(server.url) as worker:
        assert worker.exit_code() == 1

    assert "The worker ended with an error" in worker.output
    assert "WRONGTYPE" in worker.output


# --- While Redis is away ---------------------------------------------------------------------------


@pytest.mark.slow
def test_while_redis_is_away_a_worker_can_be_stopped_at_once(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url, LEASE="1") as worker:
        assert held.has_begun()
        server.kill()
        assert worker.says("Waiting for Redis; nothing that was accepted is lost.")
        worker.signal(signal.SIGTERM)
        worker.signal(signal.SIGINT)

        assert worker.exit_code() == 1
    assert "Traceback" not in worker.output


# --- Reloading -------------------------------------------------------------------------------------

CODE = "from components.kit.compat import task\n\n@task\ndef version():\n    return {}\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "code" / "changing" / "tasks.py"
    path.parent.mkdir(parents=True)
    (path.parent / "__init__.py").touch()
    (path.parent / "models.py").touch()
    path.write_text(CODE.format(1))
    return path


@pytest.mark.slow
def test_when_code_changes_a_worker_ends_its_tasks_and_starts_anew(
    server: EmbeddedServer, queue: TaskQueue, held: Held, module: Path
) -> None:
    arguments = ["runworker", "-q", "default", "--reload"]
    with Command(server.url, *arguments, PYTHONPATH=str(module.parent.parent), APPS="changing") as worker:
        assert held.has_begun()
        assert returns(queue, queue.push("changing.tasks.version")) == 1
        # Again and again, since the watcher must have seen the file as it was.
        assert eventually(lambda: module.write_text(CODE.format(2)) and DRAINING in worker.output)
        assert "restarting" not in worker.output
        held.end()
        assert worker.says("Code has changed; restarting.")

        assert queue.get(held.id).state == "successful"
        assert returns(queue, queue.push("changing.tasks.version")) == 2
        assert [info.pid for info in queue.workers()] == [worker.pid]
        models = module.with_name("models.py")
        models.write_text("def\n")
        assert eventually(lambda: models.touch() or "SyntaxError" in worker.output)
        models.write_text("")
        assert eventually(lambda: worker.output.count("Code has changed; restarting.") == 2)
        assert returns(queue, queue.push("changing.tasks.version")) == 2
        models.write_text("def\n")
        assert eventually(lambda: models.touch() or worker.output.count("SyntaxError") == 2)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0


def returns(queue: TaskQueue, task_id: str) -> object:
    assert eventually(lambda: queue.get(task_id).state == "successful")
    return queue.get(task_id).return_value


@pytest.mark.slow
def test_a_quiet_worker_stays_quiet_when_code_changes(
    server: EmbeddedServer, queue: TaskQueue, module: Path
) -> None:
    arguments = ["runworker", "-q", "default", "--reload"]
    with Command(server.url, *arguments, PYTHONPATH=str(module.parent.parent), APPS="changing") as worker:
        assert returns(queue, queue.push("changing.tasks.version")) == 1
        worker.signal(signal.SIGTSTP)
        assert worker.says("Quiet: this worker takes no more tasks.")
        assert eventually(lambda: module.write_text(CODE.format(2)) and "restarting" in worker.output)
        waiting = queue.push("changing.tasks.version")

        assert eventually(lambda: worker.output.count("Quiet:") == 2)
        assert eventually(lambda: [info.is_quiet for info in queue.workers()] == [True])
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
    assert places()["ready"] == [waiting]
