"""`manage.py runworker` as operators meet it: how it stops, is quieted, probed and limited, and what ends it."""

import os
import signal
from collections.abc import Sequence
from itertools import pairwise
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
from tests.support.queues import ECHO, claim_one, found, places
from tests.support.waiting import eventually


def test_a_worker_says_who_it_is_what_it_serves_and_where(server: EmbeddedServer, queue: TaskQueue) -> None:
    with Command(server.url, "runworker", "-q", "high", "-q", "mail", "--no-reload") as worker:
        assert worker.is_working()
        [info] = queue.workers()
        [line] = worker.output.splitlines()

        assert f"INFO Worker for high, mail {info.id}: {inspect_server().name} " in line
        assert (info.queues, info.concurrency) == (("high", "mail"), 4)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_lets_running_tasks_end_and_begins_no_other(
    server: EmbeddedServer, queue: TaskQueue, held: Held, number: signal.Signals
) -> None:
    waiting = queue.push(ECHO)
    with run_worker(server.url) as worker:
        assert held.has_begun()
        worker.signal(number)
        assert worker.says(DRAINING)
        held.end()

        assert worker.exit_code() == 0
    assert places() == {"ready": [waiting], "successful": [held.id]}
    assert queue.workers() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "options"),
    [
        ([signal.SIGTERM] * 2, []),
        ([signal.SIGINT] * 2, []),
        ([signal.SIGHUP] * 2, []),
        ([signal.SIGTERM], ["--shutdown-timeout", "0.2"]),
    ],
)
def test_the_second_signal_or_the_shutdown_timeout_ends_it_and_gives_back_what_runs(
    server: EmbeddedServer, queue: TaskQueue, held: Held, numbers: list[signal.Signals], options: list[str]
) -> None:
    with run_worker(server.url, *options) as worker:
        assert held.has_begun()
        for number in numbers:
            worker.signal(number)
            assert worker.says("Stopping: 1 running tasks have ")

        assert worker.exit_code() == 1
    assert ("Stopping at once." in worker.output) == (len(numbers) == 2)
    assert "Traceback" not in worker.output
    assert claim_one(Consumer()).id == held.id
    assert queue.workers() == []


@pytest.mark.slow
def test_when_code_changes_a_worker_ends_its_tasks_and_starts_anew_and_a_quiet_one_stays_quiet(
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
        worker.signal(signal.SIGTSTP)
        assert worker.says("Quiet: this worker takes no more tasks.")
        assert eventually(
            lambda: module.write_text(CODE.format(3)) and worker.output.count("restarting") == 3
        )
        waiting = queue.push("changing.tasks.version")
        assert eventually(lambda: worker.output.count("Quiet:") == 2)
        assert eventually(lambda: [info.is_quiet for info in queue.workers()] == [True])
        models.write_text("def\n")
        assert eventually(lambda: models.touch() or worker.output.count("SyntaxError") == 2)
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
    assert places()["ready"] == [waiting]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["runworker", "--reload"], ["pollqueue"], ["queues"]])
def test_without_redis_the_commands_end_with_2_and_one_line(tmp_path: Path, arguments: Sequence[str]) -> None:
    url = f"unix://{tmp_path}/nothing.sock"
    with Command(url, *arguments) as command:
        assert command.exit_code() == 2

    [line] = command.output.splitlines()
    assert f"{tmp_path}/nothing.sock" in line
    assert "CACHES['default']" in line


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            f"runworker --{each}"
            for each in ("concurrency none", "max-tasks 0", "max-memory 1.5", "max-memory 1")
        ),
        *(f"runworker --{each}" for each in ("processes 0", "shutdown-timeout=-1", "shutdown-timeout soon")),
        *("runworker --backend other", "runworker --backend plain", "runworker mail"),
        *("pollqueue --backend other", "queues --backend other"),
    ],
)
def test_wrong_usage_ends_with_2(settings: Any, arguments: str) -> None:
    plain = {"BACKEND": f"{Task.__module__.rpartition('.')[0]}.backends.dummy.DummyBackend"}
    settings.TASKS = {"default": settings.TASKS["default"], "plain": plain}

    with pytest.raises(CommandError) as refused:
        call_command(*arguments.split())

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
        (["b, a", "c"], ["b", "a", "c"], {}),
        (["1,2"], ["1", "2"], {}),
        (["b,2", "a,1"], ["b", "a"], {"b": 2, "a": 1}),
        (["a=²"], "a=²", None),
        (["a=2,b=1"], ["a", "b"], {"a": 2, "b": 1}),
        (["a=2", "b=1"], ["a", "b"], {"a": 2, "b": 1}),
        (["a=b=7"], ["a=b"], {"a=b": 7}),
        (["mail", "*"], None, None),
        (["a=0"], "a=0", None),
        (["high=3", "*=1"], "all queues", None),
        (["a=x"], "a=x", None),
        (["a=2", "b"], "weight", None),
        ([""], "cannot be called", None),
        (["mail", "news"], "only the queues mail", "only mail"),
    ],
)
def test_the_queues_to_serve(redis: Redis, given: list[str], queues: Any, weights: Any) -> None:
    backend = current_backend()
    backend.queues = {"mail"} if weights == "only mail" else set()
    if isinstance(queues, str):
        with pytest.raises(CommandError, match=queues) as refused:
            choose(given, backend, round_robin=False)
        assert refused.value.returncode == 2
        return
    choice = choose(given, backend, round_robin=True)

    assert (choice and (choice.queues, choice.weights, choice.round_robin)) == (
        queues and (queues, weights, True)
    )


