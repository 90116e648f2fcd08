"""`manage.py runall`: the processes of a small site under one parent, as operators and accidents treat them."""

import fcntl
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from components.embedded import EmbeddedServer, is_running, socket_url
from components.services.queues import TaskQueue
from tests.commands.processes import Command, Held
from tests.support.waiting import eventually, has_ended

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROWS = {"APPS": "tests.db", "DATABASE": ":memory:"}
#: A program that is no worker: it writes to both outputs, and ends well when it is told to.
OTHER = """
import signal, sys
print("said to stdout")
print("said to stderr", file=sys.stderr)
print("half a line", end="", flush=True)
signal.sigwait([signal.SIGTERM])
"""


def also(name: str, code: str = OTHER) -> str:
    return f"--also={name}={shlex.join([sys.executable, '-c', code])}"


def run_all(url: str, *arguments: str, **environment: str) -> Command:
    return Command(url, "runall", "--no-reload", *arguments, **environment)


def works(queue: TaskQueue, *kinds: str) -> Callable[[], bool]:
    return lambda: sorted(worker.kind for worker in queue.workers()) == sorted(kinds)


def child(parent: Command, word: str) -> psutil.Process:
    """The newest child with this word in its command line."""
    return next(each for each in reversed(parent.children) if word in each.cmdline())


def test_it_runs_what_the_settings_need_with_one_log_and_one_shutdown(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    task = Held(queue, tmp_path / "held")
    beat = tmp_path / "beat"
    with run_all(server.url, also("other"), "--heartbeat-file", str(beat), **ROWS) as site:
        assert task.has_begun()
        assert eventually(works(queue, "worker", "poller"))
        assert site.says("INFO Cached rows of 4 models")
        for line in (
            "worker | ",
            "poller | ",
            "rows   | ",
            "other  | said to stdout",
            "other  | said to stderr",
        ):
            assert site.says(f"\n{line}")
        assert {path.suffix for path in tmp_path.glob("beat.*")} == {".worker", ".poller", ".rows"}
        site.signal(signal.SIGTERM)
        assert site.says("Stopping: 1 running tasks")
        task.end()

        assert site.exit_code() == 0
    assert queue.stats("default").successful == 1
    assert queue.workers() == []
    assert list(tmp_path.glob("beat.*")) == []
    assert "other  | half a line\n" in site.output
    assert "Traceback" not in site.output


def test_without_cached_rows_no_daemon_looks_after_them_and_only_workers_are_told_to_be_quiet(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    copier = f"--also=copier=copylogs --follow --no-progress {tmp_path}"
    with run_all(server.url, "--processes", "2", "--concurrency", "3", copier) as site:
        assert eventually(works(queue, "worker", "worker", "poller"))
        assert {info.concurrency for info in queue.workers() if info.kind == "worker"} == {3}
        assert eventually(lambda: any("copylogs" in each.cmdline() for each in site.children))
        site.signal(signal.SIGTSTP)
        assert eventually(lambda: all(info.is_quiet for info in queue.workers() if info.kind == "worker"))
        assert all(each.status() != psutil.STATUS_STOPPED for each in site.children)
        site.signal(signal.SIGINT)

        assert site.exit_code() == 0
    assert "worker-2 | " in site.output
    assert "rows" not in site.output


def test_the_embedded_server_of_the_settings_runs_as_long(tmp_path: Path) -> None:
    with run_all(socket_url(tmp_path), EMBEDDED=str(tmp_path)) as site:
        assert site.says("worker | ")
        assert is_running(tmp_path)
        site.signal(signal.SIGTERM)

        assert site.exit_code() == 0
    assert "Traceback" not in site.output
    assert not is_running(tmp_path)


def test_an_embedded_server_that_runs_already_is_left_running(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server, run_all(server.url, EMBEDDED=str(tmp_path)) as site:
        assert site.says("worker | ")
        site.signal(signal.SIGTERM)

        assert site.exit_code() == 0
        assert is_running(tmp_path)


def test_an_embedded_server_that_cannot_start_is_reported(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with run_all(socket_url(tmp_path), EMBEDDED=str(tmp_path)) as site:
            assert site.exit_code() == 2
    assert "Stop that one first" in site.output
    assert "Traceback" not in site.output


def test_another_program_that_ends_is_started_again_later_and_later(server: EmbeddedServer) -> None:
    with run_all(server.url, also("brief", ""), "--also=nothing=/no/such/program") as site:
        for pause in (1, 2):
            assert site.says(f" of brief ended with 0; starting another in {pause} s.")
        assert site.says("nothing cannot be started: [Errno 2] No such file or directory")
        site.signal(signal.SIGTERM)

        assert site.exit_code() == 1


def test_it_can_stop_all_when_one_ends(server: EmbeddedServer, queue: TaskQueue) -> None:
    with run_all(server.url, also("other"), "--no-restart") as site:
        assert eventually(works(queue, "worker", "poller"))
        first = child(site, "pollqueue")
        first.kill()

        assert site.exit_code() == 1
    assert f"Process {first.pid} of poller was killed by SIGKILL; stopping the others." in site.output
    assert queue.workers() != []  # only the one that was killed
    assert {info.pid for info in queue.workers()} == {first.pid}


def test_when_it_is_killed_nothing_is_left_behind_and_no_task_is_lost(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path
) -> None:
    task = Held(queue, tmp_path / "held")
    with run_all(server.url, also("other"), **ROWS) as site:
        assert task.has_begun()
        assert site.says("said to stderr")
        family = site.children
        site.signal(signal.SIGKILL)
        worker = next(each for each in family if "runworker" in each.cmdline())
        assert eventually(lambda: all(has_ended(each) for each in family if each != worker))
        task.end()

        assert eventually(lambda: has_ended(worker))
    assert queue.stats("default").successful == 1
    assert queue.workers() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--also", "web"], "'web' is not NAME=COMMAND"),
        (["--also", "web="], "'web=' is not NAME=COMMAND"),
        (["--also", "poller=true"], "--also poller=…: another process has this name."),
        (["--processes", "0"], "'0' is not a whole number above zero"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], said: str) -> None:
    with run_all("redis://127.0.0.1:1", *arguments) as site:
        assert site.exit_code() == 2
    assert said in site.output
