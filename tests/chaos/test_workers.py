"""Whatever is killed, stopped or restarted: each accepted task is done, and ends in exactly one place."""

from __future__ import annotations

import signal
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.services.queues import Consumer, NewTask, TaskQueue
from tests.commands.processes import Command, Held, run_worker
from tests.support.queues import claim, options, places
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

APPEND, FAIL = "tests.tasks.append", "tests.tasks.fail"
LEASE = "1"  # second, the shortest that there is


class Ledger:
    """What `append` tasks write: when they begin a line, when they end it with a full stop."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self.path = path

    def task(self, line: int, seconds: float = 0.0) -> NewTask:
        return NewTask(name=APPEND, args=[str(self.path), str(line), seconds])

    def ended(self) -> list[str]:
        """The lines with a full stop, without it, each as often as it was ended."""
        return [line[:-1] for line in self.path.read_text().split() if line.endswith(".")]

    def reaches(self, number: int) -> bool:
        """Whether so many different lines come to be ended."""
        return eventually(lambda: len(set(self.ended())) >= number)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


def test_the_task_of_a_killed_worker_is_done_by_another_when_its_lease_has_ended(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url, LEASE=LEASE) as first:
        assert held.has_begun()
        with run_worker(server.url, LEASE=LEASE) as second:
            assert second.is_working()
            first.signal(signal.SIGKILL)
            assert held.has_begun(attempt=2)
            held.end(attempt=2)

            assert eventually(lambda: queue.get(held.id).state == "successful")
    info = queue.get(held.id)
    assert info.return_value == 2
    assert len(set(info.worker_ids)) == 2
    assert info.last_attempted_at - info.started_at >= timedelta(seconds=float(LEASE))


def test_a_task_that_kills_its_workers_ends_in_the_dead_set(server: EmbeddedServer, queue: TaskQueue) -> None:
    task_id = queue.push("tests.tasks.kill_worker")
    limits = {"LEASE": LEASE, "MAX_CRASHES": "2"}
    with run_worker(server.url, **limits) as first, run_worker(server.url, **limits) as second:
        codes = [first.exit_code(), second.exit_code()]
    with options(lease=1.0, max_crashes=2):
        assert eventually(lambda: claim(Consumer()) or places() == {"dead": [task_id]})

    assert codes == [-signal.SIGKILL] * 2
    info = queue.get(task_id)
    assert info.state == "dead"
    assert [error.exception_class_path for error in info.errors] == ["components.exceptions.WorkerDied"]
    assert len(set(info.worker_ids)) == 2


@pytest.mark.parametrize(
    ("others", "slots"), [(["tests.tasks.echo"] * 7, "8"), ([APPEND], "2")], ids=["short ones", "a long one"]
)
def test_tasks_that_were_claimed_together_with_a_killer_are_done(
    server: EmbeddedServer, queue: TaskQueue, tmp_path: Path, others: list[str], slots: str
) -> None:
    args = {APPEND: [str(tmp_path / "lines"), "long", 0.7]}
    new = [NewTask(name=name, args=args.get(name, [])) for name in others]
    new.insert(2, NewTask(name="tests.tasks.kill_worker"))
    pushed = [info.id for info in queue.push_many(new) if info]
    [killer] = (id for id, task in zip(pushed, new, strict=True) if task.name == "tests.tasks.kill_worker")
    while not all_have_ended(queue):
        with run_worker(server.url, "-c", slots, LEASE=LEASE, MAX_CRASHES="3") as worker:
            assert eventually(lambda w=worker: w.has_ended() or all_have_ended(queue))

    assert places()["dead"] == [killer]
    assert sorted(places()["successful"]) == sorted({*pushed} - {killer})


def test_the_first_success_counts_if_a_worker_hung_longer_than_its_lease(
    server: EmbeddedServer, queue: TaskQueue, held: Held
) -> None:
    with run_worker(server.url, LEASE=LEASE) as first:
        assert held.has_begun()
        first.signal(signal.SIGSTOP)
        with run_worker(server.url, LEASE=LEASE) as second:
            assert held.has_begun(attempt=2)
            held.end(attempt=1)
            first.signal(signal.SIGCONT)
            assert eventually(lambda: queue.get(held.id).state == "successful")
            held.end(attempt=2)
            assert second.says(f"Task {held.id} had been taken over before it was handed in")
            assert not first.has_ended()
    assert queue.get(held.id).return_value == 1


def test_workers_go_on_when_redis_is_back_and_all_they_had_accepted_is_done_once(
    server: EmbeddedServer, queue: TaskQueue, ledger: Ledger
) -> None:
    with run_worker(server.url, "-c", "2") as first, run_worker(server.url, "-c", "2") as second:
        assert first.is_working()
        assert second.is_working()
        queue.push_many(ledger.task(line, seconds=0.02) for line in range(50))
        assert ledger.reaches(10)
        server.kill()
        for worker in (first, second):
            assert worker.says("Waiting for Redis.")
        server.start()
        queue.push_many(ledger.task(line) for line in range(50, 60))

        assert eventually(lambda: queue.stats("default").successful == 60)
        for worker in (first, second):
            worker.signal(signal.SIGTERM)
            assert worker.exit_code() == 0
            assert worker.output.count("Waiting for Redis") == 1
            assert worker.output.count("Redis answers again after") == 1
            assert "Traceback" not in worker.output
    assert sorted(map(int, ledger.ended())) == list(range(60))


class Producer:
    """Pushes as those do who want it done: told that Redis is away, it tries again."""

    def __init__(self, queue: TaskQueue, ledger: Ledger) -> None:
        self._queue, self._ledger = queue, ledger
        #: The accepted tasks, and what each would write. Those without a line fail.
        self.accepted: dict[str, str | None] = {}

    def push(self, lines: range) -> None:
        assert eventually(lambda: self._try_push(lines))

    def _try_push(self, lines: range) -> bool:
        try:
            stored = self._queue.push_many(self._task(line) for line in lines)
        except RedisUnavailable:
            return False
        self.accepted |= {info.id: info.args[1] if info.name == APPEND else None for info in stored}
        return True

    def _task(self, line: int) -> NewTask:
        task = NewTask(name=FAIL) if line % 10 == 0 else self._ledger.task(line, seconds=0.02)
        return replace(task, queue="ab"[line % 2], delay=line % 4 / 10, priority=line % 3)


def test_no_task_is_lost_while_workers_and_redis_are_killed(
    server: EmbeddedServer, queue: TaskQueue, ledger: Ledger
) -> None:
    rounds, per_round = 8, 50
    producer = Producer(queue, ledger)
    limits = {"LEASE": LEASE, "MAX_CRASHES": "100"}
    with ExitStack() as stack:

        def start(*arguments: str) -> Command:
            return stack.enter_context(Command(server.url, *arguments, **limits))

        start("pollqueue")
        workers = [start("runworker", "--no-reload", "-c", "2") for _ in range(2)]
        for number in range(rounds):
            producer.push(range(number * per_round, (number + 1) * per_round))
            assert ledger.reaches(number * per_round // 2)
            if number == rounds // 2:
                server.kill()
                with pytest.raises(RedisUnavailable):
                    queue.push(FAIL)
                server.start()
            workers[number % 2].signal(signal.SIGKILL)
            workers[number % 2] = start("runworker", "--no-reload", "-c", "2")
        assert eventually(lambda: all_have_ended(queue), within=60)

    assert {line for line in producer.accepted.values() if line} <= set(ledger.ended())
    for task_id, line in producer.accepted.items():
        assert queue.get(task_id).state == ("successful" if line else "dead")
    listed = Counter(task_id for name in "ab" for found in places(name).values() for task_id in found)
    assert {listed[task_id] for task_id in producer.accepted} == {1}


def all_have_ended(queue: TaskQueue) -> bool:
    return not any(stats.ready + stats.delayed + stats.running for stats in queue.all_stats())