@pytest.mark.slow
def test_a_worker_that_fails_says_so_and_ends_with_1(server: EmbeddedServer, queue: TaskQueue) -> None:
    with Redis.from_url(server.url) as client:
        client.set(keys.QueueKeys("default", "default").ready, "not a sorted set")
    with run_worker(server.url) as worker:
        assert worker.exit_code() == 1

    assert "The worker ended with an error" in worker.output
    assert "WRONGTYPE" in worker.output


@pytest.mark.slow
def test_while_redis_is_away_a_worker_can_be_stopped(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url, LEASE="1") as worker:
        assert held.has_begun()
        server.kill()
        assert worker.says("Waiting for Redis.")
        worker.signal(signal.SIGTERM)
        worker.signal(signal.SIGINT)

        assert worker.exit_code() == 1
    assert "Traceback" not in worker.output


DRAINING = "Stopping: 1 running tasks have 25 s to end."
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
def test_processes_that_a_task_forks_end_by_signals_as_others_do(
    server: EmbeddedServer, queue: TaskQueue
) -> None:
    with run_worker(server.url):
        task_id = queue.push("tests.commands.jobs.fork_a_pool")

        assert eventually(lambda: queue.get(task_id).state == "successful")


def returns(queue: TaskQueue, task_id: str) -> object:
    assert eventually(lambda: queue.get(task_id).state == "successful")
    return queue.get(task_id).return_value


BEATS = {"LEASE": "1"}  # a heartbeat every third of it


def grow_old(path: Path) -> float:
    os.utime(path, (1, 1))
    return path.stat().st_mtime


@pytest.mark.slow
@pytest.mark.parametrize("command", ["runworker", "pollqueue"])
def test_the_heartbeat_file_is_touched_also_while_redis_is_away(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path, command: str
) -> None:
    beat = tmp_path / "beat"
    with Command(server.url, command, "--heartbeat-file", str(beat), **BEATS) as worker:
        assert worker.is_working()
        old = grow_old(beat)
        assert eventually(lambda: beat.stat().st_mtime > old)
        server.kill()
        assert worker.says("Waiting for Redis")
        old = grow_old(beat)
        assert eventually(lambda: beat.stat().st_mtime > old)
        server.start()
        assert worker.says("Redis answers again")
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() == 0
    assert not beat.exists()


