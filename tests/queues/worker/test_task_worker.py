"""Workers and pollers in this process: what they take, how much, in which order, what wakes them, what they count."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.scripts import Script
from components.services.counters import CounterReader, buffer, flush
from components.services.queues import Consumer, TaskQueue, keys
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.worker import Poller, Worker
from components.testing import redis_at
from tests import tasks
from tests.fixtures.worker import CROWD, NOTE, WAIT, MakeWorker, counts, is_listening, push, reaches
from tests.queues.worker import jobs
from tests.support.proxy import LossyProxy
from tests.support.queues import claim_one, end_lease, found, hand_in, options, succeeded
from tests.support.waiting import eventually

Start = Callable[[Worker], Worker]


@pytest.mark.parametrize("limit", [{"burst": True}, {"max_tasks": 1}], ids=["burst", "max_tasks"])
def test_a_worker_ends_by_itself(
    make_worker: MakeWorker, start: Start, patient: None, limit: dict[str, int]
) -> None:
    push(NOTE)
    worker = start(make_worker(**limit))

    assert worker.ended.wait(10)


def test_a_worker_becomes_quiet_and_stops_when_it_is_asked_to(make_worker: MakeWorker, start: Start) -> None:
    with options(lease=1.0):
        worker = start(make_worker())
        assert eventually(TaskQueue().workers)
        TaskQueue().tell(worker.id, "quiet")
        assert eventually(lambda: TaskQueue().workers()[0].is_quiet)
        push(NOTE)
        TaskQueue().tell(worker.id, "stop")

        assert worker.ended.wait(10)
    assert counts() == {"ready": 1}


def test_a_worker_runs_and_claims_as_many_tasks_as_it_has_slots(
    make_worker: MakeWorker, start: Start
) -> None:
    pushed = push(CROWD, 5)
    worker = start(make_worker(concurrency=2))

    assert eventually(lambda: jobs.crowded["now"] == 2)
    assert counts() == {"ready": 3, "running": 2}
    assert [line.split()[1] for line in worker.describe_running()] == pushed[:2]
    jobs.agate.set()
    assert reaches(successful=5)
    assert jobs.crowded["most"] == 2


def test_a_token_that_a_full_worker_takes_too_late_goes_to_one_with_a_free_slot(
    backend: RedisBackend, redis: Redis, make_worker: MakeWorker, start: Start, patient: None
) -> None:
    start(make_worker("default", concurrency=1))
    assert is_listening(redis)
    delayed = TaskQueue().push(WAIT, delay=0.2)
    assert eventually(lambda: counts() == {"running": 1})  # by the clock: its listener still waits
    assert eventually(lambda: backend.queue.get(delayed).state == "running")
    start(make_worker("default", concurrency=1))
    assert is_listening(redis, 2)

    push(NOTE)

    assert reaches(running=1, successful=1)


def test_tasks_that_end_during_an_outage_are_handed_in_after_it_and_others_run(
    server: EmbeddedServer,
    make_worker: MakeWorker,
    start: Start,
    patient: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    push(WAIT)
    start(make_worker())
    assert reaches(running=1)
    server.kill()
    tasks.gate.set()
    assert eventually(lambda: "Waiting for Redis." in caplog.text)
    server.start()

    assert reaches(successful=1)
    assert caplog.text.count("Waiting for Redis") == 1
    assert eventually(lambda: "Redis answers again after" in caplog.text)
    push(NOTE)
    assert reaches(successful=2)


def test_a_worker_of_all_queues_asks_few_and_hears_of_others(make_worker: MakeWorker, start: Start) -> None:
    names = [f"customer-{number}" for number in range(200)]
    for name in names:
        push(NOTE, 1, name)
    worker = start(make_worker(all_queues=True))
    assert eventually(lambda: len(tasks.notes) == 200)
    assert eventually(lambda: len(worker.queues) <= 100)
    tasks.notes.clear()

    for name in (names[0], names[199], "customer-new"):
        push(NOTE, 1, name)
        assert eventually(lambda: f"{name} 0" in tasks.notes)  # noqa: B023


def test_a_delayed_task_runs_when_due(
    redis: Redis, make_worker: MakeWorker, start: Start, patient: None
) -> None:
    start(make_worker())
    assert is_listening(redis)

    later, soon = TaskQueue().push(NOTE, ["later"], delay=0.4), TaskQueue().push(NOTE, ["soon"], delay=0.1)

    assert reaches(successful=2)
    assert tasks.notes == ["soon", "later"]
    for task_id in (soon, later):
        info = found(task_id)
        assert info.started_at >= info.run_after


def test_a_task_of_a_dead_worker_is_taken_over(make_worker: MakeWorker, start: Start, patient: None) -> None:
    with options(lease=1.0):
        push(NOTE)
        claim_one(Consumer())
        start(make_worker())

        assert reaches(successful=1)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_success_that_comes_after_the_take_over_counts_if_it_is_the_first(
    redis: Redis, make_worker: MakeWorker, start: Start, caplog: pytest.LogCaptureFixture, is_first: bool
) -> None:
    def warnings() -> int:
        return sum(record.levelno == logging.WARNING for record in caplog.records)

    with options(lease=1.0):
        (task_id,) = push(WAIT)
        start(make_worker(concurrency=1))
        assert reaches(running=1)
        first = found(task_id).lease_expires_at
        assert eventually(lambda: found(task_id).lease_expires_at > first)  # renewed until then
        end_lease(redis, task_id)
        with options(lease=600.0):
            other = Consumer()
            second = claim_one(other)
        assert eventually(lambda: warnings() == 1)  # seen at a heartbeat
        if not is_first:
            assert hand_in(other, succeeded(second)).lost == []

        tasks.gate.set()

        assert reaches(successful=1)
        if not is_first:
            assert eventually(lambda: warnings() == 2)
    assert hand_in(other, succeeded(second)).lost == [task_id]
    assert counts() == {"successful": 1}


def test_what_was_lost_can_return(
    redis: Redis, backend: RedisBackend, make_worker: MakeWorker, start: Start
) -> None:
    (task_id,) = push(CROWD)
    worker = start(make_worker(concurrency=2))
    assert reaches(running=1)
    end_lease(redis, task_id)
    push(NOTE)  # wakes it
    assert eventually(lambda: jobs.crowded["now"] == 2)

    jobs.agate.set()

    assert reaches(successful=2)
    assert {*backend.queue.get(task_id).worker_ids} == {worker.consumer.id}
    assert not worker.ended.is_set()


@pytest.fixture
def server(backend: RedisBackend, tmp_path: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(tmp_path) as server, redis_at(server.url):
        yield server


@pytest.mark.parametrize(("seconds", "takes"), [(9.0, True), (11.0, False)])
def test_after_an_outage_in_which_leases_ended_a_worker_takes_nothing_over(
    redis: Redis, make_worker: MakeWorker, seconds: float, takes: bool
) -> None:
    with options(lease=30.0):
        [task_id] = push(NOTE)
        other = Consumer()
        claim_one(other)
        end_lease(redis, task_id)
        worker = make_worker()
        worker.outage.goes_on(RedisUnavailable("away"))
        assert worker.outage._since is not None
        worker.outage._since -= seconds

        worker.tick()

    assert found(task_id).worker_ids[-1] == (worker.id if takes else other.id)


def test_a_stopping_worker_returns_tasks_that_it_still_receives(
    redis_server: EmbeddedServer, redis: Redis, make_worker: MakeWorker, start: Start
) -> None:
    with LossyProxy(redis_server) as proxy, redis_at(proxy.url, SOCKET_TIMEOUT=0.3):
        worker = start(make_worker())
        assert is_listening(redis)
        proxy.lose_replies(to=Script("queues/advance").sha, silently=True)
        push(NOTE)
        assert eventually(lambda: proxy.lost == 1)
        worker.stop()
        assert worker.ended.wait(10)

        assert counts() == {"ready": 1}
        assert tasks.notes == []


def test_the_poller_moves_the_due_tasks_of_every_queue_also_of_new_ones(
    backend: RedisBackend, redis: Redis, start: Start, patient: None
) -> None:
    TaskQueue().push(NOTE, ["due"], delay=0.1, queue="old")
    TaskQueue().push(NOTE, ["tomorrow"], delay=86_400, queue="new")
    start(Poller())
    assert is_listening(redis)

    TaskQueue().push(NOTE, ["due"], delay=0.1, queue="new")

    assert reaches("old", ready=1)
    assert reaches("new", ready=1, delayed=1)
    (info,) = backend.queue.workers()
    assert (info.kind, info.pid, info.queues) == ("poller", os.getpid(), ("*",))


def test_the_poller_rests_although_tasks_are_waiting_for_workers(
    backend: RedisBackend, redis: Redis, start: Start, patient: None
) -> None:
    push(NOTE)
    push(NOTE, queue="paused")
    backend.queue.pause("paused")
    poller = start(Poller())
    TaskQueue().push(NOTE, ["due"], delay=0.2)
    assert reaches(ready=2)

    assert poller.consumer.request({}, 0).number < 10  # steps so far
    assert redis.llen(keys.QueueKeys("default", "default").wake) == 1  # for a worker


def test_ends_are_counted_of_all_queues_and_of_each_with_the_time_that_tasks_took(
    make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(buffer, "INTERVAL", 3_600.0)
    push(NOTE, 3)
    settings.COMPONENTS = {**settings.COMPONENTS, "COUNT_SERVICES": True}
    push("tests.tasks.fail", queue="mail")
    with options(max_attempts=2, backoff=0):
        assert make_worker("default", "mail", burst=True).run() == 0
    flush()

    reader = CounterReader()
    found = {info.name: reader.read([info.name], 3_600)[info.name].total for info in reader.page()}
    times = [found.pop(f"tasks-us:{queue}") for queue in ("default", "mail")]
    for task, count in {"tests.tasks.note": 3, "tests.tasks.fail": 2}.items():
        for name in (f"runs-us:{task}", f"runs-waited-us:{task}"):
            times.append(found.pop(name))
            assert reader.histograms([name], 3_600)[name].count == count
    assert all(0 < each < 60_000_000 for each in times)
    once = ["tasks:enqueued", "tasks-enqueued:mail", "tasks:retried", "tasks-retried:mail"]
    once += ["tasks:failed", "tasks-failed:mail", "runs:retry", "runs-retry:tests.tasks.fail"]
    once += ["runs:dead", "runs-dead:tests.tasks.fail"]
    assert found == {"tasks:successful": 3, "tasks-successful:default": 3, **dict.fromkeys(once, 1)}
