"""`manage.py runworker` as operators meet it: what it says, how it stops, its exit codes."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisRefused
from components.servers import inspect_server
from components.services.queues import Consumer, NewTask, TaskQueue, keys
from tests.commands.processes import Command, Held, run_worker
from tests.support.queues import claim_one, found, places
from tests.support.restricted import operator
from tests.support.waiting import eventually

SIGNALS = [signal.SIGTERM, signal.SIGINT]
DRAINING = "Stopping: 1 running tasks have 25 s to end."


def test_a_worker_says_who_it_is_what_it_serves_and_where(server: EmbeddedServer, queue: TaskQueue) -> None:
    with Command(server.url, "runworker", "-q", "high", "-q", "mail", "--no-reload") as worker:
        assert worker.is_working()
        [info] = queue.workers()
        [line] = worker.output.splitlines()

        assert f"INFO Worker for high, mail {info.id}: {inspect_server().name} " in line
        assert line.endswith(
            "(standalone). Press Ctrl-C to stop after the running tasks, and again to stop at once."
        )
        assert (info.queues, info.concurrency) == (("high", "mail"), 4)


def test_a_worker_without_options_serves_all_queues(server: EmbeddedServer, queue: TaskQueue) -> None:
    queue.push("tests.tasks.echo", queue="whatever")
    with Command(server.url, "runworker", "--burst") as worker:
        assert worker.exit_code() == 0

    assert queue.stats("whatever").successful == 1
    assert "Worker for all queues" in worker.output


@pytest.mark.parametrize("number", SIGNALS)
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


@pytest.mark.parametrize("number", SIGNALS)
def test_an_idle_worker_ends_at_the_first_signal(
    server: EmbeddedServer, queue: TaskQueue, number: signal.Signals
) -> None:
    with run_worker(server.url) as worker:
        assert worker.is_working()
        worker.signal(number)

        assert worker.exit_code() == 0
    assert "Traceback" not in worker.output


@pytest.mark.parametrize("number", SIGNALS)
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


def test_tasks_longer_than_the_shutdown_timeout_are_released(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url, "--shutdown-timeout", "0.2") as worker:
        assert held.has_begun()
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() == 1
    assert "Stopped with 1 unfinished tasks, which are given back" in worker.output
    assert claim_one(Consumer()).id == held.id


@pytest.mark.slow
def test_a_burst_ends_with_0_also_when_tasks_have_failed(server: EmbeddedServer, queue: TaskQueue) -> None:
    queue.push("tests.tasks.fail")
    queue.push("tests.tasks.echo")
    with run_worker(server.url, "--burst") as worker:
        assert worker.exit_code() == 0

    stats = queue.stats("default")
    assert (stats.successful, stats.dead) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", ["1", "4"])
@pytest.mark.parametrize(
    ("options", "busy", "shares"),
    [
        (["--round-robin", *(f"-qq{number}" for number in range(10))], ["q0", "q1"], [35, 35]),
        (["--round-robin", *(f"-qq{number}" for number in range(10))], ["q3", "q9"], [35, 35]),
        (["-qhigh=6", "-qlow=1"], ["high", "low"], [60, 10]),
        (["-qhigh=5", "-qnone=30", "-qlow=2"], ["high", "low"], [50, 20]),
    ],
    ids=["neighbours in turn", "others in turn", "by weight", "by weight beside an empty queue"],
)
def test_each_queue_that_has_tasks_gets_its_share(
    server: EmbeddedServer,
    queue: TaskQueue,
    options: Sequence[str],
    busy: Sequence[str],
    shares: Sequence[int],
    concurrency: str,
) -> None:
    queue.push_many([NewTask(name="tests.tasks.echo", queue=name) for _ in range(75) for name in busy])
    arguments = ["-c", concurrency, "--max-tasks", str(sum(shares)), "--no-reload", *options]
    with Command(server.url, "runworker", *arguments) as worker:
        assert worker.exit_code() == 0

    done = [queue.stats(name).successful for name in busy]
    total = sum(done)
    assert total >= 0.9 * sum(shares)  # the limit is lowered by chance
    assert done == pytest.approx([share * total / sum(shares) for share in shares], abs=3)


def test_a_worker_ends_with_0_after_its_last_task(server: EmbeddedServer, queue: TaskQueue) -> None:
    for _ in range(3):
        queue.push("tests.tasks.echo")
    with run_worker(server.url, "--max-tasks", "2") as worker:
        assert worker.exit_code() == 0

    stats = queue.stats("default")
    assert (stats.successful, stats.ready) == (2, 1)


@pytest.mark.slow
def test_a_full_server_is_drained_by_a_worker_that_runs_and_by_one_that_has_just_started(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    client = operator()
    with run_worker(server.url, LEASE="1") as running:
        assert held.has_begun()
        queue.push("tests.tasks.fail")
        queue.push_many([NewTask(name="tests.tasks.echo") for _ in range(300)])
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        client.script_flush()
        try:
            with pytest.raises(RedisRefused, match="full"):
                queue.push("tests.tasks.echo")
            with run_worker(server.url, "--max-tasks", "100") as fresh:
                assert fresh.exit_code() == 0
            assert queue.stats("default").successful >= 89
            until = found(held.id).lease_expires_at
            assert eventually(lambda: found(held.id).lease_expires_at != until)
            assert (found(held.id).state, found(held.id).starts) == ("running", 1)
            held.end()
            assert eventually(lambda: queue.stats("default").successful == 301)
            assert found(held.id).starts == 1
            with Command(server.url, "queues") as told:
                assert told.exit_code() == 0
            running.signal(signal.SIGTERM)
            assert running.exit_code() == 0
        finally:
            client.config_set("maxmemory", 0)
    assert queue.stats("default").dead == 1
    assert queue.workers() == []


@pytest.mark.parametrize(
    "arguments", [["runworker", "--no-reload"], ["runworker", "--reload"], ["pollqueue"]]
)
def test_without_redis_the_commands_end_with_2_and_one_clear_line(
    tmp_path: Path, arguments: Sequence[str]
) -> None:
    url = f"unix://{tmp_path}/nothing.sock"
    with Command(url, *arguments) as command:
        assert command.exit_code() == 2

    [line] = command.output.splitlines()
    assert "ERROR Redis does not answer: Error 2 connecting to" in line
    assert f"{tmp_path}/nothing.sock" in line
    assert line.endswith("Is it running? CACHES['default'] says where it should be.")


CANNOT = ("runworker", "pollqueue", "queues", "cleancounters")


@pytest.mark.parametrize("command", CANNOT)
def test_a_server_that_runs_and_refuses_is_not_asked_whether_it_runs(
    server: EmbeddedServer, command: str
) -> None:
    with Redis.from_url(server.url) as client:
        client.config_set("requirepass", "secret")
    with Command(server.url, command) as process:
        assert process.exit_code() == 2

    [line] = process.output.splitlines()
    assert "Redis does not accept the user name or password that the CACHES alias gives: " in line
    assert line.endswith(". CACHES['default'] names this server.")
    assert "Is it running?" not in line


@pytest.mark.parametrize("command", ["runworker", "pollqueue"])
def test_a_read_only_replica_is_named_as_such(server: EmbeddedServer, command: str) -> None:
    with Redis.from_url(server.url) as client:
        client.replicaof("127.0.0.1", 1)
    with Command(server.url, command) as process:
        assert process.exit_code() == 2

    [line] = [line for line in process.output.splitlines() if " ERROR " in line]
    assert "it is a read-only replica, and the CACHES alias must name its master: " in line
    assert "Is it running?" not in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["runworker", "--concurrency", "none"], "'none' is not a whole number above zero"),
        (["runworker", "--max-tasks", "0"], "'0' is not a whole number above zero"),
        (["runworker", "--max-memory", "1.5"], "'1.5' is not a whole number above zero"),
        (["runworker", "--max-memory", "1"], "MB before it starts to work. Allow a few hundred MB more."),
        (["runworker", "--processes", "0"], "'0' is not a whole number above zero"),
        (["runworker", "--processes", "2", "--max-memory", "1"], "MB before it starts to work."),
        (["runworker", "--heartbeat-file", "/nowhere/beat"], "--heartbeat-file: [Errno 2] No such file"),
        (["pollqueue", "--heartbeat-file", "/nowhere/beat"], "--heartbeat-file: [Errno 2] No such file"),
        (["runworker", "--shutdown-timeout=-1"], "'-1' is not a number of seconds"),
        (["runworker", "--shutdown-timeout", "soon"], "'soon' is not a number of seconds"),
        (["runworker", "--backend", "other"], "--backend other: settings.TASKS has only default, plain."),
        (["runworker", "--backend", "plain"], "TASKS['plain'] is not a RedisBackend"),
        (["runworker", "-q", "a=0"], "--queue a=0: the weight must be a whole number, 1 or more."),
        (["runworker", "-q", "a=2", "-q", "b"], "--queue: give every queue a weight, or none."),
        (["runworker", "-q", ""], "A queue cannot be called ''"),
        (["runworker", "mail"], "unrecognized arguments: mail"),
        (["pollqueue", "--backend", "other"], "--backend other: settings.TASKS has only default, plain."),
    ],
)
def test_wrong_usage_ends_with_2_and_the_reason(
    tmp_path: Path, arguments: Sequence[str], reason: str
) -> None:
    with Command("unix:///nowhere", *arguments) as command:
        assert command.exit_code() == 2

    assert reason in command.output
    assert "Traceback" not in command.output


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
    assert "Stopping at once." in worker.output


def test_an_idle_worker_that_is_stopped_then_does_not_wait_for_redis(
    server: EmbeddedServer, queue: TaskQueue
) -> None:
    with run_worker(server.url, "--shutdown-timeout", "600") as worker:
        assert worker.is_working()
        server.kill()
        assert worker.says("Waiting for Redis; nothing that was accepted is lost.")
        worker.signal(signal.SIGTERM)

        assert worker.exit_code() == 1
    assert "Other workers take over what it had claimed when the lease ends." in worker.output


# --- Reloading -------------------------------------------------------------------------------------

CODE = "from components.kit.compat import task\n\n@task\ndef version():\n    return {}\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "code" / "changing" / "tasks.py"
    path.parent.mkdir(parents=True)
    (path.parent / "__init__.py").touch()
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
        worker.signal(signal.SIGTERM)
        assert worker.exit_code() == 0


def returns(queue: TaskQueue, task_id: str) -> object:
    assert eventually(lambda: queue.get(task_id).state == "successful")
    return queue.get(task_id).return_value


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_a_worker_that_reloads_stops_like_any_other(
    server: EmbeddedServer, queue: TaskQueue, held: Held, number: signal.Signals
) -> None:
    with Command(server.url, "runworker", "-q", "default", "--reload") as worker:
        assert held.has_begun()
        worker.signal(number)
        assert worker.says(DRAINING)
        held.end()

        assert worker.exit_code() == 0
    assert places() == {"successful": [held.id]}
    assert "restarting" not in worker.output


@pytest.mark.slow
def test_a_worker_that_is_stopped_while_it_ends_tasks_for_a_reload_does_not_start_anew(
    server: EmbeddedServer, queue: TaskQueue, held: Held, module: Path
) -> None:
    arguments = ["runworker", "-q", "default", "--reload"]
    with Command(server.url, *arguments, PYTHONPATH=str(module.parent.parent), APPS="changing") as worker:
        assert held.has_begun()
        assert returns(queue, queue.push("changing.tasks.version")) == 1
        assert eventually(lambda: module.write_text(CODE.format(2)) and DRAINING in worker.output)
        worker.signal(signal.SIGTERM)
        held.end()

        assert worker.exit_code() == 0
    assert queue.get(held.id).state == "successful"
    assert "restarting" not in worker.output


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


@pytest.mark.slow
def test_each_of_several_processes_starts_anew_when_code_changes(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    settings = tmp_path / "changing_settings.py"
    settings.write_text("from tests.commands.settings import *\n")
    environment = {"PYTHONPATH": str(tmp_path), "DJANGO_SETTINGS_MODULE": settings.stem}
    with Command(server.url, "runworker", "--reload", "--processes", "2", **environment) as parent:
        assert eventually(lambda: len(queue.workers()) == 2)
        before = {worker.id: worker.pid for worker in queue.workers()}
        assert eventually(lambda: touch(settings) and parent.output.count("restarting") >= 2)
        assert eventually(lambda: len({worker.id for worker in queue.workers()} - before.keys()) == 2)

        assert {worker.pid for worker in queue.workers()} == set(before.values())
        parent.signal(signal.SIGTERM)
        assert parent.exit_code() == 0
    assert "starting another" not in parent.output


def touch(path: Path) -> bool:
    path.touch()
    return True