@pytest.mark.slow
def test_a_lost_heartbeat_file_stops_nothing(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with run_worker(server.url, "--heartbeat-file", str(folder / "beat"), **BEATS) as worker:
        assert worker.is_working()
        (folder / "beat").unlink()
        folder.rmdir()
        assert worker.says("The heartbeat file cannot be updated")
        queue.push(ECHO)
        assert eventually(lambda: queue.stats("default").successful == 1)
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() == 0
    assert worker.output.count("cannot be updated") == 1


@pytest.mark.slow
def test_a_worker_that_has_grown_too_large_ends(server: EmbeddedServer, queue: TaskQueue) -> None:
    grown = queue.push("tests.commands.jobs.grow", [300])
    with run_worker(server.url, "--max-memory", "300", **BEATS) as worker:
        assert worker.exit_code() == 0

    assert "A limit is reached" in worker.output
    assert places() == {"successful": [grown]}


@pytest.mark.slow
def test_a_quiet_worker_ends_what_runs_and_no_more(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url, "-c", "2") as worker:
        assert held.has_begun()
        worker.signal(signal.SIGTTIN)
        assert worker.says("Current thread")
        assert worker.says(" in hold\n")
        worker.signal(signal.SIGTSTP)
        assert eventually(lambda: [info.is_quiet for info in queue.workers()] == [True])
        waiting = queue.push(ECHO)
        held.end()
        assert eventually(lambda: queue.get(held.id).state == "successful")

        assert places() == {"ready": [waiting], "successful": [held.id]}
        assert not worker.has_ended()
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0
    assert places()["ready"] == [waiting]


@pytest.mark.slow
def test_stacks_are_written_while_all_threads_are_busy(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    ids = [queue.push("tests.commands.jobs.spin", [str(tmp_path)]) for _ in range(4)]
    with run_worker(server.url, "-c", "4") as worker:
        assert eventually(lambda: all(queue.get(each).state == "running" for each in ids))
        for number in range(1, 101):
            worker.signal(signal.SIGTTIN)
            assert eventually(lambda told=number: worker.output.count("Current thread") == told)
        (tmp_path / "gate").touch()
        assert eventually(lambda: all(queue.get(each).state == "successful" for each in ids))


OVERRUN = "tests.commands.jobs.overrun"


def runs(folder: Path, name: str = "overrun") -> list[tuple[float, float]]:
    """When each run of the job began, and when it was last seen; by a clock that all processes share."""
    told = sorted(folder.glob(f"{name}-*"))
    times = [[float(line) for line in file.read_text().splitlines()[:-1]] for file in told]
    return [(each[0], each[-1]) for each in times if each]


@pytest.mark.slow
def test_a_function_that_timed_out_is_not_tried_again_before_its_process_has_ended(
    server: EmbeddedServer, queue: TaskQueue, held: Held, tmp_path: Path
) -> None:
    """Its process has to wait for a neighbour, and another worker for something to do."""
    folder = tmp_path / "overrun"
    folder.mkdir()
    environment = {"MAX_ATTEMPTS": "9", "BACKOFF": "0"}
    with run_worker(server.url, "-c", "2", **environment) as one:
        assert held.has_begun()
        task_id = queue.push(OVERRUN, [str(folder)])
        assert one.says("Taking no more tasks")
        with run_worker(server.url, **environment) as other:
            assert eventually(lambda: len(queue.workers()) == 2)
            echo = queue.push(ECHO)
            assert queue.wait_for(echo, wait=10).state == "successful"
            assert found(task_id).state == "running"
            assert len(runs(folder)) == 1
            held.end()
            assert eventually(lambda: len(runs(folder)) >= 3)
            for worker in (one, other):
                worker.signal(signal.SIGKILL)
                assert worker.exit_code() == -signal.SIGKILL

    for (_began, last_seen), (next_began, _last) in pairwise(runs(folder)):
        assert last_seen < next_began


@pytest.mark.slow
def test_a_worker_that_is_stopped_beside_a_stuck_function_hands_its_failure_in(
    server: EmbeddedServer, queue: TaskQueue, held: Held, tmp_path: Path
) -> None:
    overrun = queue.push(OVERRUN, [str(tmp_path)])
    with run_worker(server.url, "-c", "2") as worker:
        assert worker.says("Taking no more tasks")
        worker.signal(signal.SIGTERM)
        held.end()

        assert worker.exit_code() == 1
    assert found(overrun).errors[0].exception_class_path == "components.exceptions.TaskTimedOut"
    assert found(held.id).state == "successful"
    assert queue.workers() == []


@pytest.mark.slow
def test_the_next_under_a_concurrency_limit_does_not_wait_for_the_lease_of_what_timed_out(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    for _ in range(2):
        queue.push("tests.commands.jobs.overrun_alone", [str(tmp_path)])
    with run_worker(server.url, "-c", "2", LEASE="600") as worker:
        assert eventually(lambda: len(runs(tmp_path, "overrun_alone")) == 2)
        worker.signal(signal.SIGKILL)
        worker.exit_code()

    [(_began, last_seen), (next_began, _last)] = runs(tmp_path, "overrun_alone")
    assert last_seen < next_began  # never two at a time
