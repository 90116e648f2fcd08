"""Tasks under which a worker has died are suspects: a worker starts few of them at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis

from components.backends.tasks import RedisBackend
from components.services.queues import Claimed, Consumer, TaskQueue
from components.workers.base import Worker
from components.workers.runs import Run, ServerClock
from components.workers.suspects import MOST, Suspects
from tests import tasks
from tests.support.queues import claim, end_lease, ids
from tests.workers.conftest import NOTE, WAIT, MakeWorker, counts, push, reaches


def dead_under_them(redis: Redis, number: int, crashes: int = 1, name: str = NOTE) -> list[str]:
    """So many tasks, of each of which *crashes* workers have died."""
    pushed = push(name, number)
    for _crash in range(crashes):
        claim(Consumer(), number)
        end_lease(redis, *pushed)
    return pushed


def admitted(suspects: Suspects, claimed: list[Claimed]) -> list[str]:
    return ids(task for task in claimed if suspects.admit(task))


def begun(claimed: Claimed, consumer: Consumer, at: float | None) -> Run:
    run = Run(claimed, consumer, ServerClock())
    run.started_at = at
    return run


@pytest.mark.usefixtures("backend")
def test_what_no_worker_has_died_of_is_no_suspect(redis: Redis) -> None:
    push(NOTE, 2 * MOST)
    claimed = claim(Consumer(), 2 * MOST)

    assert len(admitted(Suspects(max_crashes=3), claimed)) == 2 * MOST


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("crashes", "max_crashes", "together"), [(1, 3, MOST), (2, 3, 1), (1, 2, 1), (2, 9, MOST // 5)]
)
def test_the_oftener_workers_have_died_the_fewer_suspects_run_together(
    redis: Redis, crashes: int, max_crashes: int, together: int
) -> None:
    pushed = dead_under_them(redis, 2 * MOST, crashes)
    claimed = claim(Consumer(), 2 * MOST)

    assert admitted(Suspects(max_crashes), claimed) == pushed[:together]


@pytest.mark.usefixtures("backend")
def test_there_is_room_again_when_the_latest_have_ended_or_run_for_a_moment(redis: Redis) -> None:
    dead_under_them(redis, 3, crashes=2)
    consumer, suspects = Consumer(), Suspects(max_crashes=3)
    first, second, third = claim(consumer, 3)
    assert suspects.admit(first)
    suspects.add(young := begun(first, consumer, None))

    suspects.look({first: young})
    assert not suspects.admit(second)

    suspects.look({})
    assert suspects.admit(second)
    suspects.add(begun(second, consumer, at=0.0))

    suspects.look({second: young})
    assert suspects.admit(third)


def test_suspects_that_wait_are_not_counted_as_started_and_all_run(
    backend: RedisBackend, redis: Redis, make_worker: MakeWorker, start: Callable[[Worker], Worker]
) -> None:
    pushed = dead_under_them(redis, 5, crashes=2)
    start(make_worker(concurrency=5))

    assert reaches(successful=5)
    assert {len(info.worker_ids) for id in pushed if (info := TaskQueue().get(id))} == {3}
    assert len(tasks.notes) == 5


def test_a_suspect_that_runs_long_does_not_keep_the_others_waiting(
    backend: RedisBackend, redis: Redis, make_worker: MakeWorker, start: Callable[[Worker], Worker]
) -> None:
    dead_under_them(redis, 2, crashes=2, name=WAIT)
    start(make_worker(concurrency=2))

    assert reaches(running=2)


def test_a_burst_ends_when_the_suspects_have_run_too(
    backend: RedisBackend, redis: Redis, make_worker: MakeWorker
) -> None:
    dead_under_them(redis, 3, crashes=2)
    make_worker(concurrency=3, burst=True).run()

    assert counts() == {"successful": 3}
