"""TaskWorker in this process: what it claims, how much, in which order, and what wakes it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from components.embedded import EmbeddedServer
from components.exceptions import RedisUnavailable
from components.kit.scripts import Script
from components.services.queues import Consumer, TaskQueue, keys
from components.services.queues.backend import RedisBackend
from components.services.queues.worker.worker import Worker
from components.testing import redis_at
from tests import tasks
from tests.fixtures.worker import CROWD, NOTE, WAIT, MakeWorker, counts, is_listening, push, reaches
from tests.queues.worker import jobs
from tests.support.proxy import LossyProxy
from tests.support.queues import claim, claim_one, come_due, end_lease, found, options
from tests.support.waiting import eventually

Start = Callable[[Worker], Worker]

# --- When it ends by itself ------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [{"burst": True}, {"max_tasks": 1}], ids=["burst", "max_tasks"])
def test_a_worker_ends_as_soon_as_its_last_task_has(
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


# --- How much it takes -----------------------------------------------------------------------------


def test_a_worker_runs_as_many_tasks_at_once_as_it_has_slots_and_claims_no_more(
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


# --- Which queues, in which order ------------------------------------------------------------------


def test_the_queues_are_served_in_strict_order(make_worker: MakeWorker) -> None:
    push(NOTE, 2, "low")
    push(NOTE, 2, "high")

    make_worker("high", "low", concurrency=1, burst=True).run()

    assert tasks.notes == ["high 0", "high 1", "low 0", "low 1"]


@pytest.mark.parametrize("concurrency", [1, 5])
def test_weights_are_the_shares_of_what_a_worker_runs(make_worker: MakeWorker, concurrency: int) -> None:
    push(NOTE, 250, "high")
    push(NOTE, 250, "low")

    make_worker("high", "low", weights={"high": 6, "low": 1}, concurrency=concurrency, max_tasks=200).run()

    begun = Counter(note.split()[0] for note in tasks.notes[:140])
    assert begun["low"] == pytest.approx(20, abs=6)


def test_the_slots_are_divided_by_weight(make_worker: MakeWorker, start: Start) -> None:
    push(CROWD, 8, "high")
    push(CROWD, 8, "low")
    push(CROWD, 4, "alone")
    start(make_worker("high", "low", weights={"high": 3, "low": 1}, concurrency=4))
    start(make_worker("none", "alone", weights={"none": 3, "alone": 1}, concurrency=4))

    assert reaches("high", ready=5, running=3)
    assert reaches("low", ready=7, running=1)
    assert reaches("alone", running=4)  # the share of an empty queue goes to the others


def test_a_worker_of_all_queues_asks_few_of_many_that_are_empty_and_hears_of_each_that_fills_up(
    make_worker: MakeWorker, start: Start
) -> None:
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


def test_a_worker_of_all_queues_learns_a_new_one_while_it_runs_something_else(
    redis: Redis, make_worker: MakeWorker, start: Start, patient: None
) -> None:
    push(WAIT)
    start(make_worker(all_queues=True, concurrency=2))
    assert reaches(running=1)
    assert is_listening(redis)

    push(NOTE, queue="first of its name")

    assert reaches("first of its name", successful=1)
    assert counts() == {"running": 1}


# --- What wakes it ---------------------------------------------------------------------------------


def test_a_push_wakes_an_idle_worker(
    redis: Redis, make_worker: MakeWorker, start: Start, patient: None
) -> None:
    start(make_worker())
    for number in range(1, 3):
        assert is_listening(redis)
        push(NOTE)

        assert reaches(successful=number)


def test_a_delayed_task_runs_when_it_is_due_and_not_before(
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


def test_a_task_of_a_dead_worker_is_taken_over_by_an_idle_one_when_the_lease_ends(
    make_worker: MakeWorker, start: Start, patient: None
) -> None:
    with options(lease=1.0):
        push(NOTE)
        claim_one(Consumer())
        start(make_worker())

        assert reaches(successful=1)


def test_resuming_a_queue_wakes_a_worker(
    backend: RedisBackend, redis: Redis, make_worker: MakeWorker, start: Start, patient: None
) -> None:
    backend.queue.pause("default")
    start(make_worker())
    assert is_listening(redis)
    push(NOTE)
    assert is_listening(redis)  # the push had woken it
    assert counts() == {"ready": 1}

    backend.queue.resume("default")

    assert reaches(successful=1)


# --- Leases ----------------------------------------------------------------------------------------


def test_an_end_that_comes_after_the_take_over_does_not_count(
    redis: Redis, make_worker: MakeWorker, start: Start, caplog: pytest.LogCaptureFixture
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
            assert [claimed.id for claimed in claim(other)] == [task_id]
        assert eventually(lambda: warnings() == 1)  # seen at a heartbeat

        tasks.gate.set()

        assert eventually(lambda: warnings() == 2)
    info = found(task_id)
    assert info.state == "running"
    assert info.worker_ids[-1] == other.id


def test_a_worker_may_be_given_again_what_it_has_lost(
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
    assert backend.queue.get(task_id).worker_ids == (worker.consumer.id,) * 2
    assert not worker.ended.is_set()


# --- Other releases --------------------------------------------------------------------------------


def test_a_task_of_a_newer_release_is_given_back_for_a_newer_worker(
    backend: RedisBackend, redis: Redis, make_worker: MakeWorker, start: Start
) -> None:
    (task_id,) = push(NOTE)
    record = redis.hget(keys.BackendKeys("default").tasks, task_id)
    redis.hset(keys.BackendKeys("default").tasks, task_id, b"2" + record[1:])
    start(make_worker())
    assert reaches(delayed=1)

    redis.hset(keys.BackendKeys("default").tasks, task_id, record)  # the newer worker, so to speak
    come_due(redis, task_id)
    push(NOTE)

    assert reaches(successful=2)
    assert len(backend.queue.get(task_id).worker_ids) == 1  # the start that was none is not counted


# --- While Redis is away ---------------------------------------------------------------------------


@pytest.fixture
def server(backend: RedisBackend, tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server that the test may kill."""
    with EmbeddedServer(tmp_path) as server, redis_at(server.url):
        yield server


def test_tasks_that_end_during_an_outage_are_handed_in_after_it(
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
    assert eventually(lambda: "Waiting for Redis; nothing that was accepted is lost." in caplog.text)
    server.start()

    assert reaches(successful=1)
    assert caplog.text.count("Waiting for Redis") == 1
    assert eventually(lambda: "Redis answers again after" in caplog.text)


def test_an_idle_worker_goes_on_when_redis_is_back(
    server: EmbeddedServer,
    make_worker: MakeWorker,
    start: Start,
    patient: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    start(make_worker())
    assert eventually(TaskQueue().workers)
    server.kill()
    assert eventually(lambda: "Waiting for Redis" in caplog.text)
    server.start()
    push(NOTE)

    assert reaches(successful=1)


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


def test_redis_is_back_only_when_it_has_answered(
    server: EmbeddedServer, make_worker: MakeWorker, patient: None, caplog: pytest.LogCaptureFixture
) -> None:
    worker = make_worker()
    assert worker._try_tick() > 0
    server.kill()
    worker.has_token = True
    worker._try_tick()
    assert caplog.text.count("Waiting for Redis") == 1
    worker._unanswered = None  # nothing is left to ask

    worker._try_tick()
    assert "answers again" not in caplog.text
    server.start()
    worker._try_tick()
    assert caplog.text.count("Redis answers again after") == 1


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
