"""The threads of a worker and what it claims ahead for them: many quick tasks at once, and none behind a slow one."""

from collections.abc import Callable
from typing import Any

import pytest

from components.embedded import EmbeddedServer
from components.services.queues import Claimed, Consumer, NewTask, TaskQueue
from components.services.queues.worker.choice import MOST, Prefetch
from components.services.queues.worker.pool import Pool
from components.services.queues.worker.runs import Run, ServerClock
from components.services.queues.worker.tasks import TaskWorker
from components.services.queues.worker.worker import Worker
from tests import tasks
from tests.fixtures.worker import CROWD, NOTE, WAIT, MakeWorker, counts, push, reaches
from tests.queues.worker import jobs
from tests.support.monitoring import sent_to
from tests.support.queues import options
from tests.support.waiting import eventually

Start = Callable[[Worker], Worker]


@pytest.mark.parametrize(
    ("learned", "at_least", "at_most"),
    [
        ([[]], 0, 0),
        ([[0.0]], MOST, MOST),
        ([[0.001], []], 200, 200),
        ([[0.1]], 2, 2),
        ([[10.0]], 0, 0),
        ([[10.0], *[[0.001] * 10] * 30], 199, 200),  # the latest count most
        ([[0.0001] * 200, [0.01]], 100, 1000),  # one that had to wait does not outweigh hundreds
        ([[0.001] * 200, [10.0]], 0, 0),
        ([[0.1] * 10, [0.3] * 10], 1, 1),  # after ten tasks, half of the way
        ([[0.1], [0.001] * 10], 3, 3),
    ],
)
def test_what_starts_soon_is_claimed_ahead(learned: list[list[float]], at_least: int, at_most: int) -> None:
    prefetch = Prefetch(4)
    for durations in learned:
        prefetch.learn(durations)
    assert at_least <= prefetch.limit <= at_most

    prefetch.was_wrong()
    assert prefetch.limit == 0
    prefetch.learn([0.0] * 1_000)
    assert prefetch.limit >= at_least


@pytest.mark.parametrize(
    ("options", "left"), [({"burst": True}, {}), ({"max_tasks": 5}, {"ready": 5})], ids=["burst", "max_tasks"]
)
def test_what_was_given_back_is_run_by_a_burst_and_does_not_count_for_max_tasks(
    hasty: Callable[..., TaskWorker],
    start: Start,
    patient: None,
    options: dict[str, Any],
    left: dict[str, int],
) -> None:
    push_one_slow_and(9)
    worker = start(hasty(**options))
    assert reaches(running=1, ready=9)
    assert not worker.ended.is_set()

    jobs.agate.set()

    assert worker.ended.wait(10)
    assert counts() == {**left, "successful": 10 - sum(left.values())}
    assert tasks.notes == list(range(9 - sum(left.values())))


@pytest.mark.parametrize("concurrency", [1, 4])
def test_tasks_that_do_nothing_come_in_large_batches_and_are_trimmed_now_and_then(
    redis_server: EmbeddedServer, make_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    trimmed: list[Any] = []
    monkeypatch.setattr(Consumer, "trim", lambda self, *names: trimmed.append(names))
    push(NOTE, 300)

    with sent_to(redis_server) as commands:
        make_worker(concurrency=concurrency, burst=True).run()

    assert counts() == {"successful": 300}
    assert len(tasks.notes) == 300
    assert sum(command.startswith("EVAL") for command in commands) < 100
    assert trimmed == [("default",)]


def test_an_end_beside_a_long_task_comes_soon(make_worker: MakeWorker, start: Start, patient: None) -> None:
    push(WAIT)
    start(make_worker(concurrency=2))
    assert reaches(running=1)

    push(NOTE)

    assert reaches(running=1, successful=1)


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


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("limit", [1, 7])
def test_no_more_than_max_tasks_are_run(make_worker: MakeWorker, limit: int, concurrency: int) -> None:
    push(NOTE, 60)

    assert make_worker(max_tasks=limit, concurrency=concurrency).run() == 0

    assert counts() == {"ready": 60 - limit, "successful": limit}
    assert len(tasks.notes) == limit


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


def test_a_worker_that_ends_at_once_begins_nothing_more(hasty: Callable[..., TaskWorker]) -> None:
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


def test_no_run_is_forgotten() -> None:
    done: list[str] = []
    pool = Pool(4, lambda run: done.append(run.claimed.id))
    expected = [str(number) for number in range(5_000)]
    for task_id in expected:
        pool.add(Run(Claimed(task_id, "default", "token", 1, b"", b"", b""), Consumer(), ServerClock()))

    assert eventually(lambda: len(done) == len(expected))
    pool.end()
    assert sorted(done, key=int) == expected
