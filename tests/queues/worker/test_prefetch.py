"""Claiming ahead: many quick tasks in one round trip, and none of them behind a slow one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from components.services.queues import Consumer, NewTask, TaskQueue
from components.services.queues.worker.prefetch import MOST, Prefetch
from components.services.queues.worker.tasks import TaskWorker
from components.services.queues.worker.worker import Worker
from tests import tasks
from tests.fixtures.worker import CROWD, NOTE, WAIT, MakeWorker, counts, push, reaches
from tests.queues.worker import jobs
from tests.support.queues import options
from tests.support.waiting import eventually

Start = Callable[[Worker], Worker]


# --- How many --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learned", "at_least", "at_most"),
    [
        ([], 0, 0),
        ([[]], 0, 0),
        ([[0.0]], MOST, MOST),
        ([[0.001]], 200, 200),
        ([[0.001], []], 200, 200),
        ([[0.1]], 2, 2),
        ([[10.0]], 0, 0),
        ([[0.0, 0.2]], 2, 2),
        ([[10.0], *[[0.001] * 10] * 30], 199, 200),  # the latest count most
        ([[0.0001] * 200, [0.01]], 100, 1000),  # one that had to wait does not outweigh hundreds
        ([[0.001] * 200, [10.0]], 0, 0),
        ([[0.1] * 10, [0.3] * 10], 1, 1),  # after ten tasks, half of the way
        ([[0.3] * 10, [0.1] * 30], 1, 1),
        ([[0.1], [0.001] * 10], 3, 3),
    ],
)
def test_what_threads_will_start_soon_is_claimed_ahead(
    learned: list[list[float]], at_least: int, at_most: int
) -> None:
    prefetch = Prefetch(4)
    for durations in learned:
        prefetch.learn(durations)

    assert at_least <= prefetch.limit <= at_most


def test_after_a_mistake_nothing_is_claimed_ahead_until_a_task_has_ended() -> None:
    prefetch = Prefetch(1)
    prefetch.learn([0.0])
    prefetch.was_wrong()
    assert prefetch.limit == 0

    prefetch.learn([0.0])
    assert prefetch.limit == MOST


# --- Round trips -----------------------------------------------------------------------------------


def round_trips(redis: Redis) -> int:
    """The scripts that were called so far, by Redis' own count."""
    stats: dict[str, Any] = redis.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval"))


@pytest.mark.parametrize("concurrency", [1, 4])
def test_tasks_that_do_nothing_come_in_large_batches_and_are_trimmed_now_and_then(
    redis: Redis, make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    trimmed: list[Any] = []
    monkeypatch.setattr(Consumer, "trim", lambda self, *names: trimmed.append(names))
    push(NOTE, 300)
    before = round_trips(redis)

    make_worker(concurrency=concurrency, burst=True).run()

    assert counts() == {"successful": 300}
    assert len(tasks.notes) == 300
    assert round_trips(redis) - before < 100
    assert trimmed == [("default",)]


def test_an_end_beside_a_long_task_is_handed_in_soon(
    make_worker: MakeWorker, start: Start, patient: None
) -> None:
    push(WAIT)
    start(make_worker(concurrency=2))
    assert reaches(running=1)

    push(NOTE)

    assert reaches(running=1, successful=1)


# --- Behind a slow task ----------------------------------------------------------------------------


@pytest.fixture
def hasty(make_worker: MakeWorker) -> Callable[..., TaskWorker]:
    """A worker of one thread that has seen nothing but quick tasks, and so claims hundreds ahead."""

    def make(**options: Any) -> TaskWorker:
        worker = make_worker(concurrency=1, **options)
        worker._prefetch.learn([0.0])
        return worker

    return make


def push_one_slow_and(quick: int) -> tuple[str, list[str]]:
    new = [NewTask(name=CROWD), *(NewTask(name=NOTE, args=[number]) for number in range(quick))]
    slow, *others = [info.id for info in TaskQueue().push_many(new) if info]
    return slow, others


# --- Limits and the end ----------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("limit", [1, 7])
def test_no_more_than_max_tasks_are_run_however_quick_they_are(
    make_worker: MakeWorker, limit: int, concurrency: int
) -> None:
    push(NOTE, 60)

    assert make_worker(max_tasks=limit, concurrency=concurrency).run() == 0

    assert counts() == {"ready": 60 - limit, "successful": limit}
    assert len(tasks.notes) == limit


def test_released_tasks_do_not_count_for_max_tasks(
    hasty: Callable[..., TaskWorker], start: Start, patient: None
) -> None:
    push_one_slow_and(9)
    worker = start(hasty(max_tasks=5))
    assert reaches(running=1, ready=9)

    jobs.agate.set()

    assert worker.ended.wait(10)
    assert counts() == {"ready": 5, "successful": 5}


def test_a_burst_ends_only_when_what_it_gave_back_has_run(
    hasty: Callable[..., TaskWorker], start: Start, patient: None
) -> None:
    push_one_slow_and(3)
    worker = start(hasty(burst=True))
    assert reaches(running=1, ready=3)
    assert not worker.ended.is_set()

    jobs.agate.set()

    assert worker.ended.wait(10)
    assert counts() == {"successful": 4}
    assert tasks.notes == [0, 1, 2]


def test_a_worker_that_is_told_to_stop_gives_back_at_once_what_waits(
    hasty: Callable[..., TaskWorker], start: Start, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.services.queues.worker.tasks.STALE", 600.0)
    push_one_slow_and(3)
    worker = start(hasty())
    assert eventually(lambda: jobs.crowded["now"] == 1)
    assert counts() == {"running": 4}

    worker.stop()

    assert reaches(running=1, ready=3)
    assert not worker.ended.is_set()
    jobs.agate.set()
    assert worker.ended.wait(10)
    assert counts() == {"ready": 3, "successful": 1}


def test_a_worker_that_ends_at_once_begins_nothing_that_it_gives_back(
    hasty: Callable[..., TaskWorker],
) -> None:
    push_one_slow_and(3)
    worker = hasty()
    worker.tick()
    assert counts() == {"running": 4}
    assert eventually(lambda: jobs.crowded["now"] == 1)

    assert worker.close() == 1
    assert counts() == {"ready": 3, "running": 1}
    worker.part()

    assert counts() == {"ready": 4}
    jobs.agate.set()
    worker._pool._threads[0].join(10)
    assert not worker._pool._threads[0].is_alive()
    assert tasks.notes == []


def test_tasks_waiting_in_a_worker_are_renewed_with_the_running_ones(
    hasty: Callable[..., TaskWorker], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.services.queues.worker.tasks.STALE", 600.0)
    with options(lease=1.0):
        _slow, quick = push_one_slow_and(2)
        start(hasty())
        assert reaches(running=3)
        first = {task_id: TaskQueue().get(task_id).lease_expires_at for task_id in quick}

        assert eventually(
            lambda: all(TaskQueue().get(task_id).lease_expires_at > first[task_id] for task_id in quick)
        )
        assert jobs.told.empty()
