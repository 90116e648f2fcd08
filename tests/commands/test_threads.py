"""
Commands that a program calls outside of its main thread, as servers and schedulers do: they do their work there, and
end the thread, not the process.
"""

import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from redis import Redis
from redis.exceptions import ResponseError

from components.kit.scripts import Script
from components.services.logs import Aggregation, LogStream
from components.services.queues import TaskQueue
from components.testing import redis_at
from tests.logs.commands.test_copylogs import copied, each_once
from tests.support.counting_logs import LINES, TABLES, hand_out, import_places_into
from tests.support.logs import lines

NOWHERE = "redis://127.0.0.1:1"


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def called(thread: ThreadPoolExecutor, *arguments: Any) -> int | str:
    """The exit code of a command that is called in the thread, or the error that it raises."""

    def call() -> int | str:
        try:
            call_command(*map(str, arguments), stdout=StringIO(), stderr=StringIO())
        except SystemExit as end:
            return int(end.code or 0)
        except CommandError as error:
            return f"{error.returncode}: {error}"
        return 0

    return thread.submit(call).result(60)


def test_logs_are_copied(redis: Redis, thread: ThreadPoolExecutor, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(lines(0, 500))
    before = signal.getsignal(signal.SIGTERM)

    assert called(thread, "copylogs", tmp_path, "--chunk=1K") == 0
    assert called(thread, "copylogs", tmp_path / "nothing").__class__ is str
    assert copied() == each_once(lines(0, 500))
    assert signal.getsignal(signal.SIGTERM) is before


def test_logs_are_counted(redis: Redis, thread: ThreadPoolExecutor, tmp_path: Path) -> None:
    import_places_into(tmp_path)
    hand_out(LINES)

    assert called(thread, "aggregatelogs", "--drain") == 0
    assert {name: Aggregation("places").table(name) for name in TABLES} == TABLES
    assert LogStream().status().chunks == 0


def test_tasks_are_run_until_the_worker_is_told_to_stop(redis: Redis, thread: ThreadPoolExecutor) -> None:
    queue = TaskQueue()
    task_id = queue.push("tests.tasks.echo", [1])

    assert str(called(thread, "runworker", "--processes=2")).startswith(
        "2: Several processes can only be run"
    )
    assert called(thread, "runworker", "--burst") == 0
    assert (info := queue.get(task_id)) is not None
    assert info.state == "successful"


@pytest.mark.parametrize("command", ["runworker", "pollqueue", "cacherows", "aggregatelogs"])
def test_where_redis_does_not_answer_the_thread_ends_and_not_the_process(
    command: str, thread: ThreadPoolExecutor
) -> None:
    with redis_at(NOWHERE):
        said = called(thread, command)

    assert said == 2 or str(said).startswith("2: ")


def test_changed_code_does_not_replace_a_process_of_others(
    redis: Redis, thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django's watcher would see to it at once."""
    monkeypatch.setattr("django.utils.autoreload.get_reloader", lambda: pytest.fail("code is watched"))
    monkeypatch.setattr("components.workers.running.restart", lambda **options: pytest.fail("started anew"))
    monkeypatch.setattr("components.workers.running._guarded", lambda *args, **options: 3)

    assert called(thread, "runworker", "--reload") == 1


def test_its_line_numbers_are_those_of_the_servers_errors(redis: Redis) -> None:
    out = StringIO()
    source = Script("mailboxes/push").source

    call_command("showscript", "mailboxes/push", stdout=out)
    with pytest.raises(ResponseError) as caught:
        redis.eval(source, 0)

    match = re.search(r"user_script:(\d+)", str(caught.value))
    assert match is not None
    shown = out.getvalue().splitlines()[int(match[1]) - 1]
    assert shown == f"{match[1]:>4} {source.splitlines()[int(match[1]) - 1]}"


@pytest.mark.parametrize("name", ["mailboxes/nothing", "nothing/push", "push", "../conf/push"])
def test_a_script_that_does_not_exist_is_an_error(name: str) -> None:
    with pytest.raises(CommandError, match=rf"There is no script {re.escape(name)}\."):
        call_command("showscript", name)
