"""A process that ends has sent what it counted, whatever ends it; but one that is killed has not."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.services.counters import Counter
from components.services.queues import TaskQueue
from components.testing import redis_at
from tests.commands.processes import Command, Held, run_worker
from tests.support.waiting import eventually

PROGRAM = ("-m", "tests.counters.commands.counting")


@pytest.fixture(autouse=True)
def redis(server: EmbeddedServer) -> Iterator[None]:
    with redis_at(server.url):
        yield


def total(name: str = "hits") -> int:
    return Counter(name).get(3_600).total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manner", "code", "expected"), [("exit_normally", 3, 10), ("fork", 0, 13), ("pool", 0, 310)]
)
def test_pending_counts_are_sent_at_the_end(
    server: EmbeddedServer, manner: str, code: int, expected: int
) -> None:
    with Command(server.url, manner, program=PROGRAM) as process:
        assert process.exit_code() == code

    assert total() == expected


@pytest.mark.slow
@pytest.mark.parametrize(("manner", "expected"), [("wait_for_a_signal", 10), ("wind_up_as_a_server", 15)])
def test_sigterm_ends_it_as_before_and_what_was_counted_is_sent(
    server: EmbeddedServer, manner: str, expected: int
) -> None:
    with Command(server.url, manner, program=PROGRAM) as process:
        assert process.says("counted")
        process.signal(signal.SIGTERM)

        assert process.exit_code() == -signal.SIGTERM

    assert total() == expected


@pytest.mark.slow
def test_sigterm_ends_a_process_that_holds_what_sending_needs(server: EmbeddedServer) -> None:
    """What it counted last is lost; the handler waits two seconds for it, and no longer."""
    with Command(server.url, "wait_with_a_held_lock", program=PROGRAM) as process:
        assert process.says("counted")
        process.signal(signal.SIGTERM)

        assert process.exit_code() == -signal.SIGTERM

    assert total() == 10


def test_sigterm_ends_a_process_whose_redis_is_away(server: EmbeddedServer) -> None:
    with Command(server.url, "wait_for_a_signal", program=PROGRAM) as process:
        assert process.says("counted")
        server.kill()
        process.signal(signal.SIGTERM)

        assert process.exit_code() == -signal.SIGTERM

    assert "10 counts are lost" in process.output


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_a_worker_has_sent_what_its_tasks_counted_and_what_it_counted_of_them(
    server: EmbeddedServer, tmp_path: Path, killed: bool
) -> None:
    """When it ended by itself, and when a second signal has ended it while a task ran."""
    queue = TaskQueue()
    held = Held(queue, tmp_path)
    with run_worker(server.url, "-c", "2", COUNT_SERVICES="1") as worker:
        assert held.has_begun()
        task_id = queue.push("tests.commands.jobs.tally", [7])
        assert eventually(lambda: (info := queue.get(task_id)) and info.state == "successful")
        worker.signal(signal.SIGTERM)
        if killed:
            assert worker.says("Stopping: 1 running tasks have")
            worker.signal(signal.SIGTERM)
        else:
            held.end()
        worker.exit_code()

    assert total() == 7
    assert total("tasks:successful") == (1 if killed else 2)
